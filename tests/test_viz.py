"""The pictures show what they are given."""

import numpy as np

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
