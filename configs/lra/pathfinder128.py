"""Pathfinder: are two dots joined by a dashed line? 128 x 128 pixels.

python train_lra.py --config=configs/lra/pathfinder128.py:nam_transformer \\
  --data_dir=data

The task is pathfinder128_hard, known as Path-X; --task_name=pathfinder128_easy
and pathfinder128_inter are the others.
"""

from configs.lra import base

TRAINING_IMAGES = 160_000

SETTINGS = base.epochs(200, TRAINING_IMAGES, batch_size=64) | {
  "learning_rate": 0.001,
  "weight_decay": 0.0,
  "grad_clip_norm": 1.0,
  "model": base.size(32, 16, 32, num_heads=2, num_layers=1)
  | {"classifier_pool": "MEAN", "learn_pos_emb": True},
}


def get_config(arg: str = "nam_transformer"):
  """arg: the model type."""
  return base.get_config("pathfinder128_hard", arg, SETTINGS, {}, {})
