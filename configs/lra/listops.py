"""ListOps: the value of a nested expression of up to 2,000 tokens.

python train_lra.py --config=configs/lra/listops.py:nam
"""

from configs.lra import base

PRESETS = {
  "lra": {
    "batch_size": 32,
    "accumulate_steps": 2,  # so that every memory fits into 24 GiB
    "num_steps": 5000,
    "learning_rate": 0.05,
    "weight_decay": 0.1,
    "schedule": base.RSQRT,
    "warmup_steps": 1000,
    "eval_every": 50,
    "checkpoint_every": 1000,
    "task_kwargs": {"max_length": 2000},
    "model_kwargs": {
      "emb_dim": 512,
      "num_heads": 8,
      "num_layers": 4,
      "qkv_dim": 512,
      "mlp_dim": 1024,
    },
  },
  "paper": {
    "batch_size": 2,
    "num_steps": 80_000,
    "learning_rate": 0.05,
    "weight_decay": 0.01,
    "schedule": base.RSQRT,
    "warmup_steps": 1000,
    "eval_every": 800,
    "checkpoint_every": 10_000,
    "task_kwargs": {"max_length": 1000},
    "model_kwargs": {
      "emb_dim": 256,
      "num_heads": 4,
      "num_layers": 4,
      "qkv_dim": 256,
      "mlp_dim": 1024,
    },
  },
  "s5": base.s5(
    96_000,
    50,
    40,
    layers=8,
    width=128,
    weight_decay=0.04,
    dropout_rate=0.0,
  )
  | {"task_kwargs": {"max_length": 2000}},
  "cpu": base.cpu(3000, 32, num_layers=4, merge=(1, 4, 1, 1))
  | {"trim": 512, "task_kwargs": {"max_length": 2000}},
  # Expressions of 10 to 127 tokens.
  "plain": {
    **base.PLAIN_TEXT,
    "batch_size": 64,
    "num_steps": 600,
    "learning_rate": 1e-3,
    "eval_every": 300,
    "checkpoint_every": 300,
    "task_kwargs": {"max_length": 128, "min_length": 10},
    "model_kwargs": base.PLAIN_SIZES,
  },
}


def get_config(arg: str = "nam"):
  """arg: "attention" or "attention,preset"."""
  return base.get_config("listops", arg, PRESETS)
