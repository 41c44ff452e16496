"""Pathfinder: are two dots joined by a dashed line? 256 x 256 pixels.

python train_lra.py --config=configs/lra/pathfinder256.py:nam_transformer \\
  --data_dir=data

The task is pathfinder256_hard; --task_name=pathfinder256_easy and
pathfinder256_inter are the others.
"""

from configs.lra import base

TRAINING_IMAGES = 160_000

SETTINGS = base.epochs(100, TRAINING_IMAGES, batch_size=32) | {
  "learning_rate": 0.001,
  "weight_decay": 0.0,
  "model": base.size(32, 32, 32, num_heads=4, num_layers=2)
  | {"classifier_pool": "CLS", "learn_pos_emb": True},
}


def get_config(arg: str = "nam_transformer"):
  """arg: the model type."""
  return base.get_config("pathfinder256_hard", arg, SETTINGS, {}, {})
