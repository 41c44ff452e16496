"""The pictures show what they are given."""

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
