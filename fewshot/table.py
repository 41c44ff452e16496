"""The results as tables to print, next to the paper's."""

from typing import Any

from command_line import tables
from fewshot import paper

_COLUMNS = {
  "both": "Both",
  "novel": "Novel",
  "base": "Base",
  "joint_base": "joint base",
  "joint_novel": "joint novel",
  "harmonic": "harmonic",
  "novel_to_base": "novel→base",
  "auroc": "AUROC",
  "joint_auroc": "joint AUROC",
}


def show(results: dict[str, Any]) -> str:
  """One table for each number of shots in results.json."""
  return "\n\n".join(
    _table(int(shot), tested, results["data"])
    for shot, tested in results["shots"].items()
  )


def _table(shot, tested, data):
  rows = [[f"{shot}-shot, %", *_COLUMNS.values()]]
  for label, found in tested.items():
    accuracy = found["accuracy"]
    cells = [
      _percent(accuracy[name], ".2f") if name in accuracy else ""
      for name in _COLUMNS
    ]
    rows.append([label, *cells])
  if data == "mini-imagenet":
    for name, values in paper.ACCURACY.get(shot, {}).items():
      numbers = [f"{value:.2f}" for value in values]
      blanks = [""] * (len(_COLUMNS) - len(numbers))
      rows.append([f"paper, {name}, resnet", *numbers, *blanks])
  lines = [tables.as_text(rows, markdown=False)]
  for label, found in tested.items():
    if found["difference"]:
      gain = _percent(found["difference"]["both"], "+.2f")
      lines.append(f"Both, {label} - {found['compared_with']}: {gain}")
  return "\n".join(lines)


def _percent(value, form):
  return f"{100 * value['mean']:{form}} ±{100 * value['ci95']:.2f}"
