"""The projections of attention layers: from tokens to heads and back.

Both are called inside of a layer's compact method, where they make its
parameters. The layer has the fields `num_heads`, `qkv_dim`, `use_bias` and
`dtype`, as `SelfAttention` has them.
"""

from flax import linen as nn
from jaxtyping import Array, Float

from nam_jax.layers import checks


def heads(
  layer: nn.Module, x: Float[Array, "b s d"], *names: str
) -> list[Float[Array, "b s h k"]]:
  """Projects the tokens to all heads, once for each parameter name."""
  checks.check_tokens(x)
  qkv_dim = layer.qkv_dim or x.shape[-1]
  width = checks.head_width(qkv_dim, layer.num_heads, "qkv_dim")
  return [
    _dense(layer, (layer.num_heads, width), -1, name)(x) for name in names
  ]


def output(
  layer: nn.Module, x: Float[Array, "b s h v"], width: int
) -> Float[Array, "b s {width}"]:
  """Projects all heads of a token back to the model's width, as `out`."""
  return _dense(layer, width, (-2, -1), "out")(x)


def _dense(layer, features, axis, name):
  return nn.DenseGeneral(
    features,
    axis=axis,
    use_bias=layer.use_bias,
    dtype=layer.dtype,
    kernel_init=nn.initializers.xavier_uniform(),
    name=name,
  )
