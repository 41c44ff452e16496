"""A sequence classifier with any attention, chosen by name.

The network and the names are those of the Long Range Arena.

`KINDS` knows every attention by name. To add one, write a layer with the call
interface of `SelfAttention`, and register a function that makes it from the
network's sizes and the options that a config gives as `attention_kwargs`:

  def mine(size: Size, *, window: int = 8):
    return functools.partial(MyAttention, size.num_heads, window=window)

  KINDS["mine"] = Kind(mine)
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from flax import linen as nn

from nam_jax import spelling
from nam_jax.baselines import lru, temporal_latent
from nam_jax.baselines.efficient import (
  bigbird,
  linformer,
  local,
  longformer,
  performer,
  reformer,
  sinkhorn,
  sparse,
  synthesizer,
)
from nam_jax.layers import (
  attention_fn,
  nam_attention,
  presets,
  transformer,
  transformer_block,
)
from nam_jax.layers.self_attention import SelfAttention
from nam_jax.models import options
from nam_jax.models.classifier import Classifier, TokenEncoder

Layer = Callable[[], nn.Module]


@dataclasses.dataclass(frozen=True)
class Size:
  """Sizes and rates of a network, in the benchmark's names."""

  emb_dim: int
  num_heads: int
  num_layers: int
  qkv_dim: int
  mlp_dim: int
  max_len: int  # of the encoded sequence, a CLS token included
  dropout_rate: float = 0.1
  attention_dropout_rate: float = 0.1  # of attention weights, if any
  learn_pos_emb: bool = False
  classifier_pool: str = "CLS"
  compat: bool = False  # compute as the benchmark's own code does
  # The benchmark has none of these.
  pool_norm: bool = False  # BatchNorm of what is pooled
  interact: bool = False  # the head sees products and differences of a pair
  embed_values: bool = False  # ids are numbers: brightness, not names
  embed_window: int = 1  # of so many neighbouring numbers
  norm: str = "layer"  # or "batch", in the blocks
  gated_mlp: bool = False  # SwiGLU instead of GELU
  merge: tuple[int, ...] = ()  # tokens that become one before each block


class Kind(NamedTuple):
  """An attention, or another encoder, and how it fits into the classifier."""

  make: Callable[..., Layer | nn.Module]  # (size, **options) -> layer's maker
  causal: bool = False  # a token sees no later one
  compat_mask: bool = True  # the benchmark's own code gives it the mask
  latent: bool = False  # make returns an encoder of latent tokens


def softmax(size: Size) -> Layer:
  """Softmax attention."""
  return _layer(SelfAttention, size, mask_queries=size.compat)


def linear(size: Size) -> Layer:
  """The Linear Transformer's attention."""
  return _memory(
    SelfAttention, size, attention_fn=attention_fn.linear_attention_fn
  )


def local_blocks(size: Size, *, block_size: int = 50) -> Layer:
  """Softmax attention inside blocks."""
  fn = local.local_attention_fn(block_size)
  return _layer(SelfAttention, size, attention_fn=fn)


def sparse_blocks(
  size: Size, *, block_size: int = 50, num_summary: int = 10
) -> Layer:
  """The Sparse Transformer's fixed patterns; a pooled first token sees all."""
  num_global = int(size.classifier_pool == "CLS")
  fn = sparse.sparse_attention_fn(block_size, num_summary, num_global)
  return _layer(SelfAttention, size, attention_fn=fn)


def performer_features(
  size: Size,
  *,
  attention_fn_cls: str = "generalized",
  attention_fn_kwargs: Mapping[str, Any] | None = None,
) -> Layer:
  """Random or ReLU features instead of the softmax."""
  if attention_fn_cls not in performer.PERFORMERS:
    raise ValueError(
      f"attention_fn_cls={attention_fn_cls!r} is not one of"
      f" {', '.join(performer.PERFORMERS)}"
    )
  layer = _memory(performer.PERFORMERS[attention_fn_cls], size)
  given = attention_fn_kwargs or {}
  options.check(
    f"option of {attention_fn_cls}",
    given,
    options.free_fields(layer),
    "attention_kwargs.attention_fn_kwargs.",
  )
  return functools.partial(layer, **given)


