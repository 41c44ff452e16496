"""Neural attention memory as an attention layer.

Every head writes its tokens to a memory matrix and reads it:

  bidirectional  all tokens are written, then every token reads them all: the
                 paper's NAM-Transformer, two matrix products
  causal         every token reads what was written up to and including itself
  erase          causal, with write and erase probabilities learned per token
                 and head: a write may replace what its key held before

All three take time linear in the sequence length. The last two can also run
token by token, from the memory they return.

Decay, gates per channel, a convolution, and a norm and gate of the outputs turn
the last two into other models of today: see `nam_jax.layers.presets`.
"""

from flax import linen as nn

from nam_jax.layers import nam_heads, nam_settings, parameters
from nam_jax.layers.nam_heads import State
from nam_jax.layers.shapes import Mask, Tokens


class NAMAttention(nn.Module, nam_settings.Settings):
  """Multi-head self-attention by a memory that is written and read.

  Call interface and parameters (`query`, `key`, `value`, `out`) are those of
  `SelfAttention`, so it fits into `TransformerBlock`. The plain form, without
  the settings after `dtype`, is the paper's.

  Attributes:
    num_heads: number of heads, one memory each.
    mode: "bidirectional", "causal" or "erase"; see the module's docstring.
    initial_write: write probability before training, in mode "erase".
    initial_erase: erase probability before training, in mode "erase".
    mean_writes: write each of n real tokens with probability 1 / n, so that
      the memory is their mean and reads do not grow with the length; only in
      mode "bidirectional", and not in the paper.
    qkv_dim: width of all heads together; the input's by default.
    dropout_rate: applied to what the heads return.
    use_bias: whether the projections have biases.
    dtype: used in the projections; memories are float32 or wider.
    bidirectional: run the second half of the heads from the last token to the
      first, in modes "causal" and "erase"; there is then no memory to
      continue from.
    gates: "head", one write and one erase probability per head, or "channel",
      one per value channel to write and one per key channel to erase.
    tied_gates: write and erase with the same probability.
    max_erase: the largest erase probability, and with tied_gates also the
      largest write probability. Beyond 1, up to 2, an erase turns around what
      the key held, which some state tracking needs.
    decay: how a memory fades before each write: None (it does not), one decay
      per "head", or one per key "channel"; see `nam_jax.layers.decay`.
    decay_from: "token", computed from each token; "learned", a constant that
      is trained; or "fixed", RetNet's 1 - 2^(-5 - h) for head h.
    convolution: width of a short causal convolution over queries, keys and
      values, with SiLU after it; published models have 4. None for none.
    output_norm: divide what each head returns by its root mean square.
    output_gate: multiply it by a "sigmoid" or "silu" gate of the token; None
      for no gate.
    num_writes: writes per token, each with its own key, value and gates
      (DeltaProduct; Siems et al. 2025, 2502.10297). One write with max_erase=2
      can mirror a memory, two can rotate it.
  """

  def __post_init__(self):
    self.check()
    super().__post_init__()

  def __call__(
    self, x: Tokens, *, mask: Mask | None = None, train: bool = False
  ) -> Tokens:
    """Attends from every token to real tokens, where the mask is True."""
    return self._attend(x, None, mask, train)[0]

  def continue_from(
    self,
    x: Tokens,
    memory: State | None,
    *,
    mask: Mask | None = None,
    train: bool = False,
  ) -> tuple[Tokens, State]:
    """Continues where an earlier call stopped; in one direction only.

    Args:
      x: The tokens that follow.
      memory: What the earlier call returned; None starts a sequence. With a
        convolution this is a `NAMState`: the memory [b h v k], and the last
        queries, keys and values that are still to be mixed.
      mask: True at real tokens. The others write nothing and read zero.
      train: Whether to apply dropout.

    Returns:
      The outputs, and the memory to continue from.
    """
    self.check_continues()
    return self._attend(x, memory, mask, train)

  @nn.compact
  def _attend(self, x, memory, mask, train):
    table = nam_settings.table(self, x.shape[-1])
    params = {n: parameters.Group(name=n)(group) for n, group in table.items()}
    heads, memory = nam_heads.read(self, params, x, memory, mask)
    heads = nn.Dropout(self.dropout_rate)(heads, deterministic=not train)
    return nam_heads.join(self, params, heads), memory
