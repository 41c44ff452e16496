"""Shows a task's data: python -m lra_tasks.inspect image --data_dir DIR."""

import math
import textwrap

import numpy as np

from command_line import tool
from lra_tasks import listops_trees, registry, task, text

_EXAMPLES = 2
_CHARACTERS = 300
# Characters from dark to bright, for pictures of 32 x 16 characters.
_SHADES = np.array(list(" .:-=+*#%@"))
_COLUMNS, _LINES = 32, 16


def main(arguments: list[str] | None = None) -> None:
  """Runs the command line."""
  parser = tool.make_parser(
    "Prints size, classes, lengths and examples of each split.",
    "python -m lra_tasks.inspect",
    f"tasks: {', '.join(registry.TASKS)}",
  )
  add = parser.add_argument
  add("task", help="one of the tasks below")
  add("--data_dir", help="folder with the task's files")
  add("--max_length", type=int, help="tokens per row of listops and texts")
  add("--resolution", type=int, help="height and width of pathfinder")
  add("--validation", help="held_out or test reviews validate text")
  add("--level", help="easy, inter or hard pathfinder")
  tool.run(parser, _show, arguments)


def _show(options) -> None:
  given = vars(options)
  name, data_dir = given.pop("task"), given.pop("data_dir")
  settings = {key: value for key, value in given.items() if value is not None}
  a_task = registry.make_task(name, data_dir, **settings)
  kind = "pairs of " if a_task.is_pair else ""
  print(
    f"{a_task.name}: {kind}{a_task.max_length} tokens out of"
    f" {a_task.vocab_size}, {a_task.num_classes} classes"
  )
  for name in ("train", "validation", "test"):
    rows = getattr(a_task, name)
    if name == "validation" and rows is a_task.test:
      print("\nvalidation: the same rows as test")
    else:
      print(f"\n{name}: {len(rows)} rows")
      print("\n".join(_statistics(rows, a_task) + _examples(rows, a_task)))


def _statistics(rows: task.Rows, a_task: task.Task) -> list[str]:
  if not len(rows):
    return []
  counts = np.bincount(rows.labels, minlength=a_task.num_classes)
  lengths = rows.lengths
  return [
    "  classes: "
    + ", ".join(f"{i}: {count}" for i, count in enumerate(counts)),
    f"  lengths: min {lengths.min()}, median {np.median(lengths):.0f},"
    f" mean {lengths.mean():.1f}, max {lengths.max()},"
    f" cut {(lengths > a_task.max_length).mean():.1%}",
  ]


def _examples(rows: task.Rows, a_task: task.Task) -> list[str]:
  lines = []
  for number in range(min(_EXAMPLES, len(rows))):
    row = rows[number]
    lines.append(f"  row {number}, label {row['label']}:")
    for ids in row["inputs"] if a_task.is_pair else [row["inputs"]]:
      lines += [f"    | {line}" for line in _decoded(a_task, ids).split("\n")]
  return lines


def _decoded(a_task: task.Task, ids: np.ndarray) -> str:
  if a_task.name == "listops":
    words = " ".join(listops_trees.WORDS[i] for i in ids if i)
    return textwrap.fill(words[:_CHARACTERS], 72)
  if a_task.name in ("text", "retrieval"):
    # Whatever is in the text, the terminal gets plain characters.
    return textwrap.fill(ascii(text.decode(ids)[:_CHARACTERS]), 72)
  side = math.isqrt(len(ids))
  blocks = ids.reshape(_LINES, side // _LINES, _COLUMNS, side // _COLUMNS)
  shades = blocks.mean(axis=(1, 3)).astype(int) * len(_SHADES) // 256
  return "\n".join("".join(line) for line in _SHADES[shades])


if __name__ == "__main__":
  main()
