"""The pictures show what they are given."""

import itertools

import numpy as np
import pytest

from nam_jax import viz


def test_accuracy_is_drawn_by_length_in_percent():
  by_length = {
    12: {"sequence_accuracy": 0.25, "token_accuracy": 0.75},
    5: {"sequence_accuracy": 1.0, "token_accuracy": 1.0},
  }
  figure = viz.accuracy_by_length(by_length, trained_length=10, title="x")
  (axes,) = figure.axes
  sequence, token, border = axes.get_lines()
  np.testing.assert_array_equal(sequence.get_xydata(), [[5, 100], [12, 25]])
  np.testing.assert_array_equal(token.get_xydata(), [[5, 100], [12, 75]])
  assert border.get_xdata()[0] == 10.5
  assert axes.get_xlabel() == "digits"
  assert axes.get_ylabel() == "accuracy (%)"
  assert axes.get_ylim() == (-3, 103)
  assert axes.get_legend() is None
  (legend,) = figure.legends
  names = [text.get_text() for text in legend.get_texts()]
  assert names == ["sequence", "token", "longest trained"]


def test_heads_are_drawn_with_cells_downward(tmp_path):
  heads = np.random.default_rng(0).normal(size=(2, 7, 2, 3, 5))
  figure = viz.tape_heads(heads, list("_12_MME"))
  *grid, _ = figure.axes
  assert len(grid) == 2 * 2 * 3
  shown = grid[3 * (2 * 1 + 1) + 2].get_images()[0].get_array()
  np.testing.assert_array_equal(shown, heads[1, :, 1, 2].T)
  assert [t.get_text() for t in grid[-1].get_xticklabels()] == list("_12_MME")
  assert grid[3].get_ylabel() == "machine 1\nwrite head\ncell"
  figure.savefig(tmp_path / "heads.png")


def test_tokens_with_long_names_are_labelled_upright(tmp_path):
  heads = np.zeros((1, 6, 2, 1, 3))
  for symbols, rotation in ((list("_1MM_E"), 0), (["push", "pop"] * 3, 90)):
    figure = viz.tape_heads(heads, symbols)
    figure.savefig(tmp_path / "heads.png")
    labels = figure.axes[1].get_xticklabels()
    assert {label.get_rotation() for label in labels} == {rotation}
    boxes = [label.get_window_extent() for label in labels]
    assert all(a.x1 <= b.x0 for a, b in itertools.pairwise(boxes))


def test_answers_fill_the_bars_of_every_head():
  shares = {"right": 0.7, "wrong, same kind": 0.1, "other kind": 0.2}
  outcomes = {
    "base": {"a": shares, "b": shares},
    "novel": {"a": shares, "b": shares},
  }
  figure = viz.answers(outcomes)
  for axes, title in zip(figure.axes, outcomes, strict=True):
    assert axes.get_title() == title
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert max(ends) == pytest.approx(100)
    assert len(axes.patches) == 6


def test_accuracy_by_shots_has_a_line_per_head_in_percent():
  line = {1: (0.5, 0.01), 5: (0.8, 0.01)}
  figure = viz.accuracy_by_shots({"both": {"a": line, "b": line}})
  (axes,) = figure.axes
  lines = [c.lines[0] for c in axes.containers]
  assert len(lines) == 2
  assert list(lines[0].get_xdata()) == [1, 5]
  assert list(lines[0].get_ydata()) == [50, 80]
  assert len({line.get_color() for line in lines}) == 2
  assert axes.get_ylim() == (-3, 103)
  assert axes.get_legend() is None
  (legend,) = figure.legends
  assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_a_tape_shows_both_heads_on_a_ring_and_their_moves(tmp_path):
  heads = np.zeros((4, 2, 8))
  cells = np.array([[0, 7, 6, 7], [0, 1, 2, 1]])  # of read and write head
  np.put_along_axis(heads, cells.T[..., None], 1, axis=-1)
  actions = np.random.default_rng(0).dirichlet(np.ones(3), (4, 2))
  figure = viz.tape_actions(heads, actions, ["a", "b", "c"], list("_1ME"))
  read, write, read_moves, write_moves, *_ = figure.axes
  labels = [t.get_text().replace("−", "-") for t in read.get_yticklabels()]
  assert labels == ["-2", "-1", "0", "1", "2"]
  for axes, walk in ((read, [2, 1, 0, 1]), (write, [2, 3, 4, 3])):
    image = axes.get_images()[0].get_array()
    np.testing.assert_array_equal(image.argmax(axis=0), walk)
  for axes, kind in ((read_moves, 0), (write_moves, 1)):
    image = axes.get_images()[0].get_array()
    np.testing.assert_array_equal(image, actions[:, kind].T)
  figure.savefig(tmp_path / "tape.png")


def test_heat_maps_have_one_colour_scale_around_zero():
  matrices = {
    "a": np.array([[0.0, -3.0]]),
    "b": np.array(
      [
        [1.0],
      ]
    ),
  }
  *grid, _ = viz.heat_maps(matrices, "key", "value").axes
  assert [axes.get_title() for axes in grid] == ["a", "b"]
  assert [axes.get_images()[0].get_clim() for axes in grid] == [(-3, 3)] * 2
  numbers = [[t.get_text() for t in axes.texts] for axes in grid]
  assert numbers == [["-3.0"], ["1.0"]]


def test_large_heat_maps_have_no_numbers():
  (axes, _) = viz.heat_maps({"a": np.ones((64, 64))}, "key", "value").axes
  assert not axes.texts


def test_images_are_drawn_in_rows_by_group():
  groups = {"a": np.zeros((3, 4, 4)), "b": np.ones((3, 4, 4))}
  grid = np.reshape(viz.images(groups).axes, (2, 3))
  assert [row[0].get_ylabel() for row in grid] == ["a", "b"]
  assert grid[1, 2].get_images()[0].get_array().min() == 1


def test_curves_have_a_panel_per_title_and_a_line_per_name():
  panels = {"x": {"a": {1: 2.0, 10: 3.0}}, "y": {"a": {1: 5.0, 10: 6.0}}}
  figure = viz.curves(panels, "tokens", "seconds", log="x")
  for axes, (title, lines) in zip(figure.axes, panels.items(), strict=True):
    (line,) = axes.get_lines()
    assert axes.get_title() == title
    np.testing.assert_array_equal(line.get_xydata(), [*lines["a"].items()])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
  assert [t.get_text() for t in figure.legends[0].texts] == ["a"]
