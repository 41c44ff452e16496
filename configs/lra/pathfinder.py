"""Pathfinder: are two marked points ends of one contour? Pixel by pixel.

python train_lra.py --config=configs/lra/pathfinder.py:nam --data_dir=DIR
"""

from configs.lra import base

TRAINING_EXAMPLES = 160_000

PRESETS = {
  "lra": {
    **base.epochs(TRAINING_EXAMPLES, 512, 200),
    "learning_rate": 1e-3,
    "model_kwargs": {
      "emb_dim": 32,
      "num_heads": 4,
      "num_layers": 4,
      "qkv_dim": 16,
      "mlp_dim": 32,
      "dropout_rate": 0.2,
      "classifier_pool": "MEAN",
    },
  },
  "s5": base.s5(
    TRAINING_EXAMPLES,
    64,
    200,
    layers=6,
    width=192,
    weight_decay=0.03,
    dropout_rate=0.05,
    embed_values=True,
  ),
  "cpu": base.cpu(12_000, 32, **base.CPU_IMAGES),
  "plain": {
    "batch_size": 32,
    "num_steps": 1000,
    "learning_rate": 1e-3,
    "schedule": "warmup_cosine",
    "warmup_steps": 100,
    "eval_every": 250,
    "num_eval_batches": 50,
    "checkpoint_every": 250,
    "model_kwargs": base.PLAIN_SIZES,
  },
}


def get_config(arg: str = "nam"):
  """arg: "attention" or "attention,preset"."""
  return base.get_config("pathfinder", arg, PRESETS)
