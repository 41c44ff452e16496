"""What the configs of all algorithmic tasks share.

A config file is chosen with model and preset as
`--config=configs/algorithmic/palin.py:nam_tm,paper`. Preset `cpu`, the default,
has about 120 thousand parameters and takes minutes on two cores; `converged`
has the same sizes, and trains for up to 60 epochs, until the token accuracy on
ID has not risen for eight; preset `paper` has the sizes of Table 1 and its 200
epochs, for a GPU.

All keys that are not set here have the defaults of `TrainConfig` and of
`AlgorithmicConfig`; any of them can be given as `--config.<key>=<value>`.
"""

import ml_collections

TRAINING_SAMPLES = 25_600

# A machine has the same size with and without JUMP.
_SMALL_MACHINE = {
  "emb_dim": 64,
  "num_heads": 4,
  "tape_length": 32,
  "readout_dim": 128,
  "state_features": 32,
}
_LARGE_MACHINE = {
  "emb_dim": 512,
  "num_heads": 8,
  "tape_length": 32,
  "control_features": 832,
  "readout_dim": 1024,
  "state_features": 256,
}

_SMALL_TRANSFORMER = {
  "emb_dim": 64,
  "num_heads": 4,
  "mlp_dim": 256,
  "num_layers": 2,
  "max_len": 256,
}
_LARGE_TRANSFORMER = {
  "emb_dim": 512,
  "num_heads": 8,
  "mlp_dim": 2432,
  "num_layers": 8,
  "max_len": 512,
}
# Memories know no positions.
_SMALL_MEMORY = {n: x for n, x in _SMALL_TRANSFORMER.items() if n != "max_len"}
_LARGE_MEMORY = {n: x for n, x in _LARGE_TRANSFORMER.items() if n != "max_len"}
# The settings of a NAM-Transformer that can track states.
_NAM = {"max_erase": 2, "output_norm": True, "output_gate": "silu"}
_MEMORIES = "nam_causal", "deltanet", "gated_deltanet", "kda", "gla", "retnet"

# Size of each model, by preset.
SIZES = {
  "cpu": {
    "nam_tm": _SMALL_MACHINE,
    "nam_tm_nojump": _SMALL_MACHINE,
    "lsam": {
      "emb_dim": 80,
      "num_heads": 4,
      "mlp_dim": 256,
      "readout_dim": 128,
    },
    "dnc": {"emb_dim": 64, "controller_features": 104, "num_slots": 32},
    "ut": {"emb_dim": 96, "num_heads": 4, "mlp_dim": 384, "num_steps": 4},
    "lstm": {"emb_dim": 76},
    "transformer": _SMALL_TRANSFORMER,
    "linear": _SMALL_TRANSFORMER,
    "nam": _SMALL_MEMORY | _NAM,
    "gated_deltanet2": _SMALL_MEMORY | {"mlp_dim": 208},
    **dict.fromkeys(_MEMORIES, _SMALL_MEMORY),
  },
  "paper": {
    "nam_tm": _LARGE_MACHINE,
    "nam_tm_nojump": _LARGE_MACHINE,
    "lsam": {
      "emb_dim": 1152,
      "num_heads": 8,
      "mlp_dim": 4096,
      "readout_dim": 2048,
    },
    "dnc": {
      "emb_dim": 512,
      "controller_features": 2688,
      "num_slots": 32,
      "slot_width": 64,
    },
    "ut": {"emb_dim": 1472, "num_heads": 8, "mlp_dim": 5888, "num_steps": 8},
    "lstm": {"emb_dim": 768, "features": 640},
    "transformer": _LARGE_TRANSFORMER,
    "linear": _LARGE_TRANSFORMER,
    "nam": _LARGE_MEMORY | _NAM,
    "gated_deltanet2": _LARGE_MEMORY | {"mlp_dim": 1408},
    **dict.fromkeys(_MEMORIES, _LARGE_MEMORY),
  },
}

SIZES["converged"] = SIZES["cpu"]
# With preset `cpu`, runs of other protocols than the paper's end when so many
# more epochs bring nothing to an accuracy that is at least this good; those of
# state tracking go on.
SOLVED, SOLVED_FOR = 0.999, 2
# Of preset `converged`: epochs at most, epochs without a better accuracy after
# which a run ends, and the share of the run that a curriculum takes.
MOST_EPOCHS, PATIENCE, CURRICULUM = 60, 8, 1 / 6

# Far past training, tapes are longer, and heads are kept on few cells.
_FAR = {"tape_length": 512, "sharpen": 1.5}

