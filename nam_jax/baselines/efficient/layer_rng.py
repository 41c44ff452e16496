"""Fixed random numbers of a layer, which are not trained."""

import zlib

import numpy as np
from flax import linen as nn


def layer_rng(layer: nn.Module, seed: int = 0) -> np.random.Generator:
  """Random numbers that depend on the layer's place in the model and on seed.

  They are the same in every call and on every device, so they need not be saved
  with the parameters.
  """
  place = zlib.crc32("/".join(layer.path).encode())
  return np.random.default_rng([seed, place])
