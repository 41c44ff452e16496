"""The Linear Recurrent Unit (Orvieto et al. 2023, 2303.06349) as a layer.

A state-space model whose state is a vector of complex numbers that do not mix:

  h_t = lambda h_(t-1) + gamma (B x_t),   y_t = Re(C h_t) + D x_t,
  lambda = exp(-exp(nu) + i exp(theta)).

As in S5 (Smith et al. 2023, 2208.04933), a second state runs from the last
token to the first with the same lambda and B, y reads both, and the layer
returns z sigmoid(W z) with z = gelu(y).
"""

import math

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.linen import dtypes
from jaxtyping import DTypeLike

from nam_jax.layers import checks
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import diagonal, masks, precision


class LRU(nn.Module):
  """A diagonal recurrence in both directions; called like `SelfAttention`.

  Before training, the numbers lambda lie in a ring, with even density. A state
  remembers about 1 / (1 - |lambda|) tokens.

  Attributes:
    state_dim: numbers in the state; the input's width by default.
    r_min: the least |lambda| before training.
    r_max: the greatest, less than 1.
    max_phase: the greatest angle of lambda before training; a small one for
      inputs that change slowly.
    dropout_rate: applied to gelu(y).
    dtype: used in the projections; states are float32 or wider.
  """

  state_dim: int | None = None
  r_min: float = 0.9
  r_max: float = 0.999
  max_phase: float = 2 * math.pi
  dropout_rate: float = 0.0
  dtype: DTypeLike | None = None

  def __post_init__(self):
    if not 0 <= self.r_min < self.r_max < 1:
      raise ValueError(
        f"r_min={self.r_min} and r_max={self.r_max} must satisfy"
        " 0 <= r_min < r_max < 1"
      )
    if not 0 < self.max_phase <= 2 * math.pi:
      raise ValueError(
        f"max_phase={self.max_phase} must be more than 0, at most 2 pi"
      )
    super().__post_init__()

  @nn.compact
  def __call__(
    self, x: Tokens, *, mask: Mask | None = None, train: bool = False
  ) -> Tokens:
    """Reads both states at every token; padding never changes them."""
    checks.check_tokens(x)
    masks.check_mask(mask, x.shape[:2])
    x = masks.hide(x, mask)
    d, n = x.shape[-1], self.state_dim or x.shape[-1]
    normal = nn.initializers.normal
    nu = self.param("nu", _start_nu, (n,), self.r_min, self.r_max)
    theta = self.param("theta", _start_theta, (n,), self.max_phase)
    log_gamma = self.param("log_gamma", lambda _: _start_log_gamma(nu))
    B = self.param("B", normal((2 * d) ** -0.5), (2, d, n))
    C = self.param("C", normal((2 * n) ** -0.5), (2, 2, n, d))
    D = self.param("D", normal(1.0), (d,))
    B = jnp.exp(log_gamma)[None, None] * B
    x, B, C, D = dtypes.promote_dtype(x, B, C, D, dtype=self.dtype)
    x = jnp.swapaxes(x, 0, 1)  # time first
    lam, inputs = _eigenvalues(nu, theta), (x @ B[0], x @ B[1])
    y = D[None, None] * x
    for (C_re, C_im), reverse in zip(C, (False, True), strict=True):
      re, im = diagonal.diagonal_recurrence(
        lam, inputs, mask=mask, reverse=reverse
      )
      y = y + (re @ C_re - im @ C_im)
    y = nn.Dropout(self.dropout_rate)(nn.gelu(y), deterministic=not train)
    y = y * nn.sigmoid(nn.Dense(d, dtype=self.dtype, name="gate")(y))
    return jnp.swapaxes(y, 0, 1)


def _eigenvalues(nu, theta) -> diagonal.Number:
  """lambda, in float32: in bfloat16 most would round to 1."""
  nu, theta = precision.widen(nu), precision.widen(theta)
  size, angle = jnp.exp(-jnp.exp(nu)), jnp.exp(theta)
  return size * jnp.cos(angle), size * jnp.sin(angle)


def _start_nu(key, shape, r_min, r_max):
  """Of lambda with squared sizes evenly spread from r_min^2 to r_max^2."""
  share = 1 - jax.random.uniform(key, shape)  # never 0
  return jnp.log(-jnp.log(r_min**2 + share * (r_max**2 - r_min**2)) / 2)


def _start_theta(key, shape, max_phase):
  return jnp.log(max_phase * (1 - jax.random.uniform(key, shape)))


def _start_log_gamma(nu):
  """gamma = sqrt(1 - |lambda|^2), so that all states are equally large."""
  return jnp.log(-jnp.expm1(-2 * jnp.exp(nu))) / 2