# What else a model needs besides its size.
SPECIAL = {
  "nam_tm": {"grad_clip": 0.1, "sweep_kwargs": _FAR},
  "nam_tm_nojump": {"grad_clip": 0.1, "sweep_kwargs": _FAR},
  "lsam": {"grad_clip": 0.1},
  "dnc": {"sweep_kwargs": {"num_slots": 256}},
  "ut": {"learning_rate": 1e-3, "wide_training": True},
  "transformer": {"learning_rate": 1e-3, "wide_training": True},
  "linear": {"learning_rate": 1e-3, "wide_training": True},
}

# With preset `cpu`: steps of this model take several times as long as those of
# the others, so it makes fewer, and all train for about the same time.
SHARE_OF_EPOCHS = {"ut": 0.4}


# Most digits in training, by protocol.
LONGEST_TRAINED = {
  "paper": 10,
  "chomsky": 40,
  "state_tracking": 40,
  "recall": 32,
}
# Batches of similar length are cut at a multiple of so many columns, except for
# models that know positions: a few widths to compile, and half the time. The
# table of the paper has preset `cpu` without it.
TRIM = {"paper": 8, "chomsky": 32, "state_tracking": 16, "recall": 32}


def get_config(
  task: str,
  arg: str,
  *,
  epochs: int,
  curriculum_start: int | None = None,
  protocol: str = "paper",
) -> ml_collections.ConfigDict:
  """The config of a task.

  Args:
    task: a name in `algorithmic.tasks.registry`.
    arg: "model" or "model,preset"; the model is a name in
      `nam_jax.models.registry`.
    epochs: length of a run with preset `cpu`; see `SHARE_OF_EPOCHS`.
    curriculum_start: most digits at the start of a run, except with preset
      `paper`; by default, as many as at its end.
    protocol: a name in `algorithmic.data`.
  """
  model, _, preset = arg.partition(",")
  preset = preset or "cpu"
  if preset not in SIZES:
    raise ValueError(f"unknown preset {preset!r}. Known: {', '.join(SIZES)}")
  config = ml_collections.ConfigDict(
    {
      "task": task,
      "task_kwargs": {},
      "protocol": protocol,
      "model": model,
      "model_kwargs": SIZES[preset].get(model, {}),
      "test_kwargs": {},
      "sweep_kwargs": {},
      "preset": preset,
      "seed": 0,
      "optimizer": "adam",
      "learning_rate": 3e-3,
      "grad_clip": 1.0,
      "selection_metric": "od_easy_sequence_accuracy",
      "selection_mode": "max",
      "curriculum_start": LONGEST_TRAINED[protocol],
    }
  )
  if protocol != "paper":
    config.selection_metric = "id_token_accuracy"
  config.update(SPECIAL.get(model, {}))
  cut = preset == "converged" or (preset == "cpu" and protocol != "paper")
  if cut and not config.get("wide_training"):
    config.trim = TRIM[protocol]
  if preset == "converged":
    _converged(config, curriculum_start)
  elif preset == "cpu":
    epochs = max(1, round(epochs * SHARE_OF_EPOCHS.get(model, 1)))
    _cpu(config, epochs, curriculum_start)
    if protocol != "paper":
      config.patience = SOLVED_FOR
      config.patience_metric = "id_token_accuracy"
      config.patience_at = SOLVED
  else:
    _paper(config)
  return config


def lengthen_tapes(config: ml_collections.ConfigDict, cells: int) -> None:
  """Gives a machine so many cells in tests, and keeps its heads sharp."""
  if config.model in ("nam_tm", "nam_tm_nojump"):
    config.model_kwargs.update({"tape_length": 64, "sharpen": 1.5})
    config.test_kwargs = {"tape_length": cells, "sharpen": 2.5}
    config.sweep_kwargs = {"tape_length": 2 * cells, "sharpen": 2.5}


def _cpu(config, epochs, curriculum_start):
  steps = _epochs(config, epochs, batch_size=64)
  config.schedule = "warmup_cosine"
  config.warmup_steps = min(100, steps // 10)
  config.curriculum_start = curriculum_start or config.curriculum_start


def _converged(config, curriculum_start):
  _cpu(config, MOST_EPOCHS, curriculum_start)
  config.patience = PATIENCE
  # Tokens get better long before a whole sequence is right.
  config.patience_metric = "id_token_accuracy"
  if curriculum_start:
    config.curriculum_full_at = CURRICULUM
    config.patience_from = round(CURRICULUM * config.num_steps)


def _paper(config):
  steps = _epochs(config, 200, batch_size=128)
  config.learning_rate = 1e-4
  config.schedule = "exponential"
  config.decay_factor = 0.98
  config.steps_per_decay = steps // 200
  config.grad_clip = 0.1
  config.model_kwargs.dropout_rate = 0.1


def _epochs(config, epochs, batch_size):
  """Sets the length of a run; evaluates and saves after every epoch."""
  epoch = TRAINING_SAMPLES // batch_size
  config.batch_size = batch_size
  config.num_steps = epochs * epoch
  config.eval_every = config.checkpoint_every = epoch
  return config.num_steps
