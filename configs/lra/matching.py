"""Retrieval: does one paper cite the other? Both are read byte by byte.

python train_lra.py --config=configs/lra/matching.py:nam_transformer,small \\
  --data_dir=data

Variant `small` reads the first 512 bytes of each.
"""

from configs.lra import base

SETTINGS = {
  "batch_size": 32,
  "num_train_steps": 5000,
  "eval_frequency": 100,
  "checkpoint_freq": 10_000,
  "learning_rate": 0.05,
  "weight_decay": 0.1,
  "factors": base.TEXT_SCHEDULE,
  "warmup": 8000,
  "max_length": 4000,
  "model": base.size(128, 128, 512, num_heads=4, num_layers=4),
}
MODELS = {
  "transformer_tlb_dual": {
    "batch_size": 128,
    "num_train_steps": 20_000,
    "eval_frequency": 5000,
    "learning_rate": 0.025,
    "model": base.LATENT_BOTTLENECK,
  },
}
VARIANTS = {
  "paper": {
    "batch_size": 3,
    "num_train_steps": 50_000,
    "eval_frequency": 1000,
    "weight_decay": 0.01,
  },
  "small": {
    "batch_size": 16,
    "num_train_steps": 3000,
    "eval_frequency": 500,
    "checkpoint_freq": 500,
    "num_eval_steps": 60,
    "learning_rate": 1e-3,
    "weight_decay": 0.05,
    "factors": base.IMAGE_SCHEDULE,
    "warmup": 300,
    "max_length": 512,
    "model": base.size(128, 128, 256, num_heads=4, num_layers=2)
    | {"classifier_pool": "MEAN"},
  },
}


def get_config(arg: str = "nam_transformer"):
  """arg: "model type" or "model type,variant"."""
  return base.get_config("aan", arg, SETTINGS, MODELS, VARIANTS)
