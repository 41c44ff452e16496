"""What the configs of all tasks of the Long Range Arena share.

A config file is chosen with model type and variant as
`--config=configs/lra/listops.py:nam_transformer,small`. Without a variant the
settings are the benchmark's, under the benchmark's names. Variant `paper` has
the changes with which the authors of NAM made their Table 3; both are meant for
a GPU. Variant `small` takes less than three quarters of an hour on two cores.

Any key here, of the engine's `TrainConfig` and of `LRAConfig` can be given as
`--config.<key>=<value>`, those of the model as `--config.model.<key>=<value>`.
"""

from typing import Any

import ml_collections

TEXT_SCHEDULE = "constant * linear_warmup * rsqrt_decay"
IMAGE_SCHEDULE = "constant * linear_warmup * cosine_decay"

# The temporal latent bottleneck, as in the text tasks.
LATENT_BOTTLENECK = {
  "self_to_cross_ratio_input_updater": 2,
  "num_cross_layers_input_updater": 1,
  "num_cross_layers_state_updater": 1,
  "num_state_tokens": 10,
  "block_size": 10,
  "use_global_pos_encoding": False,
}

Settings = dict[str, Any]


def get_config(
  task_name: str,
  arg: str,
  settings: Settings,
  models: dict[str, Settings],
  variants: dict[str, Settings],
) -> ml_collections.ConfigDict:
  """The config of a task.

  Args:
    task_name: a name of `lra_tasks.registry`.
    arg: "model type" or "model type,variant"; the former is a name of
      `nam_jax.models.lra`.
    settings: the benchmark's.
    models: changes for a model type.
    variants: changes for a variant, made last.
  """
  model_type, _, variant = arg.partition(",")
  if variant and variant not in variants:
    known = ", ".join(variants) or "none"
    raise ValueError(f"unknown variant {variant!r}; known: {known}")
  config = ml_collections.ConfigDict(
    {"task_name": task_name, "model_type": model_type, "random_seed": 0}
  )
  changes = (settings, models.get(model_type, {}), variants.get(variant, {}))
  for change in changes:
    config.update(change)
  return config


def size(
  emb_dim: int, qkv_dim: int, mlp_dim: int, num_heads: int, num_layers: int
) -> Settings:
  """Widths and numbers, in the order in which the benchmark is described."""
  return {
    "emb_dim": emb_dim,
    "qkv_dim": qkv_dim,
    "mlp_dim": mlp_dim,
    "num_heads": num_heads,
    "num_layers": num_layers,
  }


def epochs(number: int, rows: int, batch_size: int) -> Settings:
  """A run of so many epochs, with one epoch of warm-up and a cosine."""
  epoch = rows // batch_size
  return {
    "batch_size": batch_size,
    "num_train_steps": number * epoch,
    "eval_frequency": epoch,
    "checkpoint_freq": number * epoch // 2,
    "factors": IMAGE_SCHEDULE,
    "warmup": epoch,
    "steps_per_cycle": number * epoch,
  }
