"""What the configs of few-shot learning share.

All keys that are not set here have the defaults of `FewShotConfig`; any of them
can be given as `--config.<key>=<value>`, those of a stage, fields of
`TrainConfig`, as `--config.stage1.<key>=<value>`. The arguments of a config
file, `file.py:heads`, choose the heads:

  all         every head of `HEADS`, the default
  extensions  the tuned cosine classifier and NAM with each extension
  a,b,...     the named ones of both
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
}

_SGD = {
  "optimizer": "sgd",
  "momentum": 0.9,
  "nesterov": True,
  "weight_decay": 5e-4,
  "learning_rate": 0.1,
}


def get_config(arg: str, **fields) -> ml_collections.ConfigDict:
  """A config with the heads that arg names."""
  known = EXTENSIONS | HEADS
  chosen = {"all": HEADS, "extensions": EXTENSIONS}.get(arg or "all")
  if chosen is None:
    names = arg.split(",")
    for name in names:
      if name not in known:
        raise ValueError(
          f"unknown head {name!r}; known: all, extensions, {', '.join(known)}"
        )
    chosen = {name: known[name] for name in names}
  settings = {"seed": 0, "data_kwargs": {}, "backbone_kwargs": {}}
  return ml_collections.ConfigDict({**settings, "heads": chosen, **fields})


def stage(num_steps: int, batch_size: int, eval_every: int, **fields) -> dict:
  """SGD with a warm-up and one period of cosine decay."""
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


def protocol_stage(batch_size: int) -> dict:
  """The protocol's schedule: 60 epochs of 1,000 updates, four pieces."""
  return {
    **_SGD,
    "num_steps": 60_000,
    "batch_size": batch_size,
    "schedule": "constant * piecewise",
    "boundaries": (20_000, 40_000, 50_000),
    "scales": (1.0, 0.06, 0.012, 0.0024),
    "log_every": 1000,
    "eval_every": 1000,
    "checkpoint_every": 1000,
  }
