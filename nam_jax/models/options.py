"""Which options a model or one of its layers has, and errors for others."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flax import linen as nn

from nam_jax import spelling

# Fields that a layer takes from the network's size, if it has them.
_OF_SIZE = {
  *("num_heads", "qkv_dim", "mlp_dim", "max_len", "positions", "hide_padding"),
  *("dropout_rate", "attention_dropout_rate"),
}
# Fields that the name of an attention decides: whether it is causal.
BY_NAME = ("mode", "bidirectional")


def arguments(make: Callable) -> list[str]:
  """The arguments of a function, or the fields of a Flax module.

  Not those that a function would pass on.
  """
  return [
    name
    for name, argument in inspect.signature(make).parameters.items()
    if name not in ("parent", "name")
    and argument.kind is not argument.VAR_KEYWORD
  ]


def check(
  kind: str, given: Iterable[str], known: Iterable[str], prefix: str = ""
) -> None:
  """Raises for the first name in `given` that is not known.

  The arguments are those of `spelling.unknown`.
  """
  for name in given:
    if name not in (known := list(known)):
      raise ValueError(spelling.unknown(kind, name, known, prefix))


def of_attention(
  make: Callable, size: Any, given: Mapping[str, Any]
) -> list[str]:
  """The options of `make(size, **options)`; all given if that is unclear.

  They are its own arguments and, if it passes others on, fields of its layer.
  """
  _, *more = inspect.signature(make).parameters.values()
  names = [a.name for a in more if a.kind is not a.VAR_KEYWORD]
  if len(names) == len(more):
    return names
  made = make(size, **{name: given[name] for name in names if name in given})
  if not isinstance(made, functools.partial | nn.Module):
    return list(given)
  return list(dict.fromkeys([*names, *free_fields(made)]))


def free_fields(made: functools.partial | nn.Module) -> list[str]:
  """The fields of a layer that neither size nor name have decided."""
  if isinstance(made, functools.partial):
    layer, taken = made.func, _OF_SIZE & {*made.keywords}
  else:
    layer, taken = type(made), _OF_SIZE
  return [n for n in arguments(layer) if n not in (*taken, *BY_NAME)]
