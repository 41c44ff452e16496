"""Synthesizer attention (Tay et al. 2020): scores without pairs of tokens.

The scores of a query are learned for each pair of positions, or are a function
of its own token alone. Products of queries and keys may be added to them.

  random             one learned number for each head and pair of positions
  factorized_random  the same as a product of two tables of rank k
  dense              a two-layer network gives a token's scores of all positions
"""

import jax.numpy as jnp
from flax import linen as nn

from nam_jax.baselines.efficient import blocks
from nam_jax.layers.attention_layer import AttentionLayer
from nam_jax.ops import precision

MODES = ("random", "factorized_random", "dense")


class SynthesizerAttention(AttentionLayer):
  """Multi-head Synthesizer attention, with the interface of `SelfAttention`.

  The parameters are `value` and `out`; `query` and `key` unless
  `ignore_dot_product`; by mode `random` [h max_len max_len], `random1`
  [h max_len k] and `random2` [h k max_len], or `dense_syn` and `dense_syn_len`.
  All are trained. Padded tokens are never attended to. The cost is quadratic.

  Attributes:
    max_len: longest sequence, including its CLS token.
    dtype: used in the computation; scores are float32 or wider.
    synthesizer_mode: where scores come from, see the module's docstring;
      several modes are joined by "+", their scores added.
    ignore_dot_product: whether to leave out products of queries and keys.
    k: rank of the factorized tables.
  """

  max_len: int
  synthesizer_mode: str = "random"
  ignore_dot_product: bool = False
  k: int = 32

  def __post_init__(self):
    modes = self.synthesizer_mode.split("+")
    if not set(modes) <= set(MODES) or len(modes) > len(set(modes)):
      raise ValueError(
        f"synthesizer_mode must be some of {MODES}, joined by '+', "
        f"got {self.synthesizer_mode!r}"
      )
    super().__post_init__()

  def attend(self, x, mask, train):
    blocks.check_length(x, self.max_len)
    b, s, _ = x.shape
    (value,) = self.heads(x, "value")
    scores = sum(
      getattr(self, f"_{mode}")(x) for mode in self.synthesizer_mode.split("+")
    )
    if not self.ignore_dot_product:
      query, key = self.heads(x, "query", "key")
      scores = scores + blocks.products(query, key)
    scores = jnp.broadcast_to(scores, (b, self.num_heads, s, s))
    real = blocks.real_tokens(mask, x)[:, None, None]
    weights = blocks.masked_softmax(
      blocks.hide(scores, real),
      self.dropout_rng(train),
      self.dropout_rate,
    )
    return blocks.mix(weights, value)

  def _random(self, x):
    s = x.shape[1]
    return self._table("random", self.max_len, self.max_len)[None, :, :s, :s]

  def _factorized_random(self, x):
    s = x.shape[1]
    left = self._table("random1", self.max_len, self.k)[:, :s]
    right = self._table("random2", self.k, self.max_len)[:, :, :s]
    return jnp.einsum("hsk,hkt->hst", left, right)[None]

  def _dense(self, x):
    (hidden,) = self.heads(x, "dense_syn")
    scores = self.dense(self.max_len, "dense_syn_len")(nn.relu(hidden))
    scores = scores[..., : x.shape[1]].swapaxes(1, 2)  # [b h s t]
    return precision.widen(scores)

  def _table(self, name, *shape):
    init = nn.initializers.xavier_uniform()
    return self.param(name, init, (self.num_heads, *shape))
