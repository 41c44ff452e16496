"""Feature vectors from any backbone, in one .npz file.

python train_fewshot.py --config=configs/fewshot/features.py --data_dir=DIR

fewshot/data/features.py describes the file. Features are centred and scaled,
and stage 1 trains only the cosine classifier of the base classes.
"""

from configs.fewshot import base


def get_config(arg: str = "all"):
  """arg: "heads,preset"; see base.py."""
  return base.get_config(
    arg,
    {"cpu": {}},
    data="features",
    backbone="identity",
    stage1=base.stage(2000, 64, 500),
    stage2=base.stage(2000, 8, 500, learning_rate=0.01),
  )
