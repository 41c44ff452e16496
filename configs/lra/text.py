"""Text: is a film review, read byte by byte, positive?

python train_lra.py --config=configs/lra/text.py:nam_transformer,small \\
  --data_dir=data

Variant `small` reads the first 512 bytes.
"""

from configs.lra import base

SETTINGS = {
  "batch_size": 32,
  "num_train_steps": 20_000,
  "eval_frequency": 100,
  "checkpoint_freq": 10_000,
  "learning_rate": 0.05,
  "weight_decay": 0.1,
  "factors": base.TEXT_SCHEDULE,
  "warmup": 8000,
  "max_length": 1000,
  "model": base.size(256, 256, 1024, num_heads=4, num_layers=4),
}
MODELS = {
  "transformer_tlb": {
    "learning_rate": 0.025,
    "max_length": 4000,
    "model": base.LATENT_BOTTLENECK,
  },
}
VARIANTS = {
  "paper": {
    "batch_size": 3,
    "num_train_steps": 240_000,
    "eval_frequency": 2000,
    "checkpoint_freq": 60_000,
    "weight_decay": 0.01,
    "warmup": 80_000,
  },
  "small": {
    "num_train_steps": 4000,
    "eval_frequency": 500,
    "checkpoint_freq": 500,
    "learning_rate": 1e-3,
    "weight_decay": 0.05,
    "factors": base.IMAGE_SCHEDULE,
    "warmup": 400,
    "max_length": 512,
    "model": base.size(128, 128, 256, num_heads=4, num_layers=2)
    | {"classifier_pool": "MEAN", "dropout_rate": 0.2},
  },
}


def get_config(arg: str = "nam_transformer"):
  """arg: "model type" or "model type,variant"."""
  return base.get_config("imdb_reviews", arg, SETTINGS, MODELS, VARIANTS)
