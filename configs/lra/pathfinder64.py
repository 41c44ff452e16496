"""Pathfinder: are two dots joined by a dashed line? 64 x 64 pixels.

python train_lra.py --config=configs/lra/pathfinder64.py:nam_transformer \\
  --data_dir=data

The task is pathfinder64_hard; --task_name=pathfinder64_easy and
pathfinder64_inter are the others.
"""

from configs.lra import base

TRAINING_IMAGES = 160_000

SETTINGS = base.epochs(200, TRAINING_IMAGES, batch_size=256) | {
  "learning_rate": 0.001,
  "weight_decay": 0.0,
  "model": base.size(32, 32, 32, num_heads=4, num_layers=2)
  | {"classifier_pool": "CLS", "learn_pos_emb": True},
}


def get_config(arg: str = "nam_transformer"):
  """arg: the model type."""
  return base.get_config("pathfinder64_hard", arg, SETTINGS, {}, {})
