"""Retrieval: does one paper cite the other? Two documents, byte by byte.

python train_lra.py --config=configs/lra/retrieval.py:nam --data_dir=DIR
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
    "warmup_steps": 8000,
    "eval_every": 100,
    "checkpoint_every": 1000,
    "task_kwargs": {"max_length": 4000},
    "model_kwargs": {
      "emb_dim": 128,
      "num_heads": 4,
      "num_layers": 4,
      "qkv_dim": 128,
      "mlp_dim": 512,
    },
  },
  "s5": base.s5(
    147_086,
    32,
    20,
    layers=6,
    width=128,
    weight_decay=0.05,
    dropout_rate=0.0,
    interact=True,
  )
  | {"task_kwargs": {"max_length": 4000}},
  "cpu": base.cpu(
    3000, 16, num_layers=3, merge=(1, 4, 1), pool_norm=True, interact=True
  )
  | {"task_kwargs": {"max_length": 1024}},
  "plain": {
    **base.PLAIN_TEXT,
    "batch_size": 32,
    "num_steps": 1000,
    "learning_rate": 1e-3,
    "eval_every": 250,
    "num_eval_batches": 50,
    "checkpoint_every": 250,
    "task_kwargs": {"max_length": 512},
    "model_kwargs": base.PLAIN_SIZES,
  },
}


def get_config(arg: str = "nam"):
  """arg: "attention" or "attention,preset"."""
  return base.get_config("retrieval", arg, PRESETS, convolution=4)
