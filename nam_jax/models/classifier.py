"""From token ids to one answer per sequence, or per pair of sequences.

The network of the Long Range Arena: embedding, encoder, pooling, and a head of
dense layers. Attention comes in with the encoder.
"""

import math

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Bool, Float, Int

from nam_jax.layers import merging
from nam_jax.layers.shapes import Mask
from nam_jax.ops import masks

POOLS = ("CLS", "MEAN", "SUM", "FLATTEN")


class TokenEncoder(nn.Module):
  """Token ids to one vector per sequence.

  Attributes:
    vocab_size: number of token ids.
    emb_dim: width of the embedded tokens.
    encoder: any module encoder(x [b s d], mask=[b s] or None, train=...) that
      returns [b s d].
    pool: "CLS" (one token), "MEAN", "SUM" or "FLATTEN" of the real tokens.
    add_cls: put a learned token in front, for "CLS" to pool; otherwise "CLS"
      pools the first token.
    causal: tokens do not see later ones, so the learned token follows the last
      real one, and "CLS" pools the last real token.
    latent: the encoder returns its own tokens [b n d], all of them real.
    merged: how many neighbouring tokens the encoder merges into one.
    mask_attention: let the encoder see the mask.
    embed_values: read ids as numbers, the brightness of pixels for instance: a
      linear layer of 2 id / (vocab_size - 1) - 1, not a vector for each id.
    embed_window: of so many values with the token's own in the middle; an odd
      number. More than one lets a token see its surroundings.
    zero_is_padding: id 0 is padding everywhere, even for a black pixel, and the
      mean includes padding, as in the Long Range Arena's own code.
  """

  vocab_size: int
  emb_dim: int
  encoder: nn.Module
  pool: str = "CLS"
  add_cls: bool = True
  causal: bool = False
  latent: bool = False
  merged: int = 1
  mask_attention: bool = True
  embed_values: bool = False
  embed_window: int = 1
  zero_is_padding: bool = False

  def __post_init__(self):
    if self.embed_window < 1 or self.embed_window % 2 == 0:
      raise ValueError(f"embed_window={self.embed_window} is not an odd number")
    if self.embed_window > 1 and not self.embed_values:
      raise ValueError("embed_window needs embed_values=True")
    if self.pool not in POOLS:
      raise ValueError(
        f"classifier_pool={self.pool!r} is not one of {', '.join(POOLS)}"
      )
    super().__post_init__()

  @nn.compact
  def __call__(
    self, inputs: Int[Array, "b s"], mask: Mask, *, train: bool = False
  ) -> Float[Array, "b e"]:
    """One vector per sequence; mask is True at real tokens."""
    masks.check_mask(mask, inputs.shape)
    if self.zero_is_padding:
      mask = inputs > 0
    inputs = masks.hide(inputs, mask)  # an id out of range is NaN, embedded
    x = self._embedded(inputs, mask)
    if self.add_cls and self.pool == "CLS":
      x, mask = self._with_cls(x, mask)
    y = self.encoder(x, mask=mask if self.mask_attention else None, train=train)
    if self.latent:
      mask = jnp.ones(y.shape[:2], bool)
    elif self.merged > 1:
      mask = merging.merged_mask(mask, self.merged)
    return self._pooled(y, mask)

  def _embedded(self, inputs, mask):
    if self.embed_values:
      values = 2 / (self.vocab_size - 1) * inputs.astype(jnp.float32) - 1
      values = _windows(masks.hide(values, mask), self.embed_window)
      return nn.Dense(self.emb_dim, name="embedding")(values)
    return nn.Embed(
      self.vocab_size,
      self.emb_dim,
      embedding_init=nn.initializers.normal(1.0),
      name="embedding",
    )(inputs)

  def _with_cls(self, x, mask):
    token = self.param("cls", nn.initializers.zeros, (1, 1, self.emb_dim))
    token = token.astype(x.dtype)
    if self.causal:  # replaces the first padding token
      x = jnp.pad(x, ((0, 0), (0, 1), (0, 0)))
      mask = jnp.pad(mask, ((0, 0), (0, 1)))
      last = masks.last_real(mask)
      here = jnp.arange(x.shape[1])[None] == last[:, None] + 1
      return jnp.where(here[..., None], token, x), mask | here
    token = jnp.broadcast_to(token, (len(x), 1, self.emb_dim))
    real = mask[:, :1] if self.zero_is_padding else jnp.ones((len(x), 1), bool)
    return (
      jnp.concatenate([token, x], axis=1),
      jnp.concatenate([real, mask], axis=1),
    )

  def _pooled(self, x, mask):
    if self.pool == "CLS":
      if not x.shape[1]:
        raise ValueError("classifier_pool='CLS' pools a token, but s = 0")
      if not self.causal:
        return x[:, 0]
      last = jnp.maximum(masks.last_real(mask), 0)[:, None, None]
      return jnp.take_along_axis(x, last, axis=1)[:, 0]
    if not self.zero_is_padding:
      x = masks.hide(x, mask)
    if self.pool == "FLATTEN":
      return x.reshape(len(x), math.prod(x.shape[1:]))
    total = jnp.sum(x, axis=1)
    if self.pool == "SUM":
      return total
    if self.zero_is_padding:
      return total / x.shape[1]
    count = jnp.maximum(jnp.sum(mask, axis=1, keepdims=True), 1)
    return total / count.astype(x.dtype)


def _windows(
  values: Float[Array, "b s"], width: int
) -> Float[Array, "b s {width}"]:
  """The values around each one; zeros beyond the ends."""
  length = values.shape[1]
  values = jnp.pad(values, ((0, 0), (width // 2, width // 2)))
  return jnp.stack([values[:, i : i + length] for i in range(width)], axis=-1)


class Classifier(nn.Module):
  """Logits for a sequence, or for several that one encoder reads.

  Attributes:
    tokens: what encodes each sequence.
    hidden: widths of the hidden layers of the head.
    num_classes: number of classes.
    pool_norm: BatchNorm between the two. Means over a thousand tokens are
      nearly equal; this removes what they have in common.
    interact: the head also sees the product and the difference of two
      sequences.
  """

  tokens: TokenEncoder
  hidden: tuple[int, ...]
  num_classes: int
  pool_norm: bool = False
  interact: bool = False

  @nn.compact
  def __call__(
    self,
    inputs: Int[Array, "b *n s"],
    mask: Bool[Array, "b *n s"],
    *,
    train: bool = False,
  ) -> Float[Array, "b y"]:
    """Logits; dropout in training needs the rng `dropout`."""
    b, *n, _ = inputs.shape
    inputs, mask = (
      x.reshape(math.prod(x.shape[:-1]), x.shape[-1]) for x in (inputs, mask)
    )
    x = self.tokens(inputs, mask, train=train)
    if self.pool_norm:
      x = nn.BatchNorm(not train, momentum=0.9, name="pool_norm")(x)
    x = x.reshape(b, math.prod(n), x.shape[-1])
    if self.interact:
      one, other = jnp.unstack(x, axis=1)
      x = jnp.stack([one, other, one * other, one - other], axis=1)
    x = x.reshape(b, math.prod(x.shape[1:]))
    for layer, width in enumerate(self.hidden):
      name = f"mlp{layer + 1}" if layer else "mlp"  # the benchmark's names
      x = nn.relu(nn.Dense(width, name=name)(x))
    return nn.Dense(self.num_classes, name="logits")(x)
