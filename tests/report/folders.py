"""Folders as the scripts write them, with invented numbers."""

import json

from benchmarks import goals
from benchmarks import report as bench_report
from benchmarks.candidate import QUICK, Result
from nam_jax.training import whole_files


def write(folder, **files):
  """Writes the files, named without .json; bytes are written as they are."""
  folder.mkdir(parents=True, exist_ok=True)
  for name, content in files.items():
    whole_files.write_json(folder / f"{name}.json", content)
  return folder


def metrics(folder, metric, *shares):
  """metrics.jsonl with a row of both kinds for each share."""
  rows = []
  for i, share in enumerate(shares, start=1):
    about = {"step": 10 * i, "seconds": 2.0 * i}
    rows.append({**about, "kind": "train", "loss": 2.0 / i})
    rows.append({**about, "kind": "eval", metric: share})
  folder.mkdir(parents=True, exist_ok=True)
  text = "".join(json.dumps(row) + "\n" for row in rows)
  (folder / "metrics.jsonl").write_text(text)


def picture(path):
  """A small PNG."""
  from matplotlib.figure import Figure

  Figure(figsize=(1, 1)).savefig(path, format="png")


def algorithmic(folder, *accuracies, seed=0, finished=True, **config):
  """A run on palin, with the sequence accuracies of the three splits."""
  metric = "od_easy_sequence_accuracy"
  config = {
    "seed": seed,
    "num_steps": 20,
    "task": "palin",
    "model": "nam_tm",
    "curriculum_start": 10,
    "selection_metric": metric,
    "selection_mode": "max",
    **config,
  }
  metrics(folder, metric, 0.25, 0.75)
  write(folder, config=config)
  if not finished:
    return
  splits = {
    name: {"sequence_accuracy": accuracy, "token_accuracy": 1.0}
    for name, accuracy in zip(
      ("id", "od_easy", "od_hard"), accuracies, strict=True
    )
  }
  results = {
    "task": config["task"],
    "model": config["model"],
    "preset": "cpu",
    "seed": seed,
    "parameters": 120_800,
    "selected_epoch": 2.0,
    "splits": splits,
    "by_length": {},
    "wall_seconds": 125.0,
    "versions": {"python": "3.11", "jax": "0.10"},
  }
  write(folder, results=results)
  picture(folder / "accuracy_by_length.png")


def lra(folder, num_steps=20):
  """A run on ListOps with 21.5% after the last step."""
  config = {"seed": 0, "task": "basic", "attention": "nam"}
  config |= {"task_kwargs": {"max_length": 128}, "num_steps": num_steps}
  metrics(folder, "accuracy", 0.125, 0.25)
  results = {
    "accuracy": 0.215,
    "task": "basic",
    "attention": "nam",
    "seed": 0,
    "parameters": 77_258,
    "last": {"step": 20, "accuracy": 0.215},
    "best": {"step": 10, "accuracy": 0.225},
    "steps_per_second": 1.5,
    "wall_seconds": 3700.0,
    "versions": {"python": "3.11", "jax": "0.10"},
  }
  write(folder, config=config, results=results)


def fewshot(folder, data="mini-imagenet", *, finished=True):
  """A run with one head at one shot."""
  stage = {"num_steps": 40, "selection_metric": "novel", "settings": {}}
  stage["selection_mode"] = "max"
  for name in ("stage1", "nam-1shot"):
    write(folder / name, config=stage)
    metrics(folder / name, "novel", 0.5, 0.625)
  if not finished:
    return
  names = ("both", "novel", "base", "novel_to_base")
  means = {
    name: {"mean": mean, "ci95": 0.0025}
    for name, mean in zip(names, (0.3637, 0.4782, 0.5209, 0.1), strict=True)
  }
  head = {
    "accuracy": means,
    "compared_with": "cosine_tuned",
    "difference": {"both": {"mean": -0.001, "ci95": 0.0003}},
    "parameters": 18_627,
    "seconds": 9.0,
  }
  results = {
    "data": data,
    "backbone": "conv",
    "seed": 0,
    "num_way": 5,
    "num_episodes": 2000,
    "stage1": {"seconds": 61.0, "validation": []},
    "shots": {"1": {"nam": head}},
    "curve": {},
    "versions": {"python": "3.11", "jax": "0.10"},
  }
  write(folder, config={"data": data, "heads": {}}, results=results)


def bench(folder):
  """The benchmark's own output for two times."""
  races = [
    Result("causal", "forward", 64, "plain scan", 0.25, 1.0, 3.5, 10**9),
    Result("causal", "forward", 64, "memory_chunked", 0.125, 1.0, 3.5, 10**9),
    Result("causal", "forward", 64, "torch loop", skipped="is too slow"),
  ]
  judged = goals.judge(races, [64])
  write(folder, results=bench_report.as_json(QUICK, [races], judged))


def everything(root):
  """A run of each kind, two of them not finished."""
  algorithmic(root / "table" / "palin-0", 1.0, 0.9, 0.8)
  algorithmic(root / "table" / "palin-1", 1.0, 0.7, 0.6, seed=1)
  algorithmic(root / "running", finished=False, task="fib", num_steps=80)
  lra(root / "listops")
  fewshot(root / "images")
  fewshot(root / "started", finished=False)
  bench(root / "bench")
