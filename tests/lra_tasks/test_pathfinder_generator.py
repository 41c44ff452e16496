"""Drawn Pathfinder images: separate contours, discs at the right ends."""

import os
import pathlib

import numpy as np
import pytest
from PIL import Image

from lra_tasks import pathfinder, pathfinder_contours, pathfinder_generator
from tests.data_files import writers

RESOLUTIONS = tuple(pathfinder_contours.STYLES)


def contours_of(resolution, length=14, seed=0):
  """All contours of an image, and its style and margin."""
  style = pathfinder_contours.STYLES[resolution]
  margin = style.margins[-1]
  rng = np.random.default_rng(seed)
  long, short = pathfinder_contours.plane(style, margin).contours(rng, length)
  return long, short, style, margin


def along(nodes, points=20):
  """Points of a contour, [steps points 2]."""
  fractions = np.linspace(0, 1, points)[:, None]
  return nodes[:-1, None] + fractions * np.diff(nodes, axis=0)[:, None]


def nearest(a, b):
  """The smallest distance between points of two arrays [... 2]."""
  a, b = a.reshape(-1, 1, 2), b.reshape(1, -1, 2)
  return np.linalg.norm(a - b, axis=-1).min()


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_contours_keep_their_distance(resolution):
  long, short, _, margin = contours_of(resolution)
  lines = [along(nodes) for nodes in (*long, *short)]
  for i, line in enumerate(lines):
    for other in lines[:i]:
      assert nearest(line, other) > 1.4 * margin
    for step in range(2, len(line)):
      assert nearest(line[step], line[: step - 1]) > 1.4 * margin


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_contours_have_even_steps_and_bounded_turns(resolution):
  long, short, style, margin = contours_of(resolution)
  assert [len(nodes) for nodes in long] == [15, 15]
  assert {len(nodes) for nodes in short} <= {5}
  for nodes in (*long, *short):
    steps = np.diff(nodes, axis=0)
    length = style.paddle_length + 2 * margin
    np.testing.assert_allclose(np.linalg.norm(steps, axis=1), length)
    cosines = (steps[1:] * steps[:-1]).sum(1) / length**2
    assert (np.arccos(cosines) <= np.pi / 2 / style.continuity).all()
    low = style.padding + 0.7 * margin
    assert (nodes > low).all()
    assert (nodes < resolution - 1 - low).all()
  begins = [nodes[0] for nodes in long]
  np.testing.assert_allclose(
    np.linalg.norm(begins[0] - begins[1]), style.seed_distance
  )


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_label_tells_whether_the_marked_ends_are_of_one_contour(
  resolution, monkeypatch
):
  seen = []
  original = pathfinder_contours.Plane.contours

  def record(*arguments):
    long, short = original(*arguments)
    seen.append(long)
    return long, short

  monkeypatch.setattr(pathfinder_contours.Plane, "contours", record)
  radius = pathfinder_contours.STYLES[resolution].marker_radius
  grid = np.indices((resolution, resolution))
  for index in range(4):
    image, label, margin = pathfinder_generator.draw(
      resolution, "easy", 0, index
    )

    def brightness(nodes, margin=margin, image=image):
      step = nodes[1] - nodes[0]
      tip = nodes[0] + margin * step / np.linalg.norm(step)
      distance = np.linalg.norm(grid - tip[:, None, None], axis=0)
      return image[distance < radius].mean()

    begins = [brightness(nodes) for nodes in seen[-1]]
    ends = [brightness(nodes[::-1]) for nodes in seen[-1]]
    assert label == index % 2
    assert (np.argmax(begins) == np.argmax(ends)) == (label == 1)
    assert min(max(begins), max(ends)) > 1.3 * max(min(begins), min(ends))


def bright_share(images):
  return (images > 25).mean()


def disc_brightness(images):
  """The brightest 3 x 3 pixels of each image, and the brightest elsewhere."""
  found = []
  for image in images:
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    means = windows.mean((2, 3))
    for _ in range(2):
      row, column = np.unravel_index(means.argmax(), means.shape)
      found.append(means[row, column])
      means[max(row - 3, 0) : row + 4, max(column - 3, 0) : column + 4] = 0
  return np.array(found)


def images_of(count):
  return np.stack(
    [pathfinder_generator.draw(32, "hard", 0, i).image for i in range(count)]
  )


@writers.REAL
def test_images_are_like_those_of_the_benchmark():
  folder = pathlib.Path(os.environ["NAM_DATA_DIR"], "pathfinder32")
  with np.load(folder / "pathfinder32_sample100.npz") as samples:
    expected = samples["x"]
  actual = images_of(50)
  assert set(actual.max((1, 2))) == set(expected.max((1, 2))) == {255}
  assert abs(bright_share(actual) / bright_share(expected) - 1) < 0.12
  assert abs(actual.mean() / expected.mean() - 1) < 0.12
  discs = disc_brightness(actual), disc_brightness(expected)
  assert abs(discs[0].mean() / discs[1].mean() - 1) < 0.12
  # A few of the discs hide each other.
  assert all(np.percentile(brightness, 5) > 130 for brightness in discs)


def test_an_image_depends_on_its_number_and_the_seed_alone(tmp_path):
  options = {"resolution": 32, "level": "easy", "seed": 3}
  folder = pathfinder_generator.write(tmp_path, count=103, **options, workers=2)
  assert folder == tmp_path / "pathfinder32" / "curv_baseline"
  lines = (folder / "metadata" / "0.npy").read_text().splitlines()
  assert len(lines) == 103
  drawn_with = ["1.0", "6", "2", "2", "0.5", "1", "1"]
  for index in (0, 1, 101, 102):
    sample = pathfinder_generator.draw(32, "easy", 3, index)
    fields = lines[index].split()
    assert fields == [
      "imgs/0",
      f"sample_{index}.png",
      str(index),
      str(sample.label),
      *drawn_with,
    ]
    with Image.open(folder / fields[0] / fields[1]) as image:
      np.testing.assert_array_equal(np.asarray(image), sample.image)
  other = pathfinder_generator.draw(32, "easy", 4, 102).image
  assert (other != sample.image).any()


def test_command_draws_what_the_task_reads(tmp_path, monkeypatch, capsys):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  monkeypatch.setattr(pathfinder_generator, "_IMAGES_PER_FOLDER", 4)
  monkeypatch.setattr(pathfinder_generator, "_IMAGES_PER_JOB", 2)
  arguments = [f"--output_dir={tmp_path}", "--difficulty=inter", "--count=10"]
  pathfinder_generator.main(arguments)
  assert "10 images in" in capsys.readouterr().out
  made = pathfinder.make_task(tmp_path, level="inter")
  rows = [*made.train, *made.validation, *made.test]
  assert sum(row["label"] for row in rows) == 5
  drawn = [pathfinder_generator.draw(32, "inter", 0, i) for i in range(10)]
  expected = {(s.image.tobytes(), s.label) for s in drawn}
  found = {
    (row["inputs"].astype(np.uint8).tobytes(), int(row["label"]))
    for row in rows
  }
  assert found == expected
  with pytest.raises(SystemExit, match="2"):
    pathfinder_generator.main(arguments)
  assert "has images already" in capsys.readouterr().err


def test_command_explains_itself(capsys):
  with pytest.raises(SystemExit, match="0"):
    pathfinder_generator.main(["--help"])
  assert "{easy,inter,hard}" in capsys.readouterr().out
  for wrong in ("--count=0", "--workers=0", "--seed=-1", "--resolution=33"):
    with pytest.raises(SystemExit, match="2"):
      pathfinder_generator.main(["--output_dir=x", wrong])
