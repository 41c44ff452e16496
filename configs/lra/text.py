"""Text: is a film review positive? IMDB, byte by byte.

python train_lra.py --config=configs/lra/text.py:nam --data_dir=DIR
"""

from configs.lra import base

_SIZES = {
  "emb_dim": 256,
  "num_heads": 4,
  "num_layers": 4,
  "qkv_dim": 256,
  "mlp_dim": 1024,
}
_SCHEDULE = {"learning_rate": 0.05, "schedule": base.RSQRT}

PRESETS = {
  "lra": {
    **_SCHEDULE,
    "batch_size": 32,
    "accumulate_steps": 2,  # so that every memory fits into 24 GiB
    "num_steps": 20_000,
    "weight_decay": 0.1,
    "warmup_steps": 8000,
    "eval_every": 100,
    "checkpoint_every": 1000,
    "task_kwargs": {"max_length": 1000},
    "model_kwargs": _SIZES,
  },
  "paper": {
    **_SCHEDULE,
    "batch_size": 3,
    "num_steps": 240_000,
    "weight_decay": 0.01,
    "warmup_steps": 80_000,
    "eval_every": 2000,
    "checkpoint_every": 60_000,
    "task_kwargs": {"max_length": 1000},
    "model_kwargs": _SIZES,
  },
  "s5": base.s5(
    22_500,
    50,
    35,
    layers=6,
    width=256,
    weight_decay=0.07,
    dropout_rate=0.1,
  )
  | {"task_kwargs": {"max_length": 4096}},
  "cpu": base.cpu(3600, 32, num_layers=3, merge=(1, 4, 1), dropout_rate=0.1)
  | {"trim": 512, "task_kwargs": {"max_length": 2048}},
  "plain": {
    **base.PLAIN_TEXT,
    "batch_size": 16,
    "num_steps": 2500,
    "learning_rate": 3e-3,
    "eval_every": 500,
    "num_eval_batches": 60,
    "checkpoint_every": 500,
    "task_kwargs": {"max_length": 2048},
    "model_kwargs": base.PLAIN_SIZES
    | {"num_layers": 1, "dropout_rate": 0.0, "pool_norm": True},
  },
}


def get_config(arg: str = "nam"):
  """arg: "attention" or "attention,preset"."""
  config = base.get_config(
    "text", arg, PRESETS, softmax_share=1 / 10, convolution=4
  )
  if arg == "nam,plain":  # it learns faster from a mean than from a sum
    config.attention_kwargs.mean_writes = True
  return config
