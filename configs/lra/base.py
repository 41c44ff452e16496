"""What the configs of the Long Range Arena share.

A config file is chosen with attention and preset as
`--config=configs/lra/text.py:nam,lra`. The attention is a name in
nam_jax/models/attentions.py; `--attention` replaces it. The presets:

  cpu    the best use of two cores and an hour; the default
  plain  the benchmark's block, small, for a core and some minutes
  s5     the sizes and epochs of S5 (Smith et al. 2023, 2208.04933); for a GPU
  lra    the benchmark's sizes and schedule; for a GPU
  paper  those of the paper's runs: smaller batches, more steps; for a GPU

The first and the third have a modern block around any attention: gated MLPs,
pixels read as numbers, and batch norms (s5) or merged tokens (cpu).

All keys that are not set here have the defaults of `TrainConfig` and of
`LRAConfig`; any of them can be given as `--config.<key>=<value>`.
"""

import ml_collections

RSQRT = "constant * linear_warmup * rsqrt_decay"

# What the plain presets of text and retrieval share.
PLAIN_TEXT = {
  "weight_decay": 0.01,
  "schedule": "warmup_cosine",
  "warmup_steps": 100,
  "grad_clip": 1.0,
}
PLAIN_SIZES = {
  "emb_dim": 64,
  "num_heads": 4,
  "num_layers": 2,
  "qkv_dim": 64,
  "mlp_dim": 128,
  "classifier_pool": "MEAN",
}
# What the cpu presets of the image tasks share: with 32 pixels in a row, the
# window has two rows above a pixel and two below it.
CPU_IMAGES = {
  "num_layers": 4,
  "merge": (1, 4, 1, 1),
  "embed_values": True,
  "embed_window": 133,
}


def get_config(
  task: str,
  arg: str,
  presets: dict[str, dict],
  *,
  softmax_share: float = 1.0,
  convolution: int = 0,
) -> ml_collections.ConfigDict:
  """The config of a task.

  Args:
    task: a name in `lra_tasks.registry`.
    arg: "attention" or "attention,preset".
    presets: preset -> fields.
    softmax_share: share of the steps that softmax attention, which is slower,
      makes with preset plain, so that all train for about the same time.
    convolution: width of short convolutions of nam_decay and nam_full with
      presets cpu and s5; 0 for none.
  """
  attention, _, preset = arg.partition(",")
  preset = preset or "cpu"
  if preset not in presets:
    raise ValueError(f"unknown preset {preset!r}. Known: {', '.join(presets)}")
  config = ml_collections.ConfigDict(
    {
      "task": task,
      "task_kwargs": {},
      "attention": attention,
      "attention_kwargs": {},
      "model_kwargs": {},
      "seed": 0,
      "compat": False,
      "optimizer": "adamw",
      "b2": 0.98,
      "eps": 1e-9,
      "log_every": presets[preset]["eval_every"],
    }
  )
  config.update(presets[preset])
  if preset == "plain" and attention == "softmax":
    config.num_steps = round(softmax_share * config.num_steps)
    config.warmup_steps = round(softmax_share * config.warmup_steps)
  is_ours = attention in ("nam_decay", "nam_full")
  if convolution and is_ours and preset in ("cpu", "s5"):
    config.attention_kwargs.convolution = convolution
  if attention == "tlb":  # a whole encoder, with blocks of its own
    for name in {"norm", "gated_mlp", "merge"} & {*config.model_kwargs}:
      del config.model_kwargs[name]
  return config


def epochs(examples: int, batch_size: int, number: int) -> dict:
  """An image task's schedule: a warm-up of one epoch, one cosine period."""
  epoch = examples // batch_size
  return {
    "batch_size": batch_size,
    "num_steps": epoch * number,
    "schedule": "warmup_cosine",
    "warmup_steps": epoch,
    "steps_per_cycle": epoch * number,
    "eval_every": epoch,
    "checkpoint_every": epoch * number // 2,
  }


def s5(
  examples: int,
  batch_size: int,
  number: int,
  *,
  layers: int,
  width: int,
  weight_decay: float,
  **model_kwargs: object,
) -> dict:
  """Depth, width, epochs, dropout and weight decay of S5; heads of 32 channels.

  The learning rate is the one of S5's states; its other parameters have 2 to 5
  times as much.
  """
  schedule = epochs(examples, batch_size, number)
  del schedule["steps_per_cycle"]
  return {
    **schedule,
    "learning_rate": 1e-3,
    "weight_decay": weight_decay,
    "grad_clip": 1.0,
    "model_kwargs": {
      "emb_dim": width,
      "num_heads": width // 32,
      "num_layers": layers,
      "qkv_dim": width,
      "mlp_dim": width,
      "classifier_pool": "MEAN",
      "norm": "batch",
      "gated_mlp": True,
      **model_kwargs,
    },
  }


def cpu(steps: int, batch_size: int, **model_kwargs: object) -> dict:
  """A modern block, and a schedule without epochs."""
  every = max(1, steps // 10)
  return {
    "batch_size": batch_size,
    "num_steps": steps,
    "learning_rate": 2e-3,
    "weight_decay": 0.01,
    "schedule": "warmup_cosine",
    "warmup_steps": steps // 20,
    "grad_clip": 1.0,
    "log_every": max(1, steps // 50),
    "eval_every": every,
    "num_eval_batches": 80,
    "checkpoint_every": every,
    "model_kwargs": {
      "emb_dim": 64,
      "num_heads": 4,
      "qkv_dim": 64,
      "mlp_dim": 64,
      "dropout_rate": 0.0,
      "classifier_pool": "MEAN",
      "gated_mlp": True,
      **model_kwargs,
    },
  }
