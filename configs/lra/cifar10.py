"""Image: gray CIFAR-10, pixel by pixel.

python train_lra.py --config=configs/lra/cifar10.py:nam_transformer,small \\
  --data_dir=data

Variant `small` has the benchmark's single layer and a fiftieth of its epochs.
"""

from configs.lra import base

TRAINING_IMAGES = 45_000

SETTINGS = base.epochs(200, TRAINING_IMAGES, batch_size=256) | {
  "learning_rate": 0.0005,
  "weight_decay": 0.0,
  "model": base.size(128, 64, 128, num_heads=8, num_layers=1)
  | {
    "dropout_rate": 0.3,
    "attention_dropout_rate": 0.2,
    "classifier_pool": "CLS",
    "learn_pos_emb": True,
  },
}
MODELS = {
  "synthesizer": {"model": {"synthesizer_mode": "random"}},
  "local": {
    "model": {"num_heads": 2, "block_size": 64, "classifier_pool": "MEAN"},
  },
  "longformer": {
    "model": {"num_heads": 4, "num_layers": 4, "classifier_pool": "MEAN"},
  },
  "reformer": {"model": base.size(64, 32, 64, num_heads=8, num_layers=4)},
  "bigbird": {"model": {"num_heads": 4, "block_size": 64}},
  "sinkhorn": {
    "weight_decay": 0.7,
    "model": base.size(32, 32, 64, num_heads=1, num_layers=1)
    | {"block_size": 64, "dropout_rate": 0.1},
  },
  "transformer_tlb": {
    "learning_rate": 0.001,
    "model": base.LATENT_BOTTLENECK
    | {
      "self_to_cross_ratio_input_updater": 1,
      "num_state_tokens": 5,
      "block_size": 32,
    },
  },
}
VARIANTS = {
  "paper": base.epochs(100, TRAINING_IMAGES, batch_size=4),
  "small": base.epochs(4, TRAINING_IMAGES, batch_size=32)
  | {
    "learning_rate": 2e-3,
    "warmup": 300,
    "weight_decay": 0.01,
    "model": {
      "dropout_rate": 0.1,
      "attention_dropout_rate": 0.1,
      "classifier_pool": "MEAN",
    },
  },
}


def get_config(arg: str = "nam_transformer"):
  """arg: "model type" or "model type,variant"."""
  return base.get_config("cifar10", arg, SETTINGS, MODELS, VARIANTS)
