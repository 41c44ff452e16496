"""The config of an earlier run, from its config.json.

python train_algorithmic.py --workdir=runs/again \\
  --config=configs/saved.py:runs/palin-nam_tm/config.json
"""

import json
from pathlib import Path

import ml_collections


def get_config(path: str = "") -> ml_collections.ConfigDict:
  """path: the path of config.json."""
  if not path:
    raise ValueError(
      "name a config.json: --config=configs/saved.py:CONFIG_JSON"
    )
  text = Path(path).read_text(encoding="utf-8")
  return ml_collections.ConfigDict(_with_tuples(json.loads(text)))


def _with_tuples(value):
  """JSON has no tuples; configs have no lists."""
  if isinstance(value, dict):
    return {name: _with_tuples(field) for name, field in value.items()}
  return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
