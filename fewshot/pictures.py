"""The pictures saved with results.json: kinds of answers, accuracy by shots."""

from pathlib import Path
from typing import Any

# Metrics whose curves are drawn, with their titles.
_CURVES = {"both": "all queries, all classes", "novel": "novel classes alone"}


def save(workdir: Path, results: dict[str, Any]) -> None:
  """Writes the pictures, or says that matplotlib is missing."""
  try:
    from nam_jax import viz
  except ImportError:
    print("no pictures: they need matplotlib (pip install matplotlib)")
    return
  for shot, tested in results["shots"].items():
    figure = viz.answers(_outcomes(tested))
    figure.savefig(workdir / f"answers_{shot}shot.png", dpi=150)
  if results["curve"]:
    figure = viz.accuracy_by_shots(_curves(results["curve"]))
    figure.savefig(workdir / "accuracy_by_shots.png", dpi=150)


def _outcomes(tested):
  """Kind of query -> head -> answer -> share."""
  outcomes = {"queries of base classes": {}, "queries of novel classes": {}}
  for label, found in tested.items():
    means = {name: m["mean"] for name, m in found["accuracy"].items()}
    for kind, other in (("base", "novel"), ("novel", "base")):
      right, astray = means[f"joint_{kind}"], means[f"{kind}_to_{other}"]
      outcomes[f"queries of {kind} classes"][label] = {
        "right": right,
        "wrong, same kind": 1 - right - astray,
        "other kind": astray,
      }
  return outcomes


def _curves(curve):
  """Metric -> head -> shots -> (accuracy, interval)."""
  labels = next(iter(curve.values()))
  return {
    title: {
      label: {
        int(shot): (found[label][name]["mean"], found[label][name]["ci95"])
        for shot, found in curve.items()
      }
      for label in labels
    }
    for name, title in _CURVES.items()
  }
