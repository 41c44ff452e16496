"""mini-ImageNet: 64 base, 16 validation and 20 novel classes, 84 pixels.

python train_fewshot.py --config=configs/fewshot/mini_imagenet.py --data_dir=DIR

Preset `cpu` trains a small ResNet for 14 epochs, in half an hour on one core.
`sessions` learns 40 classes in 8 sessions, next to 60 base classes; nothing is
turned in its training, as turned images stand in for new classes in validation.
`claim` compares heads on the same features, which are trained for less time.
"""

from configs.fewshot import base

_CPU = base.photographs("folded_resnet", num_steps=7000, eval_every=700) | {
  "recipe": {"label_smoothing": 0.1, "rotation": 0.5, "ema": 0.998},
  "mirror": True,
}
_UPRIGHT = _CPU | {"recipe": {"label_smoothing": 0.1}, "mirror": False}


def get_config(arg: str = "all"):
  """arg: "heads,preset"; see base.py."""
  return base.get_config(
    arg,
    {
      "cpu": _CPU,
      "paper": base.PROTOCOL,
      "claim": base.claim({**_UPRIGHT, "stage1": base.stage(4000, 64, 1000)}),
      "sessions": {
        **_UPRIGHT,
        "stage1": base.stage(12_000, 64, 1000),
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
