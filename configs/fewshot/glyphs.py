"""Drawn characters of invented scripts: no download, minutes on a CPU.

python train_fewshot.py --config=configs/fewshot/glyphs.py
"""

from configs.fewshot import base

_CPU = {
  "stage1": base.stage(600, 64, 200),
  "stage2": base.stage(200, 8, 100, learning_rate=0.01),
}


def get_config(arg: str = "all"):
  """arg: "heads,preset"; see base.py."""
  return base.get_config(
    arg,
    {"cpu": _CPU, "claim": base.claim(_CPU)},
    data="glyphs",
    backbone="conv",
    backbone_kwargs={"widths": (16, 32, 64)},
    pad=2,
    num_episodes=600,
    num_val_episodes=200,
    curve_shots=(1, 2, 3, 5, 10),
  )
