"""What the configs of few-shot learning share.

Keys that are not set here have the defaults of `FewShotConfig`. Any key can be
given as `--config.<key>=<value>`, and a field of a stage's `TrainConfig` as
`--config.stage1.<key>=<value>`. The argument of a config file,
`file.py:heads,preset`, chooses the heads:

  all         every head in `HEADS`; the default, except for folder.py
  extensions  the tuned cosine classifier and NAM with each extension
  a,b,...     these heads, from either

and the preset: `cpu`, the default, for two cores, or, if a config has it,
`paper`, the paper's sizes, for a GPU, `sessions`, for classes that arrive in
sessions, or `claim`, which compares the heads `attention` and `nam_attention`.
"""

import ml_collections

HEADS = {
  "cosine": {"kind": "cosine"},
  "cosine_tuned": {"kind": "cosine_tuned"},
  "attention": {"kind": "attention"},
  "prototypes": {"kind": "prototypes"},
  "nam": {"kind": "nam", "accumulate": "sum"},
  "nam_delta": {"kind": "nam", "accumulate": "delta"},
  "nam_projection": {"kind": "nam", "accumulate": "projection"},
  "nam_scan": {"kind": "nam", "accumulate": "scan"},
}
EXTENSIONS = {
  "cosine_tuned": HEADS["cosine_tuned"],
  "cosine_calibrated": {"kind": "cosine_tuned", "calibrate": True},
  "nam": HEADS["nam"],
  "nam_calibrated": {"kind": "nam", "calibrate": True},
  "nam_two_sided": {"kind": "nam", "two_sided": True},
  "nam_reads": {"kind": "nam", "gates_see_reads": True},
  "nam_attention": {"kind": "nam", "generator": True},
}

# What an argument may name -> the heads it stands for.
CHOICES = {"all": HEADS, "extensions": EXTENSIONS} | {
  name: {name: entry} for name, entry in (HEADS | EXTENSIONS).items()
}

_SGD = {
  "optimizer": "sgd",
  "momentum": 0.9,
  "nesterov": True,
  "weight_decay": 5e-4,
  "learning_rate": 0.1,
}


def get_config(
  arg: str, presets: dict[str, dict], default: str = "all", **fields
) -> ml_collections.ConfigDict:
  """A config with the heads and the preset that arg names.

  Args:
    arg: "heads,preset"; both may be left out.
    presets: preset -> fields.
    default: the heads if arg names none.
    **fields: fields that the presets share.
  """
  names = [name for name in arg.split(",") if name]
  preset = next((name for name in names if name in presets), "cpu")
  chosen = {}
  for name in [name for name in names if name not in presets] or [default]:
    if name not in CHOICES:
      raise ValueError(
        f"unknown head {name!r}; known: {', '.join(CHOICES)}; presets:"
        f" {', '.join(presets)}"
      )
    chosen |= CHOICES[name]
  nested = ("data_kwargs", "backbone_kwargs", "recipe", "sessions")
  settings = {"seed": 0, **{name: {} for name in nested}}
  return ml_collections.ConfigDict(
    {**settings, "heads": chosen, **fields, **presets[preset]}
  )


def stage(num_steps: int, batch_size: int, eval_every: int, **fields) -> dict:
  """SGD with a warm-up and cosine decay to zero."""
  return {
    **_SGD,
    "num_steps": num_steps,
    "batch_size": batch_size,
    "schedule": "warmup_cosine",
    "warmup_steps": max(1, num_steps // 20),
    "log_every": eval_every,
    "eval_every": eval_every,
    "checkpoint_every": eval_every,
    **fields,
  }


def photographs(backbone: str, num_steps: int, eval_every: int) -> dict:
  """Preset cpu for small photographs: a short schedule."""
  return {
    "backbone": backbone,
    "num_val_episodes": 500,
    "stage1": stage(num_steps, 64, eval_every),
    "stage2": stage(1000, 8, 250, learning_rate=0.01),
  }


# Preset sessions: tests with five shots.
SESSIONS = {"shots": (5,), "curve_shots": ()}


def claim(fields: dict) -> dict:
  """Preset claim: the paper's comparison of `nam_attention` and `attention`.

  Both have the attention generator beneath. Heads are selected by Both, and
  tested with five shots in 2,000 episodes.

  Args:
    fields: of the preset for the same data.
  """
  return {
    **fields,
    "shots": (5,),
    "curve_shots": (),
    "num_episodes": 2000,
    "compare_with": "attention",
    "stage2": {**fields["stage2"], "selection_metric": "both"},
  }


# Preset paper: the ResNet-like network, 60 epochs of 1,000 updates.
_PROTOCOL_STAGE = {
  **_SGD,
  "num_steps": 60_000,
  "schedule": "constant * piecewise",
  "boundaries": (20_000, 40_000, 50_000),
  "scales": (1.0, 0.06, 0.012, 0.0024),
  "log_every": 1000,
  "eval_every": 1000,
  "checkpoint_every": 1000,
}
PROTOCOL = {
  "backbone": "resnet",
  "feature_dropout_rate": 0.5,
  "num_val_episodes": 2000,
  "stage1": {**_PROTOCOL_STAGE, "batch_size": 256},
  "stage2": {**_PROTOCOL_STAGE, "batch_size": 8},
}
