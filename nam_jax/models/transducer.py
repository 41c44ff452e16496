"""From tokens to one answer per token, through a network that is passed in.

With a causal core, trained to predict the next token, this is a language model.
"""

from typing import Any

from flax import linen as nn
from jaxtyping import Array, Float, Int

from nam_jax.layers.shapes import Mask
from nam_jax.ops import masks


class Transducer(nn.Module):
  """Embedding, LayerNorm, core, output layer.

  Attributes:
    vocab_size: number of token ids, in and out.
    emb_dim: width of the embedded tokens.
    core: any module core(x [b s d], mask=[b s], train=...) -> [b s e].
  """

  vocab_size: int
  emb_dim: int
  core: nn.Module

  def __call__(
    self, inputs: Int[Array, "b s"], mask: Mask, *, train: bool = False
  ) -> Float[Array, "b s y"]:
    """Logits for every position.

    Args:
      inputs: Token ids.
      mask: True at real tokens, False at padding.
      train: Whether to apply dropout (needs the rng `dropout`).
    """

    def apply(x):
      return self.core(x, mask=mask, train=train), None

    return self._transduce(inputs, mask, apply)[0]

  def continue_from(
    self,
    inputs: Int[Array, "b s"],
    state: Any,
    *,
    mask: Mask | None = None,
    train: bool = False,
  ) -> tuple[Float[Array, "b s y"], Any]:
    """(logits, state), if the core has this method, as TransformerEncoder has.

    Args:
      inputs: The token ids that follow those of an earlier call.
      state: What the earlier call returned; None starts a sequence.
      mask: True at real tokens, False at padding.
      train: Whether to apply dropout.
    """

    def apply(x):
      return self.core.continue_from(x, state, mask=mask, train=train)

    return self._transduce(inputs, mask, apply)

  @nn.compact
  def _transduce(self, inputs, mask, apply):
    masks.check_mask(mask, inputs.shape)
    x = nn.Embed(self.vocab_size, self.emb_dim, name="embedding")(inputs)
    x = masks.hide(x, mask)
    x = nn.LayerNorm(name="norm")(x)
    x, state = apply(x)
    return nn.Dense(self.vocab_size, name="logits")(x), state
