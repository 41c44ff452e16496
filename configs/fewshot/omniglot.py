"""Omniglot: 20-way, 1- and 5-shot, next to thousands of base characters.

python train_fewshot.py --config=configs/fewshot/omniglot.py --data_dir=DIR

Preset `sessions` learns 655 novel characters in 131 sessions.
"""

from configs.fewshot import base

_CPU = {
  "stage1": base.stage(6000, 64, 500),
  "stage2": base.stage(500, 8, 250, learning_rate=0.01),
}


def get_config(arg: str = "all"):
  """arg: "heads,preset"; see base.py."""
  return base.get_config(
    arg,
    {
      "cpu": _CPU,
      "claim": base.claim(_CPU),
      "sessions": {
        **_CPU,
        **base.SESSIONS,
        "sessions": {"num_sessions": 131, "num_query": 5, "num_rounds": 3},
      },
    },
    data="omniglot",
    data_kwargs={"rotations": True},
    backbone="conv64",
    pad=2,
    num_way=20,
    num_query=5,
    num_base_query=100,
    num_episodes=1000,
    num_val_episodes=200,
    curve_shots=(1, 2, 3, 5, 10),
  )
