"""Stage 1: feature extractor and cosine classifier of the base classes."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jaxtyping import Array, Float, UInt8

from nam_jax.ops import normalize
from nam_jax.training import row_order

Inputs = UInt8[Array, "b h w c"] | Float[Array, "b ..."]

SCALE = 10.0  # initial factor of the cosines


class BaseNetwork(nn.Module):
  """From images, or features, to features and logits.

  Inputs are centred and scaled by the statistics of the training data in
  `input_stats`; see `with_input_stats`.

  Attributes:
    backbone: module(x, train=...) -> features [b d].
    num_classes: number of base classes.
  """

  backbone: nn.Module
  num_classes: int

  @nn.compact
  def __call__(
    self, inputs: Inputs, *, train: bool = False
  ) -> tuple[Float[Array, "b d"], Float[Array, "b c"]]:
    """Features and logits."""
    channels = (inputs.shape[-1],)
    mean = self.variable("input_stats", "mean", jnp.zeros, channels)
    std = self.variable("input_stats", "std", jnp.ones, channels)
    shape = (1,) * (inputs.ndim - 1) + channels
    x = inputs.astype(jnp.float32) - mean.value.reshape(shape)
    features = self.backbone(x / std.value.reshape(shape), train=train)
    d = features.shape[-1]
    init = nn.initializers.normal((2 / d) ** 0.5)
    weights = self.param("base", init, (self.num_classes, d))
    scale = self.param("scale", nn.initializers.constant(SCALE), ())
    return features, scale * cosines(features, normalize.unit(weights))


def cosines(
  features: Float[Array, "b d"], weights: Float[Array, "c d"]
) -> Float[Array, "b c"]:
  """Cosine of every feature vector with every row of unit weights."""
  return jnp.einsum("bd,cd->bc", normalize.unit(features), weights)


def with_input_stats(variables: dict, data: np.ndarray) -> dict:
  """Sets a `BaseNetwork`'s `input_stats` to the statistics of data."""
  axes = tuple(range(data.ndim - 1))
  stats = {
    "mean": jnp.asarray(data.mean(axes, dtype="float64"), jnp.float32),
    "std": jnp.asarray(data.std(axes, dtype="float64"), jnp.float32) + 1e-6,
  }
  return {**variables, "input_stats": stats}


def augment(
  key: jax.Array, images: UInt8[Array, "b h w c"], pad: int, flip: bool
) -> UInt8[Array, "b h w c"]:
  """Random shifts by up to `pad` pixels, and random reflections.

  Args:
    key: random key.
    images: the images.
    pad: largest shift; black pixels fill the gap.
    flip: whether to mirror half of the images, left to right.
  """
  key, flip_key = jax.random.split(key)
  b, h, w, c = images.shape
  if pad:
    padded = jnp.pad(images, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    corners = jax.random.randint(key, (b, 2), 0, 2 * pad + 1)
    images = jax.vmap(
      lambda image, corner: jax.lax.dynamic_slice(
        image, (corner[0], corner[1], 0), (h, w, c)
      )
    )(padded, corners)
  if flip:
    mirrored = jax.random.bernoulli(flip_key, 0.5, (b, 1, 1, 1))
    images = jnp.where(mirrored, images[:, :, ::-1], images)
  return images


def make_extract(
  net: BaseNetwork, rows_at_once: int = 256, *, mirror: bool = False
):
  """(variables, data) -> features [n d] as a numpy array.

  Args:
    net: the network.
    rows_at_once: rows per compiled call, or the next power of two if there
      are fewer.
    mirror: whether features are the mean over an image and its mirror image.
  """

  @jax.jit
  def forward(variables, inputs):
    features, _ = net.apply(variables, inputs)
    if mirror:
      mirrored, _ = net.apply(variables, inputs[:, :, ::-1])
      features = (features + mirrored) / 2
    return features

  def extract(variables: dict, data: np.ndarray) -> np.ndarray:
    number = min(rows_at_once, 1 << max(0, len(data) - 1).bit_length())
    found = [
      np.asarray(forward(variables, data[rows]))
      for rows in row_order.in_order(len(data), number)
    ]
    return np.concatenate(found)[: len(data)]

  return extract
