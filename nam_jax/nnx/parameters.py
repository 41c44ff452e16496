"""Tables of parameters in nnx modules."""

import jax.numpy as jnp
from flax import nnx

from nam_jax.layers import parameters


def declare(
  module: nnx.Module, table: parameters.Table, rngs: nnx.Rngs
) -> None:
  """Makes every group of the table an attribute of the module."""
  for group, members in table.items():
    arrays = {
      name: nnx.Param(
        parameter.init(rngs.params(), parameter.shape, jnp.float32)
      )
      for name, parameter in members.items()
    }
    setattr(module, group, nnx.Dict(arrays))


def arrays(module: nnx.Module) -> parameters.Params:
  """The parameters of a module, as its functions take them."""
  return nnx.to_pure_dict(nnx.state(module, nnx.Param))
