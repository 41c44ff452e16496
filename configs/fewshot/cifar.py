"""CIFAR-FS or FC100: 32 pixels, classes of CIFAR-100.

python train_fewshot.py --config=configs/fewshot/cifar.py --data_dir=DIR
python train_fewshot.py --config=configs/fewshot/cifar.py:all,paper \\
  --config.data=fc100 --data_dir=DIR
"""

from configs.fewshot import base


def get_config(arg: str = "all"):
  """arg: "heads,preset"; see base.py."""
  return base.get_config(
    arg,
    {
      "cpu": base.photographs("conv32", num_steps=6000, eval_every=500),
      "paper": base.PROTOCOL,
    },
    data="cifar-fs",
    pad=4,
    flip=True,
    curve_shots=(1, 2, 3, 5, 10),
  )
