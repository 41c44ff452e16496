"""Transducers by the name of their core; the only file that knows all cores.

A core is a Flax module core(x [b s d], mask=[b s], train=...) -> [b s e]. To
add one, register its class; its fields are then arguments of `make_model`:

  class Each(nn.Module):
    width: int = 32

    @nn.compact
    def __call__(self, x, *, mask, train):
      return nn.relu(nn.Dense(self.width)(x))

  CORES["each"] = Each
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from flax import linen as nn

from nam_jax import spelling
from nam_jax.baselines import lstm_attention
from nam_jax.baselines import universal_transformer as universal
from nam_jax.layers import (
  attention_fn,
  nam_attention,
  presets,
  self_attention,
)
from nam_jax.layers import transformer as transformers
from nam_jax.models import cores, options
from nam_jax.models.transducer import Transducer


def transformer(
  *,
  num_heads: int,
  num_layers: int,
  mlp_dim: int,
  max_len: int,
  convolution: int | None = None,
  dropout_rate: float = 0.0,
) -> nn.Module:
  """A Transformer encoder with softmax attention and learned positions.

  With a convolution, each token first sees as many before it.
  """
  attention = _attention(num_heads, dropout_rate)
  return _with_positions(
    attention, num_layers, mlp_dim, max_len, convolution, dropout_rate
  )


def linear_transformer(
  *,
  num_heads: int,
  num_layers: int,
  mlp_dim: int,
  max_len: int,
  convolution: int | None = None,
  dropout_rate: float = 0.0,
) -> nn.Module:
  """The same with the Linear Transformer's attention."""
  attention = functools.partial(
    self_attention.SelfAttention,
    num_heads,
    attention_fn=attention_fn.linear_attention_fn,
  )
  return _with_positions(
    attention, num_layers, mlp_dim, max_len, convolution, dropout_rate
  )


def memory_transformer(
  settings: Mapping[str, Any],
  *,
  num_heads: int,
  num_layers: int,
  mlp_dim: int,
  dropout_rate: float = 0.0,
  **options: Any,
) -> nn.Module:
  """A causal Transformer with a memory as attention, without positions.

  Args:
    settings: of `NAMAttention`, by the model's name.
    num_heads: number of heads.
    num_layers: number of blocks.
    mlp_dim: inner width of the MLPs.
    dropout_rate: in the blocks.
    **options: further settings, which replace those of the name.
  """
  attention = functools.partial(
    nam_attention.NAMAttention, num_heads, **{**settings, **options}
  )
  attention().check()
  return transformers.TransformerEncoder(
    attention, num_layers, mlp_dim, positions=None, dropout_rate=dropout_rate
  )


def universal_transformer(
  *,
  num_heads: int,
  num_steps: int,
  mlp_dim: int,
  halting_threshold: float | None = None,
  dropout_rate: float = 0.0,
) -> nn.Module:
  """A Universal Transformer with softmax attention."""
  attention = _attention(num_heads, dropout_rate)
  return universal.UniversalTransformer(
    attention, num_steps, mlp_dim, halting_threshold, dropout_rate
  )


def _attention(num_heads, dropout_rate):
  return functools.partial(
    self_attention.SelfAttention, num_heads, dropout_rate=dropout_rate
  )


def _with_positions(
  attention, num_layers, mlp_dim, max_len, convolution, dropout_rate
):
  encoder = transformers.TransformerEncoder(
    attention,
    num_layers,
    mlp_dim,
    positions="learned",
    max_len=max_len,
    dropout_rate=dropout_rate,
  )
  return cores.Convolved(encoder, convolution) if convolution else encoder


# Causal memories by name: settings of `NAMAttention`.
MEMORIES: dict[str, dict[str, Any]] = {
  "nam_causal": {"mode": "causal"},
  **{
    name: settings
    for name, settings in presets.PRESETS.items()
    if not settings.get("bidirectional")
  },
}

CORES: dict[str, Callable[..., nn.Module]] = {
  "nam_tm": cores.TuringMachines,
  "nam_tm_nojump": functools.partial(cores.TuringMachines, jump=False),
  "lsam": cores.LSAMEncoderDecoder,
  "dnc": cores.Computer,
  "ut": universal_transformer,
  "lstm": lstm_attention.LSTMAttention,
  "transformer": transformer,
  "linear": linear_transformer,
  **{
    name: functools.partial(memory_transformer, settings)
    for name, settings in MEMORIES.items()
  },
}


def make_model(
  name: str, vocab_size: int, *, emb_dim: int = 64, **fields: Any
) -> nn.Module:
  """model(inputs [b s], mask [b s], train=...) -> logits [b s y].

  Args:
    name: a name in `CORES`.
    vocab_size: number of token ids, in and out.
    emb_dim: width of the embedded tokens.
    **fields: the core's fields. Lists, as in JSON, become tuples.
  """
  if name not in CORES:
    raise ValueError(spelling.unknown("model", name, CORES))
  known = ["emb_dim", *core_fields(name)]
  options.check(f"argument of model {name!r}:", fields, known)
  fields = {
    field: tuple(value) if isinstance(value, list) else value
    for field, value in fields.items()
  }
  return Transducer(vocab_size, emb_dim, CORES[name](**fields))


def core_fields(name: str) -> list[str]:
  """The arguments of `make_model` that this core understands."""
  names = options.arguments(CORES[name])
  if name in MEMORIES:
    attention = functools.partial(nam_attention.NAMAttention, num_heads=1)
    names += options.free_fields(attention)
  return list(dict.fromkeys(names))
