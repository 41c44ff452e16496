"""Contours for Pathfinder images: chains of dashes that keep their distance.

A contour is a chain of steps of equal length; each has a dash ("paddle") in the
middle, and the chain turns between the dashes. No contour crosses or touches
another one or itself.
"""

import dataclasses
import functools

import numpy as np

# Chains grown in parallel, places tried for the next step of each, and chains
# started for a short contour before giving up on it.
_CHAINS, _PLACES, _SHORT_CHAINS = 8, 16, 3
_CELLS_PER_CLEARANCE = 4

_ANGLES = np.linspace(-np.pi / 2, np.pi / 2, 257)
_SHARE_BELOW = 0.5 + (_ANGLES + np.sin(_ANGLES) * np.cos(_ANGLES)) / np.pi


@dataclasses.dataclass(frozen=True)
class Style:
  """How images of a resolution look; lengths are in pixels.

  Attributes:
    resolution: height and width.
    padding: free pixels at the borders.
    seed_distance: distance between the starts of the two long contours.
    marker_radius: radius of the discs at the two marked ends.
    paddle_length: length of a dash.
    thickness: thickness of a dash.
    margins: free length at either end of a dash; each image uses one of them.
    continuity: contours turn by less than a right angle divided by this.
    contrasts: brightness of long and of short contours; discs have 1.
    short_paddles: dashes of all short contours together.
  """

  resolution: int
  padding: int
  seed_distance: int
  marker_radius: float
  paddle_length: int
  thickness: float
  margins: tuple[int, ...]
  continuity: float
  contrasts: tuple[float, float]
  short_paddles: int


# The benchmark's sizes, by resolution.
STYLES = {
  32: Style(32, 1, 7, 1.5, 2, 0.5, (1,), 1.0, (1.5, 2.0), 20),
  64: Style(64, 1, 12, 2.5, 5, 1.0, (1,), 1.8, (0.8, 0.8), 22),
  128: Style(128, 1, 20, 3.0, 5, 1.5, (2, 3), 1.8, (0.9, 0.9), 35),
  256: Style(256, 22, 27, 5.0, 5, 2.0, (3,), 1.8, (1.0, 1.0), 30),
}


@functools.cache
def plane(style: Style, margin: int) -> "Plane":
  """The plane for images of a style and one of its margins."""
  return Plane(style, margin)


class Plane:
  """Where contours grow: cells finer than pixels, numbered row by row.

  A cell is blocked if it is outside or too near a contour.
  """

  def __init__(self, style: Style, margin: int):
    self._style = style
    self._step = style.paddle_length + 2 * margin
    self._per_pixel = _CELLS_PER_CLEARANCE / (2 * margin)
    self._low = style.padding + margin
    self._high = style.resolution - 1 - self._low
    # A step and the cells it blocks never leave the grid.
    reach = _CELLS_PER_CLEARANCE
    self._border = int(self._step * self._per_pixel) + reach + 1
    self._width = round(style.resolution * self._per_pixel) + 2 * self._border
    pixel = (np.arange(self._width) - self._border) / self._per_pixel
    is_out = (pixel < self._low) | (pixel > self._high)
    self._outside = (is_out[:, None] | is_out).reshape(-1)
    near = np.arange(-reach, reach + 1)
    is_near = near[:, None] ** 2 + near**2 < reach**2
    self._disc = (near[:, None] * self._width + near)[is_near]
    self._fractions = np.linspace(0, 1, 1 + round(self._step / margin))[:, None]

  def contours(
    self, rng: np.random.Generator, length: int
  ) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Two long contours and some short ones, each as nodes [steps + 1, 2]."""
    long, blocked = self._long_contours(rng, length)
    short, short_length = [], length // 3
    for _ in range(self._style.short_paddles // short_length):
      starts = rng.uniform(self._low, self._high, (_SHORT_CHAINS, 2))
      contour, blocked = self._grow(rng, blocked, starts, short_length)
      if contour is not None:
        short.append(contour)
    return long, short

  def _long_contours(self, rng, length):
    """Two contours that start near the centre, and the blocked cells."""
    distance = self._style.seed_distance
    high = self._style.resolution - 2 * distance
    while True:
      start = rng.uniform(2 * distance, high, 2)
      other = start + distance * _direction(rng.uniform(0, 2 * np.pi))
      blocked, found = self._outside, []
      for origin in (start, other):
        starts = np.tile(origin, (_CHAINS, 1))
        contour, blocked = self._grow(rng, blocked, starts, length)
        if contour is None:
          break
        found.append(contour)
      else:
        return found, blocked

  def _grow(self, rng, blocked, starts, length):
    """A contour from one of the starts or None, and the blocked cells.

    One chain grows from every start. A chain that cannot grow becomes a copy
    of one that can; if none can, there is no contour.
    """
    before, chains = blocked, np.arange(len(starts))
    blocked = np.tile(blocked, (len(starts), 1))
    nodes, angles = starts[:, None], np.zeros(len(starts))
    for number in range(length):
      uniform = rng.random((len(starts), _PLACES))
      turns = 2 * np.pi * uniform if number == 0 else self._turns(uniform)
      places = angles[:, None] + turns  # [chains places]
      steps = self._step * _direction(places)
      points = nodes[:, -1:, None] + self._fractions * steps[:, :, None]
      cells = self._cells(points)  # [chains places points]
      free = ~blocked[chains[:, None, None], cells].any(-1)
      (can_go,) = free.any(1).nonzero()
      if not can_go.size:
        return None, before
      copied = can_go[rng.integers(can_go.size, size=len(starts))]
      kept = np.where(free.any(1), chains, copied)
      place = free.argmax(1)[kept]
      blocked = blocked[kept]
      if number:
        # One step late, since a step starts where the one before it ends.
        blocked[chains[:, None], self._near(last[kept])] = True
      angles, last = places[kept, place], cells[kept, place]
      nodes = np.concatenate([nodes[kept], points[kept, place, -1:]], axis=1)
    blocked[chains[:, None], self._near(last)] = True
    return nodes[0], blocked[0]

  def _turns(self, uniform):
    """Angles with a density like cos² that is 0 at the sharpest turn."""
    return np.interp(uniform, _SHARE_BELOW, _ANGLES) / self._style.continuity

  def _cells(self, points):
    """The cells of points, [... 2] to [...]."""
    cells = np.rint(points * self._per_pixel).astype(np.int64) + self._border
    return cells[..., 0] * self._width + cells[..., 1]

  def _near(self, cells):
    """The cells too near these, [chains points] to [chains cells]."""
    return (cells[:, :, None] + self._disc).reshape(len(cells), -1)


def _direction(angle):
  return np.stack([np.sin(angle), np.cos(angle)], -1)
