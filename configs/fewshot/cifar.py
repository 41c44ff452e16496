"""CIFAR-FS, or FC100: 32 pixels, classes of CIFAR-100; for a GPU.

python train_fewshot.py --config=configs/fewshot/cifar.py --data_dir=DIR
python train_fewshot.py --config=configs/fewshot/cifar.py \
  --config.data=fc100 --data_dir=DIR
"""

from configs.fewshot import base


def get_config(arg: str = "all"):
  """arg: which heads; see base.py."""
  return base.get_config(
    arg,
    data="cifar-fs",
    backbone="resnet",
    feature_dropout_rate=0.5,
    pad=4,
    flip=True,
    num_val_episodes=2000,
    curve_shots=(1, 2, 3, 5, 10),
    stage1=base.protocol_stage(256),
    stage2=base.protocol_stage(8),
  )
