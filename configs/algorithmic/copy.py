"""Copying up to 10 digits, tested on up to 16.

python train_algorithmic.py --config=configs/algorithmic/copy.py:nam_tm
"""

from configs.algorithmic import base


def get_config(arg: str = "nam_tm"):
  """arg: "model" or "model,preset"."""
  return base.get_config("copy", arg, epochs=2)
