"""The models of Table 1 by name; the only file that knows all of them.

A model is a Flax module with model(inputs [b s], mask [b s], train=...) ->
logits [b s y]. To add one, register what makes it from the size of the
vocabulary and whatever else a config gives as `model_kwargs`:

  class Guess(nn.Module):
    vocab_size: int

    @nn.compact
    def __call__(self, inputs, mask, *, train=False):
      return nn.Embed(self.vocab_size, self.vocab_size)(inputs)

  MODELS["guess"] = Guess
"""

import difflib
import functools
from collections.abc import Callable, Sequence
from typing import Any

from flax import linen as nn

from nam_jax.baselines import lstm_attention, universal_transformer
from nam_jax.layers import self_attention, transformer
from nam_jax.models import cores
from nam_jax.models.transducer import Transducer


def nam_tm(
  vocab_size: int,
  *,
  emb_dim: int,
  num_heads: int,
  readout_dim: int,
  state_features: int,
  tape_length: int = 32,
  control_features: int | None = None,
  jump: bool = True,
  separate_erase: bool = False,
  right_bias: Sequence[float] = (0.0, 0.0),
  dropout_rate: float = 0.0,
) -> nn.Module:
  """Two NAM Turing machines that share a tape."""
  core = cores.TuringMachines(
    num_heads,
    readout_dim,
    state_features,
    tape_length,
    control_features,
    jump,
    separate_erase,
    tuple(right_bias),
    dropout_rate,
  )
  return Transducer(vocab_size, emb_dim, core)


def lsam(
  vocab_size: int,
  *,
  emb_dim: int,
  num_heads: int,
  mlp_dim: int,
  readout_dim: int,
  dropout_rate: float = 0.0,
) -> nn.Module:
  """LSAM encoder and decoder."""
  core = cores.LSAMEncoderDecoder(num_heads, mlp_dim, readout_dim, dropout_rate)
  return Transducer(vocab_size, emb_dim, core)


def dnc(
  vocab_size: int,
  *,
  emb_dim: int,
  controller_features: int,
  num_slots: int = 32,
  slot_width: int = 16,
  num_reads: int = 4,
  dropout_rate: float = 0.0,
) -> nn.Module:
  """Differentiable Neural Computer."""
  core = cores.Computer(
    controller_features, num_slots, slot_width, num_reads, dropout_rate
  )
  return Transducer(vocab_size, emb_dim, core)


def ut(
  vocab_size: int,
  *,
  emb_dim: int,
  num_heads: int,
  mlp_dim: int,
  num_steps: int,
  halting_threshold: float | None = None,
  dropout_rate: float = 0.0,
) -> nn.Module:
  """Universal Transformer."""
  core = universal_transformer.UniversalTransformer(
    _attention(num_heads, dropout_rate),
    num_steps,
    mlp_dim,
    halting_threshold,
    dropout_rate,
  )
  return Transducer(vocab_size, emb_dim, core)


def lstm(
  vocab_size: int,
  *,
  emb_dim: int,
  features: int | None = None,
  num_heads: int = 1,
  dropout_rate: float = 0.0,
) -> nn.Module:
  """Bidirectional LSTMs with attention between them."""
  core = lstm_attention.LSTMAttention(features, num_heads, dropout_rate)
  return Transducer(vocab_size, emb_dim, core)


def transformer_encoder(
  vocab_size: int,
  *,
  emb_dim: int,
  num_heads: int,
  mlp_dim: int,
  num_layers: int,
  max_len: int,
  dropout_rate: float = 0.0,
) -> nn.Module:
  """Bidirectional Transformer with learned positions."""
  core = transformer.TransformerEncoder(
    _attention(num_heads, dropout_rate),
    num_layers,
    mlp_dim,
    positions="learned",
    max_len=max_len,
    dropout_rate=dropout_rate,
  )
  return Transducer(vocab_size, emb_dim, core)


MODELS: dict[str, Callable[..., nn.Module]] = {
  "nam_tm": nam_tm,
  "nam_tm_nojump": functools.partial(nam_tm, jump=False),
  "lsam": lsam,
  "dnc": dnc,
  "ut": ut,
  "lstm": lstm,
  "transformer": transformer_encoder,
}


def make_model(
  name: str, vocab_size: int, model_kwargs: dict[str, Any]
) -> nn.Module:
  """The model of this name; an unknown name is a one-line error."""
  if name not in MODELS:
    nearest = difflib.get_close_matches(name, MODELS, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ";"
    raise ValueError(f"unknown model {name!r}{hint} known: {', '.join(MODELS)}")
  return MODELS[name](vocab_size, **model_kwargs)


def _attention(num_heads, dropout_rate):
  return functools.partial(
    self_attention.SelfAttention, num_heads, dropout_rate=dropout_rate
  )
