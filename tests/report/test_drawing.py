"""The drawings show what they are given."""

import io

import numpy as np

from report import drawing


def test_learning_curves_have_a_line_and_a_name_for_each_run():
  lines = {"a $x$": {10: 2.0, 20: 0.1}, "_b": {10: 3.0}}
  figure = drawing.learning_curves("training loss", lines)
  (axes,) = figure.axes
  first, second = axes.get_lines()
  np.testing.assert_array_equal(first.get_xydata(), [[10, 2.0], [20, 0.1]])
  np.testing.assert_array_equal(second.get_xydata(), [[10, 3.0]])
  assert first.get_marker() != second.get_marker()
  assert axes.get_xlabel() == "updates"
  assert axes.get_ylabel() == "training loss"
  assert axes.get_yscale() == "log"
  (legend,) = figure.legends
  assert [t.get_text() for t in legend.get_texts()] == [r"a \$x\$", " _b"]
  figure.savefig(io.BytesIO())


def test_accuracies_have_a_linear_axis():
  lines = {"a": {10: 1.0, 20: 100.0}}
  (axes,) = drawing.learning_curves("accuracy (%)", lines).axes
  assert axes.get_yscale() == "linear"
  assert axes.get_ylim() == (-3, 103)
  (axes,) = drawing.learning_curves("accuracy (%)", {"a": {1: 50.0}}).axes
  assert axes.get_ylim() == (-3, 103)


def test_curves_against_time_have_the_papers_numbers_in_their_colours():
  lines = {"nam": [{1.0: 20.0, 2.0: 30.0}, {1.5: 25.0}], "lru": [{2.0: 40.0}]}
  lines["softmax"] = [{}]
  papers = {"nam": 36.1, "softmax": 29.8}
  figure = drawing.accuracy_by_time("listops", lines, papers, 10.0)
  (axes,) = figure.axes
  first, second, dashed, other, dotted = axes.get_lines()
  np.testing.assert_array_equal(first.get_xydata(), [[1, 20], [2, 30]])
  np.testing.assert_array_equal(second.get_xydata(), [[1.5, 25]])
  np.testing.assert_array_equal(dashed.get_ydata(), [36.1, 36.1])
  assert first.get_color() == second.get_color() == dashed.get_color()
  assert first.get_color() != other.get_color()
  np.testing.assert_array_equal(dotted.get_ydata(), [10, 10])
  assert axes.get_ylim() == (-3, 103)
  assert axes.get_xlim()[0] == 0
  (legend,) = figure.legends
  names = [text.get_text() for text in legend.get_texts()]
  assert names == ["lru", "nam", "paper, same colour", "guessing"]
  figure.savefig(io.BytesIO())


def test_comparison_has_a_dot_for_each_run_and_one_for_the_paper():
  rows = {"palin": ([90.0, 80.0], 100.0), "fib": ([50.0], 97.4)}
  figure = drawing.comparison("accuracy (%)", rows)
  (axes,) = figure.axes
  dots = [c.get_offsets().tolist() for c in axes.collections]
  assert dots == [[[100, 0]], [[90, 0], [80, 0]], [[97.4, 1]], [[50, 1]]]
  assert [t.get_text() for t in axes.get_yticklabels()] == ["palin", "fib"]
  assert axes.get_ylim()[0] > axes.get_ylim()[1]


def test_long_names_leave_room_for_the_axes():
  rows = {f"{'long/' * 20}{i}": ([50.0], 60.0) for i in range(2)}
  lines = {name: {10: 50.0} for name in rows}
  for figure in (
    drawing.comparison("accuracy (%)", rows),
    drawing.learning_curves("accuracy (%)", lines),
  ):
    figure.savefig(io.BytesIO())
    (axes,) = figure.axes
    assert axes.get_window_extent().width > 0.3 * figure.bbox.width
    (legend,) = figure.legends
    assert legend.get_window_extent().width < figure.bbox.width
