"""A picture of the races over sequences."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks.candidate import Result
from nam_jax import viz

# Ours are solid lines, the others dashed. The order is the legend's.
STYLES = {
  "softmax": (viz.COLORS[6], "s", "--"),
  "elu linear": (viz.COLORS[4], "v", "--"),
  "nam": (viz.COLORS[0], "o", "-"),
  "causal nam": (viz.COLORS[2], "^", "-"),
  "memory_chunked": (viz.COLORS[1], "o", "-"),
  "memory_scan": (viz.COLORS[5], "P", "-"),
  "plain scan": (viz.GREY, "D", "--"),
  "torch attention": (viz.COLORS[3], "X", ":"),
  "torch loop": (viz.GREY, "*", ":"),
}
TITLES = {"bidirectional": "all tokens", "causal": "past tokens only"}
PANELS = (
  ("forward", "seconds", 1e3, "time (ms)"),
  ("forward+gradient", "seconds", 1e3, "time (ms)"),
  ("forward+gradient", "temporary_mib", 1, "temporary memory, JAX (MiB)"),
)


def cost_by_length(
  results: Sequence[Result], heads: tuple[int, int, int]
) -> Figure | None:
  """Time and memory against the number of tokens; None if there are none.

  Args:
    results: results of all groups; those over sequences are drawn.
    heads: batch, heads and width of a head, for the title.
  """
  groups = [
    g for g in TITLES if any(r.group == g and r.seconds for r in results)
  ]
  if not groups:
    return None
  figure = Figure(figsize=(14, 0.6 + 3.4 * len(groups)), layout="constrained")
  grid = figure.subplots(len(groups), 3, sharex=True, squeeze=False)
  for axes_row, group in zip(grid, groups, strict=True):
    for axes, (task, field, scale, label) in zip(axes_row, PANELS, strict=True):
      for name, (color, marker, line) in STYLES.items():
        points = [
          (r.size, scale * getattr(r, field))
          for r in results
          if (r.group, r.task, r.name) == (group, task, name)
          and r.seconds
          and getattr(r, field)
        ]
        if points:
          axes.loglog(
            *zip(*points, strict=True),
            color=color,
            marker=marker,
            linestyle=line,
            label=name,
          )
      _name_axes(axes, [r.size for r in results if r.group == group], label)
      axes.set_title(f"{TITLES[group]}: {task}")
    drawn = axes_row[0].get_legend_handles_labels()
    axes_row[-1].legend(*drawn, loc="upper left", bbox_to_anchor=(1, 1))
  for axes in grid[-1]:
    axes.set_xlabel("sequence length (tokens)")
  figure.suptitle(
    "Cost against length, lower is better (batch {}, {} heads of width {},"
    " float32)".format(*heads)
  )
  return figure


def _name_axes(axes, sizes, label):
  axes.set_ylabel(label)
  axes.set_xticks(sorted(set(sizes)), [str(s) for s in sorted(set(sizes))])
  axes.xaxis.set_minor_locator(NullLocator())
  axes.grid(alpha=0.3)
