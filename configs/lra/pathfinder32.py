"""Pathfinder: are two dots joined by a dashed line? 32 x 32 pixels.

python train_lra.py --config=configs/lra/pathfinder32.py:nam_transformer,small

The task is pathfinder32_hard; --task_name=pathfinder32_easy and
pathfinder32_inter are the others. Without --data_dir the images are drawn.
"""

from configs.lra import base

TRAINING_IMAGES = 160_000

SETTINGS = base.epochs(200, TRAINING_IMAGES, batch_size=512) | {
  "learning_rate": 0.001,
  "weight_decay": 0.0,
  "model": base.size(32, 16, 32, num_heads=4, num_layers=4)
  | {
    "dropout_rate": 0.2,
    "attention_dropout_rate": 0.1,
    "classifier_pool": "MEAN",
    "learn_pos_emb": False,
  },
}
MODELS = {
  "linear_transformer": {
    "model": base.size(128, 64, 128, num_heads=2, num_layers=1),
  },
  "linformer": {"model": {"num_heads": 2, "num_layers": 1}},
  "performer": {"model": {"num_heads": 8}},
  "sparse_transformer": {"model": {"num_heads": 8, "num_layers": 1}},
  "reformer": {"model": base.size(64, 32, 64, num_heads=8, num_layers=2)},
  "bigbird": {
    "model": base.size(64, 32, 64, num_heads=2, num_layers=4)
    | {"block_size": 64},
  },
  "local": {
    "model": base.size(64, 32, 64, num_heads=4, num_layers=2)
    | {"block_size": 64, "dropout_rate": 0.1},
  },
  "longformer": {
    "model": {"num_heads": 2, "num_layers": 2, "dropout_rate": 0.1},
  },
  "sinkhorn": {
    "model": {"mlp_dim": 64, "num_layers": 2, "block_size": 64},
  },
  "synthesizer": {
    "model": base.size(64, 32, 64, num_heads=4, num_layers=2)
    | {"synthesizer_mode": "random"},
  },
  "transformer_tlb": {
    "learning_rate": 0.0005,
    "model": base.size(128, 64, 128, num_heads=8, num_layers=1)
    | base.LATENT_BOTTLENECK
    | {
      "num_state_tokens": 5,
      "block_size": 64,
      "use_global_pos_encoding": True,
      "dropout_rate": 0.1,
    },
  },
}
VARIANTS = {
  # Of the 20,000 images that are drawn, 16,000 are for training.
  "small": base.epochs(8, 16_000, batch_size=32)
  | {"model": base.size(64, 64, 128, num_heads=4, num_layers=2)},
}


def get_config(arg: str = "nam_transformer"):
  """arg: "model type" or "model type,variant"."""
  return base.get_config("pathfinder32_hard", arg, SETTINGS, MODELS, VARIANTS)
