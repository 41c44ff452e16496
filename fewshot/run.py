"""Few-shot learning with base classes: both stages, tests, and their table."""

from typing import Any

from command_line import tables
from fewshot import evaluate, paper, stage1
from fewshot.config import Experiment
from fewshot.stage2 import HeadRun
from nam_jax import training

# Metrics of the printed table, with their titles.
COLUMNS = {
  "both": "Both",
  "novel": "Novel",
  "base": "Base",
  "joint_base": "joint base",
  "joint_novel": "joint novel",
  "harmonic": "harmonic",
  "novel_to_base": "novel→base",
}


def run_heads(experiment: Experiment, *, train: bool) -> dict[str, Any]:
  """Trains every head unless told not to, and tests it: results.json."""
  config = experiment.config
  state = stage1.load(experiment)
  features = stage1.features(experiment, state)
  drawn = {s: stage1.draw(experiment, s) for s in ("val", "test")}
  tests, curve = {}, {}
  for shot in config.shots:
    runs = {}
    for label in config.heads:
      run = HeadRun(experiment, features, drawn, label, shot)
      if train:
        run.train()
      run.load()
      if training.is_main():
        run.save_classifier({"params": state.params, **state.extra})
      runs[label] = run
    tests[str(shot)] = _tested(runs, shot)
    for other in config.curve_shots:
      if shot == min(config.shots, key=lambda s: (abs(s - other), s)):
        curve[str(other)] = {
          label: evaluate.summary(run.test(other))
          for label, run in runs.items()
        }
  return {
    "data": config.data,
    "backbone": config.backbone,
    "seed": config.seed,
    "num_way": config.num_way,
    "num_episodes": config.num_episodes,
    "stage1": _stage1(experiment),
    "shots": tests,
    "curve": dict(sorted(curve.items(), key=lambda item: int(item[0]))),
  }


def show(results: dict[str, Any]) -> str:
  """The tables of all numbers of shots, next to the paper's."""
  texts = []
  for shot, tested in results["shots"].items():
    summaries = {label: t["accuracy"] for label, t in tested.items()}
    rows = evaluate.show(summaries, COLUMNS)
    rows[0][0] = f"{shot}-shot, %"
    published = paper.ACCURACY.get(int(shot), {})
    if results["data"] != "mini-imagenet":
      published = {}
    for name, values in published.items():
      numbers = [f"{value:.2f}" for value in values]
      blanks = [""] * (len(COLUMNS) - len(numbers))
      rows.append([f"paper, {name}, resnet", *numbers, *blanks])
    texts.append(tables.as_text(rows, markdown=False))
    for label, found in tested.items():
      if found["difference"]:
        gain = found["difference"]["both"]
        texts[-1] += (
          f"\nBoth, {label} - {found['compared_with']}:"
          f" {100 * gain['mean']:+.2f} ±{100 * gain['ci95']:.2f}"
        )
  return "\n\n".join(texts)


def _tested(runs, shot):
  """Means, and the difference from the tuned cosine classifier, if any."""
  found = {label: run.test(shot) for label, run in runs.items()}
  tuned = [label for label, run in runs.items() if run.is_reference]
  tested = {}
  for label, accuracies in found.items():
    other = tuned[0] if tuned and tuned[0] != label else None
    tested[label] = {
      "accuracy": evaluate.summary(accuracies),
      "compared_with": other,
      "difference": evaluate.paired(accuracies, found[other]) if other else {},
      "novel_bias": runs[label].novel_bias,
      "parameters": training.parameter_count(runs[label].params),
      "seconds": runs[label].seconds(),
    }
  return tested


def _stage1(experiment):
  rows = training.read_metrics(experiment.workdir / "stage1")
  return {
    "seconds": rows[-1]["seconds"],
    "validation": [
      {name: row[name] for name in ("step", "novel", "base", "both")}
      for row in rows
      if row["kind"] == "eval"
    ],
  }
