"""Universal Transformer (Dehghani et al. 2019), a baseline.

One Transformer block is applied again and again to all tokens. With adaptive
halting (ACT; Graves 2016) every token decides after each step whether to stop:
it then keeps its state, which others still attend to, and its output is the
mean of its states, weighted by the probabilities of having stopped there.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Bool, DTypeLike, Float

from nam_jax.layers import transformer_block
from nam_jax.layers.positions import sinusoids
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks


class Halting(NamedTuple):
  """How far each token has got."""

  halted: Float[Array, "b s"]  # probability of having stopped so far
  output: Tokens  # the states' weighted sum so far
  ponder: Float[Array, "b s"]  # steps taken, plus the remainder once stopped


def halt(
  halting: Halting,
  probability: Float[Array, "b s"],
  state: Tokens,
  last: Bool[Array, ""],
  threshold: float,
) -> Halting:
  """One step of ACT (Graves 2016, equations 5-7 and 12).

  Args:
    halting: before the step.
    probability: each token's probability of stopping after this step.
    state: each token's state after this step.
    last: whether this is the last step, so that all tokens stop.
    threshold: a token stops when the sum of its probabilities exceeds it.

  Returns:
    How far each token has got; `halted` is exactly 1 once it has stopped.
  """
  running = halting.halted < 1
  stops = (halting.halted + probability > threshold) | last
  remainder = 1 - halting.halted
  weight = jnp.where(stops, remainder, probability)
  weight = jnp.where(running, weight, 0)
  cost = 1 + jnp.where(stops, remainder, 0)
  return Halting(
    jnp.where(running & stops, 1, halting.halted + weight),
    halting.output + weight[..., None] * state,
    halting.ponder + jnp.where(running, cost, 0),
  )


class UniversalTransformer(nn.Module):
  """A shared `TransformerBlock`, applied `num_steps` times, and a LayerNorm.

  Sinusoidal encodings of position and step are added before every step. With
  adaptive halting the mean ponder cost of the real tokens (number of steps
  plus remainder; add it to the loss with a small weight) is sown as
  `ponder_cost` into the collection `intermediates`.

  Attributes:
    attention: makes the attention layer; see `TransformerBlock`.
    num_steps: number of steps; with adaptive halting, the most.
    mlp_dim: inner width of the MLP.
    halting_threshold: turns adaptive halting on, for instance 0.99.
    dropout_rate: inside the block.
    dtype: used in the computation.
  """

  attention: Callable[[], nn.Module]
  num_steps: int
  mlp_dim: int
  halting_threshold: float | None = None
  dropout_rate: float = 0.0
  dtype: DTypeLike | None = None

  def setup(self):
    threshold = self.halting_threshold
    if threshold is not None:
      if not 0 < threshold <= 1:
        raise ValueError(f"halting_threshold={threshold} must lie in (0, 1]")
      # Bias 1: about two steps at the start of training.
      self.stop = nn.Dense(1, bias_init=nn.initializers.ones)
    self.block = transformer_block.TransformerBlock(
      self.attention, self.mlp_dim, self.dropout_rate, self.dtype
    )
    self.norm = nn.LayerNorm(dtype=self.dtype)

  def __call__(
    self, x: Tokens, *, mask: Mask | None = None, train: bool = False
  ) -> Tokens:
    """Encodes embedded tokens; padding never changes a real output."""
    masks.check_mask(mask, x.shape[:2])
    x = masks.hide(x, mask)
    b, s, d = x.shape
    position = sinusoids(jnp.arange(s, dtype=jnp.float32), d)
    time = jnp.arange(self.num_steps, dtype=jnp.float32)
    adaptive = self.halting_threshold is not None

    def step(self, carry, inputs):
      state, halting = carry
      time, last = inputs
      signal = (position + time[None])[None]
      new = self.block(state + signal.astype(x.dtype), mask=mask, train=train)
      if adaptive:
        running = halting.halted[..., None] < 1
        wide = new.astype(jnp.float32)
        probability = nn.sigmoid(self.stop(wide))[..., 0]
        halting = halt(halting, probability, wide, last, self.halting_threshold)
        new = jnp.where(running, new, state)
      return (new, halting), None

    scan = nn.scan(
      step,
      variable_broadcast="params",
      variable_axes={"intermediates": 0},
      split_rngs={"params": False, "dropout": True},
    )
    zeros = jnp.zeros((b, s))
    halting = Halting(zeros, jnp.zeros((b, s, d)), zeros) if adaptive else None
    inputs = sinusoids(time, d), time == self.num_steps - 1
    (state, halting), _ = scan(self, (x, halting), inputs)
    if not adaptive:
      return self.norm(state)
    real = jnp.ones((b, s)) if mask is None else mask.astype(jnp.float32)
    cost = jnp.sum(real * halting.ponder) / jnp.maximum(jnp.sum(real), 1)
    self.sow("intermediates", "ponder_cost", cost)
    return self.norm(halting.output.astype(x.dtype))
