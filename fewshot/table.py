"""The results as tables to print, next to the paper's."""

from typing import Any

import numpy as np

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
  """One table for each number of shots in results.json, and of sessions."""
  shown = [
    _table(int(shot), tested, results["data"])
    for shot, tested in results["shots"].items()
  ]
  if "sessions" in results:
    found, data = results["sessions"], results["data"]
    rows = session_rows(found, data)
    shown.append(tables.as_text(rows, markdown=False))
  return "\n\n".join(shown)


def session_rows(found: dict[str, Any], data: str) -> list[list[str]]:
  """Accuracy by session and its summary, in percent, with published rows.

  Args:
    found: `sessions` of results.json.
    data: the name of the data.
  """
  last = found["num_sessions"]
  columns = sorted({round(x) for x in np.linspace(0, last, min(last, 8) + 1)})
  after = [f"after {s}" for s in columns]
  header = ["head", *after, "average", "base", "new", "forgetting"]
  rows = [[*header, "average, difference"]]
  for label, head in found["heads"].items():
    values = [head["all"][s] for s in columns]
    values += [head["average"]["mean"], head["base"][-1], head["new"][-1]]
    gain = head["difference"].get("average")
    rows.append(
      [
        label,
        *(f"{100 * x:.2f}" for x in (*values, head["forgetting"]["mean"])),
        percent(gain, "+.2f") if gain else "",
      ]
    )
  for name, (average, final) in paper.SESSIONS.get(data, {}).items():
    blanks = [""] * (len(after) - 1)
    cells = [*blanks, f"{final:.2f}", f"{average:.2f}", *[""] * 4]
    rows.append([f"{name}, ResNet", *cells])
  return rows


def _table(shot, tested, data):
  rows = [[f"{shot}-shot, %", *_COLUMNS.values()]]
  for label, found in tested.items():
    accuracy = found["accuracy"]
    cells = [
      percent(accuracy[name], ".2f") if name in accuracy else ""
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
      gain = percent(found["difference"]["both"], "+.2f")
      lines.append(f"Both, {label} - {found['compared_with']}: {gain}")
  return "\n".join(lines)


def percent(value: dict[str, float], form: str) -> str:
  """Mean and interval in percent."""
  return f"{100 * value['mean']:{form}} ±{100 * value['ci95']:.2f}"
