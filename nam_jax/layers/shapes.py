"""The arrays that layers pass on; `nam_jax.ops` lists the letters."""

from jaxtyping import Array, Float

from nam_jax.ops.sequence import Mask as Mask  # bool [b s], True = real token

Tokens = Float[Array, "b s d"]  # a vector for each token
