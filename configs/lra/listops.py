"""ListOps: the value of a nested expression of up to 2000 tokens.

python train_lra.py --config=configs/lra/listops.py:nam_transformer,small

Without --data_dir the expressions are generated. Variant `small` has shorter
ones, of 50 to 200 tokens. The benchmark reads no schedule from its files for
this task; here it is the one that it uses.
"""

from configs.lra import base

SETTINGS = {
  "batch_size": 32,
  "num_train_steps": 5000,
  "eval_frequency": 50,
  "checkpoint_freq": 10_000,
  "learning_rate": 0.05,
  "weight_decay": 0.1,
  "schedule": base.TEXT_SCHEDULE,
  "warmup_steps": 1000,
  "max_length": 2000,
  "model": base.size(512, 512, 1024, num_heads=8, num_layers=4),
}
MODELS = {
  "performer": {
    "model": {
      "attention_fn_cls": "softmax",
      "attention_fn_kwargs": {"ortho_scaling": 0.0, "nb_features": 2},
    },
  },
  "transformer_tlb": {
    "learning_rate": 0.0125,
    "model": base.LATENT_BOTTLENECK
    | {"num_state_tokens": 100, "block_size": 100},
  },
}
VARIANTS = {
  "paper": {
    "batch_size": 2,
    "num_train_steps": 80_000,
    "eval_frequency": 800,
    "weight_decay": 0.01,
    "max_length": 1000,
    "model": base.size(256, 256, 1024, num_heads=4, num_layers=4),
  },
  "small": {
    "num_train_steps": 4000,
    "eval_frequency": 500,
    "checkpoint_freq": 500,
    "learning_rate": 1e-3,
    "weight_decay": 0.01,
    "schedule": "warmup_cosine",
    "warmup_steps": 400,
    "max_length": 200,
    "listops": {
      "num_train_samples": 40_000,
      "min_length": 50,
      "max_length": 200,
    },
    "model": base.size(128, 128, 256, num_heads=4, num_layers=2),
  },
}


def get_config(arg: str = "nam_transformer"):
  """arg: "model type" or "model type,variant"."""
  return base.get_config("basic", arg, SETTINGS, MODELS, VARIANTS)
