"""Your own images, one folder per class.

python train_fewshot.py --config=configs/fewshot/folder.py --data_dir=IMAGES

`python -m fewshot.inspect folder --data_dir=IMAGES` shows what is read.
"""

from configs.fewshot import base


def get_config(arg: str = "all"):
  """arg: "heads,preset"; see base.py."""
  return base.get_config(
    arg,
    {"cpu": {}},
    data="folder",
    backbone="conv64",
    pad=8,
    flip=True,
    num_query=10,
    stage1=base.stage(5000, 64, 1000),
    stage2=base.stage(2000, 8, 500, learning_rate=0.01),
  )