def sinkhorn_blocks(
  size: Size, *, block_size: int = 50, sort_activation: str = "softmax"
) -> Layer:
  """Softmax attention to a token's own block and to a mixture of all blocks."""
  return _layer(
    sinkhorn.SinkhornAttention,
    size,
    block_size=block_size,
    max_num_blocks=-(-size.max_len // block_size),
    sort_activation=sort_activation,
  )


def diagonal_states(
  size: Size, *, state_dim: int | None = None, **options: Any
) -> Layer:
  """The Linear Recurrent Unit; its state is as wide as heads would be.

  The options are fields of `LRU`.
  """
  state_dim = state_dim or size.qkv_dim
  return functools.partial(lru.LRU, state_dim, **options)


def temporal_latents(size: Size, **options: Any) -> nn.Module:
  """The Temporal Latent Bottleneck's encoder; options set its depth.

  For CLS pooling, the mean of its state tokens is used.
  """
  return temporal_latent.TemporalLatentEncoder(
    num_heads=size.num_heads,
    qkv_dim=size.qkv_dim,
    mlp_dim=size.mlp_dim,
    positions=_positions(size),
    max_len=size.max_len,
    dropout_rate=size.dropout_rate,
    attention_dropout_rate=size.attention_dropout_rate,
    **options,
  )


def _of(layer, *fields):
  """Makes a layer whose options are its own fields; `fields` are the size's."""

  def make(size: Size, **options: Any) -> Layer:
    given = {name: getattr(size, name) for name in fields}
    return _layer(layer, size, **given, **options)

  return make


def _nam(**settings):
  """Makes a neural attention memory; options are further fields of it.

  Each of two directions needs a head, so an odd number of heads is doubled.
  """

  def make(size: Size, **options: Any) -> Layer:
    if settings.get("bidirectional") and size.num_heads % 2:
      size = dataclasses.replace(size, num_heads=2 * size.num_heads)
    return _memory(nam_attention.NAMAttention, size, **(settings | options))

  return make


KINDS: dict[str, Kind] = {
  "softmax": Kind(softmax),
  "linear": Kind(linear, compat_mask=False),
  "nam": Kind(_nam(mode="bidirectional"), compat_mask=False),
  "nam_causal": Kind(_nam(mode="causal"), causal=True),
  "nam_erase": Kind(_nam(mode="erase"), causal=True),
  **{
    name: Kind(_nam(**settings), causal=not settings.get("bidirectional"))
    for name, settings in presets.PRESETS.items()
    if name != "nam"  # which is nam_erase here
  },
  "performer": Kind(performer_features, compat_mask=False),
  "linformer": Kind(
    _of(linformer.LinformerAttention, "max_len"), compat_mask=False
  ),
  "local": Kind(local_blocks),
  "longformer": Kind(_of(longformer.LongformerAttention)),
  "bigbird": Kind(_of(bigbird.BigBirdAttention)),
  "sparse": Kind(sparse_blocks),
  "synthesizer": Kind(_of(synthesizer.SynthesizerAttention, "max_len")),
  "reformer": Kind(_of(reformer.ReformerAttention), compat_mask=False),
  "sinkhorn": Kind(sinkhorn_blocks),
  "lru": Kind(diagonal_states),
  "tlb": Kind(temporal_latents, latent=True),
}


def make_classifier(
  attention: str,
  attention_kwargs: Mapping[str, Any],
  *,
  vocab_size: int,
  num_classes: int,
  max_len: int,
  is_pair: bool,
  **sizes: Any,
) -> nn.Module:
  """model(inputs, mask, train=...) -> logits, with this kind of attention.

  Args:
    attention: a name in `KINDS`.
    attention_kwargs: its options.
    vocab_size: number of token ids.
    num_classes: number of classes.
    max_len: length of the inputs.
    is_pair: whether inputs are pairs of sequences, [b 2 s].
    **sizes: fields of `Size`.
  """
  if attention not in KINDS:
    raise ValueError(spelling.unknown("attention", attention, KINDS))
  kind = KINDS[attention]
  add_cls = not (kind.latent or is_pair)
  size = Size(max_len=max_len, **sizes)
  if size.interact and not is_pair:
    raise ValueError("interact needs a task with pairs of sequences")
  if kind.latent and size.classifier_pool == "CLS":  # none is the first
    size = dataclasses.replace(size, classifier_pool="MEAN")
  if add_cls and size.classifier_pool == "CLS":
    size = dataclasses.replace(size, max_len=max_len + 1)
  tokens = TokenEncoder(
    vocab_size,
    size.emb_dim,
    _encoder(attention, size, attention_kwargs),
    pool=size.classifier_pool,
    add_cls=add_cls,
    causal=kind.causal,
    latent=kind.latent,
    merged=math.prod(size.merge),
    mask_attention=kind.compat_mask or not size.compat,
    embed_values=size.embed_values,
    embed_window=size.embed_window,
    zero_is_padding=size.compat,
  )
  hidden = (size.mlp_dim, size.mlp_dim // 2) if is_pair else (size.mlp_dim,)
  return Classifier(
    tokens,
    hidden,
    num_classes,
    pool_norm=size.pool_norm,
    interact=size.interact,
  )


def _encoder(attention, size, given):
  kind = KINDS[attention]
  prefix = "attention_kwargs."
  known = options.of_attention(kind.make, size, given)
  for name in given:
    if name in options.BY_NAME and name not in known:
      raise ValueError(f"{prefix}{name} is no option: choose another attention")
  options.check(f"option of {attention}", given, known, prefix)
  made = kind.make(size, **given)
  if kind.latent:
    for name in ("norm", "gated_mlp", "merge"):
      if getattr(size, name) != getattr(Size, name):
        raise ValueError(f"{name} needs the blocks of a Transformer")
    return made
  return transformer.TransformerEncoder(
    made,
    size.num_layers,
    size.mlp_dim,
    positions=_positions(size),
    max_len=size.max_len,
    dropout_rate=size.dropout_rate,
    hide_padding=not size.compat,
    style=transformer_block.BlockStyle(size.norm, size.gated_mlp),
    merge=tuple(size.merge),
  )


def _positions(size):
  return "learned" if size.learn_pos_emb else "sinusoidal"


def _layer(layer, size, **options):
  return functools.partial(
    layer,
    num_heads=size.num_heads,
    qkv_dim=size.qkv_dim,
    dropout_rate=size.attention_dropout_rate,
    hide_padding=not size.compat,
    **options,
  )


def _memory(layer, size, **options):
  """A layer without attention weights, so without their dropout."""
  return functools.partial(
    layer, num_heads=size.num_heads, qkv_dim=size.qkv_dim, **options
  )
