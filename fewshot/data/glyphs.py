"""Glyphs: drawn characters of invented scripts; needs no files.

A class is two to four strokes, cubic Bézier curves with random control points
in the unit square. An image of it is drawn by an unsteady hand: the control
points are jittered, the glyph is turned, stretched and moved, the pen has a
random width, and the pixels are noisy.
"""

import numpy as np

from data_files.errors import DataError
from fewshot.data import checks
from fewshot.data.dataset import Dataset, Split

_MAX_STROKES = 4
_STROKE_POINTS = 16
_PEN = (0.02, 0.035)
# A pen narrower than this many pixels is made wider, or strokes that pass
# between two pixels would vanish.
_PEN_SIZE = 28
_NOISE = 0.1
_CHUNK = 8


def load(
  data_dir: None = None,
  *,
  num_base: int = 64,
  num_val: int = 16,
  num_novel: int = 20,
  num_base_train: int = 40,
  num_base_val: int = 10,
  num_base_test: int = 20,
  num_novel_images: int = 40,
  image_size: int = 20,
  difficulty: float = 0.05,
  seed: int = 0,
) -> Dataset:
  """Draws all classes; a class does not depend on how many there are.

  Args:
    data_dir: None; there are no files.
    num_base: base classes.
    num_val: validation classes.
    num_novel: novel classes.
    num_base_train: training images of each base class.
    num_base_val: more images of each base class, for validation.
    num_base_test: more images of each base class, for testing.
    num_novel_images: images of each of the other classes.
    image_size: side of the images, which are [image_size image_size 1].
    difficulty: how unsteady the hand is; at 0 images of a class differ only in
      pen and noise, at 0.1 they are hard to recognise.
    seed: the same seed gives the same images.
  """
  if data_dir is not None:
    raise DataError("glyphs has no files, so leave out data_dir")
  checks.at_least(
    1,
    num_base=num_base,
    num_val=num_val,
    num_novel=num_novel,
    num_base_train=num_base_train,
    num_base_val=num_base_val,
    num_base_test=num_base_test,
    num_novel_images=num_novel_images,
  )
  checks.at_least(8, image_size=image_size)
  checks.at_least(0, seed=seed)
  if not 0 <= difficulty <= 1:
    raise DataError(f"expected difficulty in 0..1, got {difficulty!r}")

  def draw(first: int, classes: int, *sizes: int) -> list[Split]:
    numbers = range(first, first + classes)
    return _draw(numbers, sizes, image_size, difficulty, seed)

  base = draw(0, num_base, num_base_train, num_base_val, num_base_test)
  (val,) = draw(num_base, num_val, num_novel_images)
  (test,) = draw(num_base + num_val, num_novel, num_novel_images)
  return Dataset("glyphs", *base, val, test, inverted=True)


def _draw(
  numbers: range,
  sizes: tuple[int, ...],
  side: int,
  difficulty: float,
  seed: int,
) -> list[Split]:
  """Splits of these classes, with `sizes` images of each."""
  images = np.stack(
    [_draw_class(n, sum(sizes), side, difficulty, seed) for n in numbers]
  )
  labels = np.arange(len(numbers), dtype=np.int32)
  return [
    Split(
      part.reshape(-1, side, side, 1),
      labels.repeat(part.shape[1]),
      tuple(f"glyph{n:04}" for n in numbers),
    )
    for part in np.split(images, np.cumsum(sizes)[:-1], axis=1)
  ]


def _draw_class(
  number: int, count: int, side: int, difficulty: float, seed: int
) -> np.ndarray:
  """Images of one class, uint8 [count side side]."""
  rng = np.random.default_rng([seed, number])
  strokes = rng.integers(2, _MAX_STROKES, endpoint=True)
  control = rng.uniform(0.12, 0.88, (strokes, 4, 2))
  points = _curve(
    control + difficulty * rng.normal(size=(count, strokes, 4, 2))
  )
  angle = 3 * difficulty * rng.normal(size=count)
  cosine, sine = np.cos(angle), np.sin(angle)
  turn = np.stack([cosine, -sine, sine, cosine], -1).reshape(count, 2, 2)
  scale = 1 + 2 * difficulty * rng.normal(size=(count, 1, 2))
  shift = difficulty * rng.normal(size=(count, 1, 2))
  points = 0.5 + (points - 0.5) @ turn * scale + shift
  pen = rng.uniform(*_PEN, (count, 1, 1)) * max(1, _PEN_SIZE / side)
  ink = np.exp(-_distances(points, side) / (2 * pen**2).astype(np.float32))
  ink += _NOISE * rng.standard_normal(ink.shape, np.float32)
  return (255 * np.clip(ink, 0, 1) + 0.5).astype(np.uint8)


def _curve(control: np.ndarray) -> np.ndarray:
  """Points on all strokes, [n points 2], from [n strokes 4 2]."""
  t = np.linspace(0, 1, _STROKE_POINTS)[:, None]
  weights = np.concatenate(
    [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3], axis=1
  )
  return (weights @ control).reshape(len(control), -1, 2)


def _distances(points: np.ndarray, side: int) -> np.ndarray:
  """Squared distance of each pixel to the nearest point, [n side side]."""
  centers = (np.arange(side, dtype=np.float32) + 0.5) / side
  squares = (points.astype(np.float32)[..., None] - centers) ** 2
  nearest = np.empty((len(points), side, side), np.float32)
  for start in range(0, len(points), _CHUNK):
    x, y = np.moveaxis(squares[start : start + _CHUNK], 2, 0)
    np.min(
      y[..., None] + x[..., None, :], 1, out=nearest[start : start + _CHUNK]
    )
  return nearest
