"""The benchmark's own config files, unchanged.

A file `lra_benchmarks/<task>/configs/<model>.py` in any checkout returns a
ConfigDict with the benchmark's field names. `translate` turns it into ours,
by what the benchmark's trainers do with each field: some they never read.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nam_jax.training import UserError

# The attention of each `model_type`.
MODEL_TYPES = {
  "transformer": "softmax",
  "linear_transformer": "linear",
  "nam_transformer": "nam",
  "performer": "performer",
  "linformer": "linformer",
  "local": "local",
  "longformer": "longformer",
  "bigbird": "bigbird",
  "sparse_transformer": "sparse",
  "synthesizer": "synthesizer",
  "reformer": "reformer",
  "sinkhorn": "sinkhorn",
  "transformer_tlb": "tlb",
  "transformer_tlb_dual": "tlb",
}

# Our task and its settings, by the benchmark's name.
OUR_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
  "basic": ("listops", {}),
  "imdb_reviews": ("text", {}),
  "aan": ("retrieval", {}),
  "cifar10": ("image", {}),
  **{
    f"pathfinder{resolution}_{level}": (
      "pathfinder",
      {"resolution": resolution, "level": level},
    )
    for resolution in (32, 64, 128, 256)
    for level in ("easy", "inter", "hard")
  },
  "pathfinder32_hard": ("pathfinder", {}),  # the task's default
}

# Our field by the benchmark's name.
_RENAMED = {
  "num_train_steps": "num_steps",
  "eval_frequency": "eval_every",
  "checkpoint_freq": "checkpoint_every",
  "random_seed": "seed",
  "factors": "schedule",
  "warmup": "warmup_steps",
}

# Fields that no trainer reads; then those that one of them ignores.
_DEAD = (
  "trial",
  "max_target_length",
  "max_eval_target_length",
  "sampling_temperature",
  "sampling_top_k",
  "max_predict_token_length",
  "prompt",
)
_DEAD_IN = {
  "listops": ("tied_weights", "pooling_mode", "factors", "warmup"),
  "text": (
    "model_kwargs",
    "low_rank_features",
    "ignore_dot_product",
    "synthesizer_mode",
    "k",
  ),
  "retrieval": ("model_kwargs",),
}
# What the ListOps trainer uses instead of the two it ignores.
_LISTOPS_SCHEDULE = {
  "schedule": "constant * linear_warmup * rsqrt_decay",
  "warmup_steps": 1000,
}

# A field that only configs for one of the trainers have, by our task.
_MARKS = {
  "tied_weights": "listops",
  "classifier_pool": "text",
  "tokenizer": "retrieval",
  "steps_per_cycle": "image",
}
_SIZES = ("emb_dim", "num_heads", "num_layers", "qkv_dim", "mlp_dim")
_RATES = (
  "dropout_rate",
  "attention_dropout_rate",
  "learn_pos_emb",
  "classifier_pool",
)
_FOLDERS = {
  "listops": "basic",
  "text_classification": "imdb_reviews",
  "matching": "aan",
  "cifar10": "cifar10",
} | {f"pathfinder{r}": f"pathfinder{r}_hard" for r in (32, 64, 128, 256)}


def our_task(name: str) -> tuple[str, dict[str, Any]]:
  """Our task and its settings, for the benchmark's name or ours."""
  return OUR_NAMES.get(name, (name, {}))


def make_importable(config_file: str) -> None:
  """Lets a config file in a checkout import its base; others need nothing."""
  for folder in Path(os.path.abspath(config_file)).parents:
    if folder.name == "lra_benchmarks" and str(folder.parent) not in sys.path:
      sys.path.append(str(folder.parent))


def task_of(config_file: str, name: str = "") -> str:
  """The task of a config file: `name` or, if that says less, its folder's."""
  for folder in Path(os.path.abspath(config_file)).parents:
    if folder.name in _FOLDERS:
      found = _FOLDERS[folder.name]
      return found if name in ("", our_task(found)[0]) else name
  if not name:
    raise UserError(f"{config_file} names no task: use --task_name")
  return name


