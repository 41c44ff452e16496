"""Adding two numbers of up to 10 digits, tested on up to 16.

python train_algorithmic.py --config=configs/algorithmic/fib.py:nam_tm
"""

from configs.algorithmic import base


def get_config(arg: str = "nam_tm"):
  """arg: "model" or "model,preset"."""
  config = base.get_config("fib", arg, epochs=10, curriculum_start=2)
  # The longest tests have 53 tokens; a machine writes most of them.
  if config.model in ("nam_tm", "nam_tm_nojump"):
    config.model_kwargs.right_bias = (1.0, 2.0)
    config.test_kwargs = {"tape_length": 64}
  if config.model == "dnc":
    config.test_kwargs = {"num_slots": 64}
  return config
