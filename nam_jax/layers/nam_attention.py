"""Neural attention memory as an attention layer.

Every head writes its tokens to a memory matrix and reads it:

  bidirectional  all tokens are written, then every token reads them all: the
                 paper's NAM-Transformer, two matrix products
  causal         every token reads what was written up to and including itself
  erase          causal, with write and erase probabilities learned per token
                 and head: a write may replace what its key held before

All three take time linear in the sequence length. The last two can also run
token by token, from the memory they return.
"""

import math

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from nam_jax.layers.attention_layer import AttentionLayer
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import memory_form, normalize, outer_product

MODES = ("bidirectional", "causal", "erase")


class NAMAttention(AttentionLayer):
  """Multi-head self-attention by a memory that is written and read.

  Call interface and parameters (`query`, `key`, `value`, `out`) are those of
  `SelfAttention`, so it fits into `TransformerBlock`.

  Attributes:
    num_heads: number of heads, one memory each.
    mode: "bidirectional", "causal" or "erase"; see the module's docstring.
    initial_write: write probability before training, in mode "erase".
    initial_erase: erase probability before training, in mode "erase".
    dropout_rate: applied to what the heads read.
    dtype: used in the projections; memories are float32 or wider.
    mean_writes: write each of n real tokens with probability 1 / n, so that
      the memory is their mean and reads do not grow with the length; only in
      mode "bidirectional", and not in the paper.
  """

  mode: str = "bidirectional"
  initial_write: float = 0.5
  initial_erase: float = 0.5
  mean_writes: bool = False

  def __post_init__(self):
    if self.mode not in MODES:
      raise ValueError(f"mode must be one of {MODES}, got {self.mode!r}")
    for name in ("initial_write", "initial_erase"):
      if not 0 < getattr(self, name) < 1:
        raise ValueError(
          f"{name} must lie between 0 and 1, got {getattr(self, name)}"
        )
    if self.mean_writes and self.mode != "bidirectional":
      raise ValueError(
        f"mean_writes needs mode='bidirectional', got {self.mode!r}"
      )
    super().__post_init__()

  @nn.compact
  def continue_from(
    self,
    x: Tokens,
    memory: Float[Array, "b h v k"] | None,
    *,
    mask: Mask | None = None,
    train: bool = False,
  ) -> tuple[Tokens, Float[Array, "b h v k"]]:
    """Continues where an earlier call stopped; not in mode "bidirectional".

    Args:
      x: The tokens that follow.
      memory: What the earlier call returned; None starts a sequence.
      mask: True at real tokens. The others write nothing and read zero.
      train: Whether to apply dropout.

    Returns:
      The outputs, and the memory to continue from.
    """
    if self.mode == "bidirectional":
      raise ValueError("mode='bidirectional' has no memory to continue from")
    read, memory = self._read(x, memory, mask, train)
    return self.join_heads(read, x.shape[-1]), memory

  def attend(self, x, mask, train):
    return self._read(x, None, mask, train)[0]

  def _read(self, x, memory, mask, train):
    """What each token reads [b s h v], and the memory after the last one."""
    q, k, v = self.heads(x, "query", "key", "value")
    if self.mode == "bidirectional":
      p_w = _shares(k.shape[:3], mask) if self.mean_writes else 1
      read = outer_product.outer_product_attention(q, k, v, mask=mask, p_w=p_w)
    else:
      p_w, p_e = self._gates(x) if self.mode == "erase" else (1, 0)
      q, k = normalize.unit(q), normalize.unit(k)
      read, memory = memory_form.memory(
        q, k, v, p_w=p_w, p_e=p_e, initial_memory=memory, mask=mask
      )
    read = nn.Dropout(self.dropout_rate)(read, deterministic=not train)
    return read, memory

  def _gates(self, x):
    """Write and erase probabilities [b s h], learned from the token."""
    return (
      jax.nn.sigmoid(
        nn.Dense(
          self.num_heads,
          dtype=self.dtype,
          kernel_init=nn.initializers.xavier_uniform(),
          bias_init=nn.initializers.constant(math.log(p / (1 - p))),
          name=name,
        )(x)
      )
      for name, p in (
        ("write_gate", self.initial_write),
        ("erase_gate", self.initial_erase),
      )
    )


def _shares(shape, mask):
  """One over the number of real tokens, for each token and head [b s h]."""
  if mask is None:
    return 1 / shape[1]
  count = jnp.maximum(jnp.sum(mask, axis=1, dtype=jnp.float32), 1)
  return jnp.broadcast_to((1 / count)[:, None, None], shape)
