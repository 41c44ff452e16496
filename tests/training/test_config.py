"""Configs: every key is used, or raises a helpful error."""

import dataclasses
import re
from typing import Any

import ml_collections
import pytest

from nam_jax.training import TrainConfig, UserError, from_config_dict


@dataclasses.dataclass(frozen=True)
class Optics:
  width: int = 3


@dataclasses.dataclass(frozen=True)
class ScriptConfig(TrainConfig):
  task: str = "copy"
  limit: int | None = None
  optics: Optics = Optics()
  model_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)


def test_config_dict_becomes_a_dataclass_with_its_defaults():
  config = ml_collections.ConfigDict(
    {
      "task": "sort",
      "learning_rate": 1,
      "boundaries": [10, 20],
      "limit": 7,
      "optics": {"width": 5},
      "model_kwargs": {"heads": 2, "inner": {"a": 1}},
    }
  )
  built = from_config_dict(config, ScriptConfig)
  assert built == ScriptConfig(
    task="sort",
    learning_rate=1.0,
    boundaries=(10, 20),
    limit=7,
    optics=Optics(5),
    model_kwargs={"heads": 2, "inner": {"a": 1}},
  )
  assert type(built.learning_rate) is float
  assert type(built.model_kwargs) is dict


@pytest.mark.parametrize(
  ("config", "message"),
  [
    ({"learning_rat": 1.0}, "'learning_rat'; did you mean 'learning_rate'?"),
    ({"optics": {"widht": 1}}, "'optics.widht'; did you mean 'optics.width'?"),
    ({"zzz": 1}, "unknown config key 'zzz'. Known: seed, "),
    ({"batch_size": 1.5}, "batch_size=1.5 has type float, not int"),
    ({"batch_size": True}, "batch_size=True has type bool, not int"),
    ({"learning_rate": "1"}, "learning_rate='1' has type str, not float"),
    ({"tensorboard": 1}, "tensorboard=1 has type int, not bool"),
    ({"boundaries": (1, 2.5)}, "boundaries=2.5 has type float, not int"),
    ({"limit": "3"}, "limit='3' has type str, not int"),
    ({"optics": 4}, "optics=4 has type int, not Optics"),
    ({"optimizer": "ada"}, "optimizer='ada' is not one of adam, adamw, sgd"),
    ({"compute_dtype": "f16"}, "compute_dtype='f16' is not one of float32"),
    ({"num_steps": 0}, "num_steps=0 must be at least 1"),
    ({"warmup_steps": -1}, "warmup_steps=-1 must not be negative"),
    ({"grad_clip": -0.5}, "grad_clip=-0.5 must not be negative"),
    ({"seed": -1}, "seed=-1 must lie in [0, 2**32)"),
  ],
)
def test_wrong_config_names_the_key_and_the_way_out(config, message):
  with pytest.raises(UserError, match=re.escape(message)):
    from_config_dict(config, ScriptConfig)


def test_train_config_is_frozen():
  with pytest.raises(dataclasses.FrozenInstanceError):
    TrainConfig().seed = 1
