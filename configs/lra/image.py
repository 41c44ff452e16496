"""Image: gray CIFAR-10, pixel by pixel.

python train_lra.py --config=configs/lra/image.py:nam --data_dir=DIR
"""

from configs.lra import base

TRAINING_EXAMPLES = 45_000

_SIZES = {
  "emb_dim": 128,
  "num_heads": 8,
  "num_layers": 1,
  "qkv_dim": 64,
  "mlp_dim": 128,
}
_LRA = {
  "learning_rate": 5e-4,
  "model_kwargs": {
    **_SIZES,
    "dropout_rate": 0.3,
    "attention_dropout_rate": 0.2,
    "classifier_pool": "CLS",
    "learn_pos_emb": True,
  },
}

PRESETS = {
  "lra": _LRA | base.epochs(TRAINING_EXAMPLES, 256, 200),
  "paper": _LRA | base.epochs(TRAINING_EXAMPLES, 4, 100),
  "s5": base.s5(
    TRAINING_EXAMPLES,
    50,
    250,
    layers=6,
    width=512,
    weight_decay=0.07,
    dropout_rate=0.1,
    embed_values=True,
  ),
  "cpu": base.cpu(7000, 32, **base.CPU_IMAGES) | {"weight_decay": 0.05},
  # The benchmark's widths, a fraction of its steps, sinusoidal positions:
  # learned ones start so small that for thousands of steps only colours count.
  "plain": {
    "batch_size": 16,
    "accumulate_steps": 4,
    "num_steps": 500,
    "learning_rate": 3e-3,
    "schedule": "warmup_cosine",
    "warmup_steps": 100,
    "grad_clip": 1.0,
    "eval_every": 500,
    "num_eval_batches": 60,
    "checkpoint_every": 500,
    "model_kwargs": {
      **_SIZES,
      "dropout_rate": 0.0,
      "attention_dropout_rate": 0.0,
      "classifier_pool": "MEAN",
    },
  },
}


def get_config(arg: str = "nam"):
  """arg: "attention" or "attention,preset"."""
  return base.get_config("image", arg, PRESETS, softmax_share=1 / 12)