def check_task(config_file: str, config: Mapping[str, Any], task: str) -> None:
  """Raises if a config was written for the trainer of another task.

  Args:
    config_file: where the config is from.
    config: its fields, in the benchmark's names.
    task: name of the task, ours or the benchmark's.
  """
  wanted = our_task(task)[0]
  wanted = "image" if wanted == "pathfinder" else wanted  # one trainer
  written_for = [ours for mark, ours in _MARKS.items() if mark in config]
  if written_for and wanted in _MARKS.values() and wanted not in written_for:
    (found, *_) = written_for
    raise UserError(
      f"{config_file} is a config for the task {found}, not for {task}: use"
      f" --task_name={found}, or a config for {task}"
    )


def is_upstream(config: Mapping[str, Any]) -> bool:
  """Whether a config uses the benchmark's field names."""
  return "model_type" in config and "num_train_steps" in config


def translate(
  config: Mapping[str, Any], task: str
) -> tuple[dict[str, Any], list[str]]:
  """Our fields for the benchmark's, and notices for the user.

  Our own fields among them, `compat` for instance, stay as they are. So do
  unknown ones, for `from_config_dict` to reject.

  Args:
    config: all fields; nested ones as dicts.
    task: name of the task, ours or the benchmark's; it decides which fields
      are read.
  """
  rest, notices = dict(config), []
  task, settings = our_task(task)
  dead = [n for n in (*_DEAD, *_DEAD_IN.get(task, ())) if n in rest]
  for name in dead:
    del rest[name]
  if dead:
    notices.append(
      "these fields have no effect, as in the benchmark: " + ", ".join(dead)
    )
  model_type = rest.pop("model_type")
  if model_type not in MODEL_TYPES:
    raise UserError(
      f"unknown model_type {model_type!r}; known: {', '.join(MODEL_TYPES)}"
    )
  for name in ("save_checkpoints", "restore_checkpoints"):
    if not rest.pop(name, True):
      raise UserError(f"{name}=False is not supported: choose a new model_dir")
  options = _options(rest, task, notices)
  sizes = {n: options.pop(n) for n in (*_SIZES, *_RATES) if n in options}
  translated = {
    "task": task,
    "attention": MODEL_TYPES[model_type],
    "attention_kwargs": options,
    "model_kwargs": sizes,
    "optimizer": "adamw",
    "b2": 0.98,
    "eps": 1e-9,
    "log_every": rest.get("eval_frequency", 100),
    **(_LISTOPS_SCHEDULE if task == "listops" else {}),
  }
  if "max_length" in rest:
    settings = settings | {"max_length": rest.pop("max_length")}
  if settings:
    translated["task_kwargs"] = settings
  translated["num_eval_batches"] = max(0, rest.pop("num_eval_steps", 0))
  translated["grad_clip"] = rest.pop("grad_clip_norm", None) or 0.0
  for name, value in rest.items():
    translated[_RENAMED.get(name, name)] = value
  return translated, notices


def _options(rest, task, notices):
  """Takes all fields of the model out of `rest`."""
  options = dict(rest.pop("model_kwargs", {}))
  options |= {name: rest.pop(name) for name in _SIZES if name in rest}
  if task == "text" and "classifier_pool" in rest:
    options["classifier_pool"] = rest.pop("classifier_pool")
  if task == "retrieval":
    if rest.pop("tokenizer", "char") != "char":
      raise UserError("tokenizer must be 'char': documents are read as bytes")
    if "pooling_mode" in rest:
      options["classifier_pool"] = rest.pop("pooling_mode")
  options |= rest.pop("model", {})
  if "num_head" in options:
    options["num_heads"] = options.pop("num_head")
    notices.append("num_head is read as num_heads; the benchmark's code fails")
  return options
