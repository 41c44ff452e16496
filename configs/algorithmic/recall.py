"""Associative recall: 1 to 32 pairs of keys and values.

python train_algorithmic.py --config=configs/algorithmic/recall.py:nam
python train_algorithmic.py --config=configs/algorithmic/recall.py:nam,repeated

With `repeated`, keys occur twice on average, and the last value counts. Every
model sees a few tokens back, so that a value can meet its key.
"""

from configs.algorithmic import base


def get_config(arg: str = "nam"):
  """arg: "model" and any of "repeated" and a preset, in this order."""
  model, *rest = arg.split(",")
  repeated = rest[:1] == ["repeated"]
  arg = ",".join([model, *rest[repeated:]])
  config = base.get_config("recall", arg, epochs=10, protocol="recall")
  config.task_kwargs = {"repeated": repeated}
  config.eval_batch_size = 128
  if config.preset == "cpu" and "num_layers" in config.model_kwargs:
    config.model_kwargs.update({"num_heads": 2, "mlp_dim": 128})
    config.model_kwargs.convolution = 4
  return config
