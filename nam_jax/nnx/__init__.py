"""The layers as `flax.nnx` modules.

Settings, parameters and results are those of the linen modules of the same name
in `nam_jax`, which compute with the same functions.
"""

from nam_jax.nnx.lsam import LSAM
from nam_jax.nnx.nam_attention import NAMAttention
from nam_jax.nnx.nam_tm import NAMTuringMachine

__all__ = ["LSAM", "NAMAttention", "NAMTuringMachine"]
