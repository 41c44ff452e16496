"""Types of the arrays passed between layers; letters as in `nam_jax.ops`."""

from jaxtyping import Array, Float

from nam_jax.ops.masks import Mask as Mask  # bool [b s], True = real token

Tokens = Float[Array, "b s d"]  # a vector for each token
