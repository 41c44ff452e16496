"""The settings of NAM attention, and the parameters that follow from them.

Its linen and its nnx module have these fields and parameters; `nam_heads`
computes with them.
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from flax import linen as nn
from jaxtyping import DTypeLike

from nam_jax.layers import checks, parameters
from nam_jax.layers import decay as decays

MODES = ("bidirectional", "causal", "erase")
_CHOICES = {
  "mode": MODES,
  "gates": ("head", "channel"),
  "decay": decays.DECAYS,
  "decay_from": decays.SOURCES,
  "output_gate": (None, "sigmoid", "silu"),
}
_MODES_OF = {  # the modes in which a field does something
  "mean_writes": MODES[:1],
  "bidirectional": MODES[1:],
  "decay": MODES[1:],
  "convolution": MODES[1:],
  "gates": MODES[2:],
  "tied_gates": MODES[2:],
  "max_erase": MODES[2:],
  "num_writes": MODES[2:],
}


@dataclasses.dataclass(eq=False, repr=False)
class Settings:
  """The fields of NAM attention; `NAMAttention` says what they mean."""

  num_heads: int
  mode: str = "bidirectional"
  initial_write: float = 0.5
  initial_erase: float = 0.5
  mean_writes: bool = False
  _: dataclasses.KW_ONLY
  qkv_dim: int | None = None
  dropout_rate: float = 0.0
  use_bias: bool = False
  dtype: DTypeLike | None = None
  bidirectional: bool = False
  gates: str = "head"
  tied_gates: bool = False
  max_erase: float | int = 1
  decay: str | None = None
  decay_from: str = "token"
  convolution: int | None = None
  output_norm: bool = False
  output_gate: str | None = None
  num_writes: int = 1

  def check(self) -> None:
    """Checks that the settings fit together."""
    for name, choices in _CHOICES.items():
      if getattr(self, name) not in choices:
        raise ValueError(
          f"{name} must be one of {choices}, got {getattr(self, name)!r}"
        )
    for name, modes in _MODES_OF.items():
      is_set = getattr(self, name) != getattr(Settings, name)
      if is_set and self.mode not in modes:
        needed = " or ".join(map(repr, modes))
        raise ValueError(f"{name} needs mode={needed}, got {self.mode!r}")
    if not 0 < self.max_erase <= 2:
      raise ValueError(
        f"max_erase must lie between 0 and 2, got {self.max_erase}"
      )
    limits = {"initial_write": 1.0, "initial_erase": self.max_erase}
    for name, limit in limits.items():
      if not 0 < getattr(self, name) < limit:
        raise ValueError(
          f"{name} must lie between 0 and {limit:g}, got {getattr(self, name)}"
        )
    self._check_pairs()

  def _check_pairs(self):
    if self.tied_gates and self.gates != "head":
      raise ValueError("tied_gates needs gates='head', got 'channel'")
    if self.tied_gates and self.initial_write != self.initial_erase:
      raise ValueError(
        "with tied_gates, initial_write and initial_erase must be equal, got"
        f" {self.initial_write} and {self.initial_erase}"
      )
    if self.decay_from == "fixed" and self.decay != "head":
      raise ValueError(
        f"decay_from='fixed' needs decay='head', got {self.decay!r}"
      )
    if self.decay_from == "learned" and self.decay is None:
      raise ValueError("decay_from='learned' needs a decay, got None")
    if self.convolution is not None and self.convolution < 2:
      raise ValueError(
        f"convolution must be at least 2 tokens wide, got {self.convolution}"
      )
    if self.num_writes < 1:
      raise ValueError(f"num_writes must be at least 1, got {self.num_writes}")
    if self.bidirectional and self.num_heads % 2:
      raise ValueError(
        "bidirectional=True splits the heads into two directions, but"
        f" num_heads={self.num_heads} is odd"
      )

  def check_continues(self) -> None:
    """Checks that there is a state to continue from."""
    if self.mode == "bidirectional":
      raise ValueError("mode='bidirectional' has no memory to continue from")
    if self.bidirectional:
      raise ValueError("bidirectional=True has no memory to continue from")


def table(settings: Settings, width: int) -> parameters.Table:
  """All parameters of a layer, for tokens of this width."""
  h, use_bias = settings.num_heads, settings.use_bias
  k = checks.head_width(settings.qkv_dim or width, h, "qkv_dim")
  tokens = (width,)
  n = settings.num_writes
  per_head = (h,) if n == 1 else (h, n)
  shapes = {
    "query": (h, k),
    "key": (*per_head, k),
    "value": (*per_head, k),
  }
  found = {
    name: parameters.dense(tokens, shape, use_bias=use_bias)
    for name, shape in shapes.items()
  }
  per_gate = (*per_head, k) if settings.gates == "channel" else per_head
  for name, start in _gate_starts(settings).items():
    found[name] = parameters.dense(
      tokens,
      per_gate,
      use_bias=True,
      bias_init=nn.initializers.constant(math.log(start / (1 - start))),
    )
  if settings.decay and settings.decay_from != "fixed":
    channels = k if settings.decay == "channel" else None
    rates = each_way(settings, lambda n: decays.time_scales(n, channels))
    from_token = settings.decay_from == "token"
    found["decay_gate"] = decays.table(rates, width if from_token else None)
  if settings.convolution:
    found["short_convolution"] = parameters.dense(
      (settings.convolution,),
      (1 + 2 * n, h, k),
      use_bias=False,
      kernel_init=nn.initializers.lecun_uniform(),
    )
  if settings.output_norm:
    found["out_norm"] = {
      "scale": parameters.Parameter((k,), nn.initializers.ones)
    }
  if settings.output_gate:
    found["out_gate"] = parameters.dense(tokens, (h, k), use_bias=use_bias)
  found["out"] = parameters.dense((h, k), tokens, use_bias=use_bias)
  return found


def _gate_starts(settings: Settings) -> dict[str, float]:
  """The gates, and the sigmoid of each before training."""
  if settings.mode != "erase":
    return {}
  erase = settings.initial_erase / settings.max_erase
  if settings.tied_gates:
    return {"gate": erase}
  return {"write_gate": settings.initial_write, "erase_gate": erase}


def each_way(
  settings: Settings, rates: Callable[[int], np.ndarray]
) -> np.ndarray:
  """rates(n) for the n heads of each direction, one after the other."""
  ways = 2 if settings.bidirectional else 1
  return np.concatenate([rates(settings.num_heads // ways)] * ways)
