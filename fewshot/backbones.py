"""Feature extractors for few-shot learning: images to feature vectors.

The networks of Gidaris & Komodakis (2018), and one that learns more per second
on a CPU. None ends in a ReLU, so features and the weights of a cosine
classifier may be negative. Any other Flax module can be named as
"package.module:Class"; it is called as module(x, train=...) and returns
features [b d].
"""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from nam_jax import spelling
from nam_jax.models import options

_he = nn.initializers.variance_scaling(2.0, "fan_out", "normal")


class ConvNet(nn.Module):
  """Blocks of convolution, BatchNorm, ReLU and max pooling, flattened.

  Attributes:
    widths: channels of the blocks. The last block has no ReLU.
  """

  widths: tuple[int, ...]

  @nn.compact
  def __call__(
    self, x: Float[Array, "b h w c"], *, train: bool = False
  ) -> Float[Array, "b d"]:
    """One vector per image."""
    for i, width in enumerate(self.widths):
      x = _conv(width, 3, use_bias=False)(x)
      x = _norm(train)(x)
      if i < len(self.widths) - 1:
        x = nn.relu(x)
      x = halve(x)
    return x.reshape(x.shape[0], -1)


class ResNetLike(nn.Module):
  """Four residual blocks, pooled, and two dense layers with dropout.

  Attributes:
    widths: channels of the first convolution and of the blocks.
    features: widths of the two dense layers.
    dropout_rate: dropout after each dense layer.
  """

  widths: tuple[int, ...] = (64, 64, 96, 128, 256)
  features: tuple[int, int] = (384, 512)
  dropout_rate: float = 0.5

  @nn.compact
  def __call__(
    self, x: Float[Array, "b h w c"], *, train: bool = False
  ) -> Float[Array, "b d"]:
    """One vector per image."""
    drop = nn.Dropout(self.dropout_rate, deterministic=not train)
    x = _conv(self.widths[0], 3)(x)
    for width in self.widths[1:]:
      shortcut = _conv(width, 1)(x)
      for _ in range(3):
        x = nn.leaky_relu(_norm(train)(x), 0.1)
        x = _conv(width, 3, use_bias=False)(x)
      x = halve(x + shortcut)
    x = jnp.mean(x, axis=(1, 2))
    x = nn.relu(_norm(train)(x))
    x = drop(_dense(self.features[0])(x))
    x = nn.relu(_norm(train)(x))
    x = _norm(train)(_dense(self.features[1])(x))
    return drop(x)


class FoldedResNet(nn.Module):
  """Residual blocks with many channels, on small maps.

  On a CPU, convolutions of few channels over large maps take most of a
  network's time and little of its arithmetic. Here, 2 x 2 pixels are folded
  into channels, and residual blocks start at a quarter of the image's side.

  Attributes:
    widths: channels of the first convolution and of the blocks.
  """

  widths: tuple[int, ...] = (32, 64, 128, 256)

  @nn.compact
  def __call__(
    self, x: Float[Array, "b h w c"], *, train: bool = False
  ) -> Float[Array, "b d"]:
    """One vector per image."""
    x = _norm(train)(_conv(self.widths[0], 3, use_bias=False)(fold(x)))
    for width in self.widths[1:]:
      x = halve(nn.leaky_relu(x, 0.1))
      shortcut = _norm(train)(_conv(width, 1, use_bias=False)(x))
      x = nn.relu(_norm(train)(_conv(width, 3, use_bias=False)(x)))
      x = _norm(train)(_conv(width, 3, use_bias=False)(x)) + shortcut
    return jnp.mean(x, axis=(1, 2))


class Identity(nn.Module):
  """The identity, for data that are already features."""

  @nn.compact
  def __call__(
    self, x: Float[Array, "b d"], *, train: bool = False
  ) -> Float[Array, "b d"]:
    """Returns x."""
    del train
    return x


def fold(x: Float[Array, "b h w c"]) -> Float[Array, "b y x d"]:
  """2 x 2 pixels become channels; an odd last row or column is left out."""
  b, h, w, c = x.shape
  return _squares(x).swapaxes(2, 3).reshape(b, h // 2, w // 2, 4 * c)


def halve(x: Float[Array, "b h w c"]) -> Float[Array, "b y x c"]:
  """Max pooling of 2 x 2; an odd last row or column is left out.

  Written as maxima of pairs: on a CPU their gradient is much faster than a
  pooling window's, and unlike that of a maximum over axes it does not divide by
  the number of entries that equal the maximum.
  """
  x = _squares(x)
  x = jnp.maximum(x[:, :, 0], x[:, :, 1])
  return jnp.maximum(x[..., 0, :], x[..., 1, :])


def _squares(x):
  """Rows and columns in pairs: [b h w c] to [b y 2 x 2 c]."""
  b, h, w, c = x.shape
  return x[:, : h // 2 * 2, : w // 2 * 2].reshape(b, h // 2, 2, w // 2, 2, c)


def _conv(width, size, use_bias=True):
  return nn.Conv(
    width, (size, size), padding="SAME", use_bias=use_bias, kernel_init=_he
  )


def _dense(width):
  return nn.Dense(width, kernel_init=_he)


def _norm(train):
  return nn.BatchNorm(use_running_average=not train, momentum=0.9)


BACKBONES: dict[str, Callable[..., nn.Module]] = {
  "conv32": lambda: ConvNet((32,) * 4),
  "conv64": lambda: ConvNet((64,) * 4),
  "conv128": lambda: ConvNet((64, 64, 128, 128)),
  "conv": ConvNet,
  "resnet": ResNetLike,
  "folded_resnet": FoldedResNet,
  "identity": Identity,
}


def make_backbone(name: str, **fields: Any) -> nn.Module:
  """The backbone with this name; lists, as in JSON, become tuples.

  A name with a colon is imported, so it must come from someone you trust.
  """
  make = _imported(name) if is_foreign(name) else BACKBONES.get(name)
  if make is None:
    raise ValueError(spelling.unknown("backbone", name, BACKBONES))
  known = options.arguments(make)
  options.check(f"field of {name}", fields, known, "backbone_kwargs.")
  fields = {
    field: tuple(value) if isinstance(value, list) else value
    for field, value in fields.items()
  }
  return make(**fields)


def is_foreign(name: str) -> bool:
  """Whether a backbone is someone else's, "package.module:Class"."""
  return ":" in name


def _imported(name):
  module, _, attribute = name.partition(":")
  try:
    found = getattr(importlib.import_module(module), attribute)
  except (ImportError, AttributeError, ValueError) as error:
    raise ValueError(f"backbone {name!r:.80}: {error}") from error
  if not isinstance(found, type) or not issubclass(found, nn.Module):
    raise ValueError(f"backbone {name!r:.80} is not a Flax module")
  if "train" not in inspect.signature(found.__call__).parameters:
    raise ValueError(f"backbone {name!r:.80} has no argument train")
  return found
