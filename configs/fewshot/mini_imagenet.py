"""mini-ImageNet, 64 base, 16 validation and 20 novel classes.

python train_fewshot.py --config=configs/fewshot/mini_imagenet.py:all,cpu \
  --data_dir=DIR

Presets, after the heads: `paper` (the default), the ResNet-like network and the
protocol's schedule, for a GPU; `cpu`, Conv32 and 36 epochs, two hours on one
core.
"""

from configs.fewshot import base


def get_config(arg: str = "all"):
  """arg: which heads, and "cpu" for the small preset; see base.py."""
  names = arg.split(",")
  heads = ",".join(name for name in names if name not in ("cpu", "paper"))
  fields = {
    "data": "mini-imagenet",
    "pad": 8,
    "flip": True,
    "num_episodes": 2000,
    "curve_shots": (1, 2, 3, 5, 10),
  }
  if "cpu" in names:
    return base.get_config(
      heads,
      **fields,
      backbone="conv32",
      num_val_episodes=500,
      stage1=base.stage(18_000, 64, 1500),
      stage2=base.stage(1000, 8, 250, learning_rate=0.01),
    )
  return base.get_config(
    heads,
    **fields,
    backbone="resnet",
    feature_dropout_rate=0.5,
    num_val_episodes=2000,
    stage1=base.protocol_stage(256),
    stage2=base.protocol_stage(8),
  )
