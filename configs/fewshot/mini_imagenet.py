"""mini-ImageNet: 64 base, 16 validation and 20 novel classes, 84 pixels.

python train_fewshot.py --config=configs/fewshot/mini_imagenet.py --data_dir=DIR

Preset `cpu` trains a small ResNet for 24 epochs, in an hour on one core.
`sessions` learns 40 classes in 8 sessions, next to 60 base classes. `claim`
has a third of the updates, as it compares heads on the same features.
"""

from configs.fewshot import base

_CPU = base.photographs("folded_resnet", num_steps=12_000, eval_every=1000) | {
  "recipe": {"label_smoothing": 0.1},
}
_CLAIM = _CPU | {"stage1": base.stage(4000, 64, 1000)}


def get_config(arg: str = "all"):
  """arg: "heads,preset"; see base.py."""
  return base.get_config(
    arg,
    {
      "cpu": _CPU,
      "paper": base.PROTOCOL,
      "claim": base.claim(_CLAIM),
      "sessions": {
        **_CPU,
        **base.SESSIONS,
        "data_kwargs": {"sessions": True, "num_base_test": 100},
        "sessions": {"num_sessions": 8},
      },
    },
    data="mini-imagenet",
    pad=8,
    flip=True,
    num_episodes=2000,
    curve_shots=(1, 2, 3, 5, 10),
  )
