"""LSTM layer over a whole sequence, in one or both directions.

The input projection is one matmul before the scan; see `nam_jax.ops.lstm` for
the scan and its backward pass. Call it with one token and the last state to
stream.
"""

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.linen import dtypes
from jaxtyping import Array, DTypeLike, Float

from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import lstm, precision

# Both directions of a bidirectional layer: (forward, backward).
States = lstm.LSTMState | tuple[lstm.LSTMState, lstm.LSTMState]


def _orthogonal_per_gate(key, shape, dtype):
  d, _ = shape
  keys = jax.random.split(key, 4)
  init = nn.initializers.orthogonal()
  return jnp.concatenate([init(k, (d, d), dtype) for k in keys], axis=-1)


def _open_forget_gate(key, shape, dtype):
  del key  # deterministic: 1 for the forget gate, else 0
  return jnp.repeat(jnp.array([0, 1, 0, 0], dtype), shape[0] // 4)


class LSTM(nn.Module):
  """LSTM (Hochreiter & Schmidhuber 1997) with forget-gate bias 1.

  Padded tokens leave the state untouched, in both directions, and output zero.

  Attributes:
    features: width of the state, and of the outputs of one direction.
    bidirectional: run a second LSTM from the last token to the first and
      concatenate; outputs are `2 * features` wide, states are pairs.
    reverse: run from the last token to the first.
    dtype: used in the matmuls; the state is at least float32.
  """

  features: int
  bidirectional: bool = False
  reverse: bool = False
  dtype: DTypeLike | None = None

  @nn.compact
  def __call__(
    self,
    x: Float[Array, "b s i"],
    *,
    initial_state: States | None = None,
    mask: Mask | None = None,
  ) -> tuple[Tokens, States]:
    """Returns the outputs and the state after the last real token."""
    if self.bidirectional:
      return self._both(x, initial_state, mask)
    i, d = x.shape[-1], self.features
    kernel = self.param(
      "input_kernel", nn.initializers.lecun_normal(), (i, 4 * d)
    )
    recurrent = self.param(
      "recurrent_kernel", _orthogonal_per_gate, (d, 4 * d), jnp.float32
    )
    bias = self.param("bias", _open_forget_gate, (4 * d,), jnp.float32)
    x, kernel, recurrent, bias = dtypes.promote_dtype(
      x, kernel, recurrent, bias, dtype=self.dtype
    )
    if initial_state is None:
      dtype = precision.accumulator(x.dtype)
      initial_state = lstm.zero_state(x.shape[0], d, dtype)
    return lstm.lstm(
      x,
      kernel,
      recurrent,
      bias,
      initial_state,  # ty: ignore[invalid-argument-type]
      mask=mask,
      reverse=self.reverse,
    )

  def _both(self, x, initial_state, mask):
    if self.reverse:
      raise ValueError("bidirectional=True already runs in reverse; drop it")
    states = (None, None) if initial_state is None else initial_state
    outputs, finals = [], []
    for name, state in zip(("forward", "backward"), states, strict=True):
      direction = LSTM(
        self.features,
        reverse=name == "backward",
        dtype=self.dtype,
        name=name,
      )
      output, final = direction(x, initial_state=state, mask=mask)
      outputs.append(output)
      finals.append(final)
    return jnp.concatenate(outputs, axis=-1), tuple(finals)
