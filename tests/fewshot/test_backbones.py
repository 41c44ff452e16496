"""The feature extractors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from fewshot import backbones
from nam_jax import training

SMALL = {
  "conv": {"widths": (3, 4)},
  "resnet": {"widths": (2, 3, 2), "features": (6, 5)},
  "folded_resnet": {"widths": (2, 3)},
}


@pytest.mark.parametrize(
  ("name", "features", "parameters"),
  [
    ("conv32", 800, 28_768),
    ("conv64", 1600, 112_832),
    ("conv128", 3200, 260_544),
    ("resnet", 512, 2_570_464),
    ("folded_resnet", 256, 1_210_432),
  ],
)
def test_sizes_are_those_of_the_protocol(name, features, parameters):
  net = backbones.make_backbone(name)
  found, variables = jax.eval_shape(
    net.init_with_output,
    jax.random.key(0),
    jax.ShapeDtypeStruct((2, 84, 84, 3), jnp.float32),
  )
  assert found.shape == (2, features)
  assert training.parameter_count(variables["params"]) == parameters


@pytest.mark.parametrize("shape", [(2, 6, 8, 3), (1, 7, 5, 2)])
def test_halve_is_max_pooling(shape):
  x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
  expected = nn.max_pool(x, (2, 2), (2, 2))
  np.testing.assert_array_equal(backbones.halve(jnp.asarray(x)), expected)


@pytest.mark.parametrize("shape", [(2, 6, 8, 3), (1, 7, 5, 2)])
def test_fold_keeps_the_pixels_of_a_square_together(shape):
  x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
  folded = backbones.fold(jnp.asarray(x))
  b, h, w, c = shape
  assert folded.shape == (b, h // 2, w // 2, 4 * c)
  for row, column in np.ndindex(h // 2, w // 2):
    square = x[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
    np.testing.assert_array_equal(folded[:, row, column], square.reshape(b, -1))


@pytest.mark.parametrize("name", SMALL)
def test_features_may_be_negative_and_training_moves_the_statistics(name, key):
  net = backbones.make_backbone(name, **SMALL[name])
  x = np.random.default_rng(0).normal(size=(4, 8, 8, 1)).astype(np.float32)

  @jax.jit
  def outputs(key, x):
    variables = net.init(key, x)
    trained = net.apply(
      variables, x, train=True, mutable=["batch_stats"], rngs={"dropout": key}
    )
    return variables, trained, net.apply(variables, x)

  variables, (features, updated), alone = outputs(key, x)
  assert (features < 0).any()
  before, after = variables["batch_stats"], updated["batch_stats"]
  assert jax.tree.all(jax.tree.map(lambda a, b: (a != b).any(), before, after))
  _, _, other = outputs(key, np.concatenate([x[:1], 5 * x[1:]]))
  np.testing.assert_allclose(other[0], alone[0], atol=1e-5)


def test_an_unknown_backbone_names_the_known_ones():
  with pytest.raises(ValueError, match=r"'vgg'\. Known: conv32"):
    backbones.make_backbone("vgg")


class Means(nn.Module):
  """Someone's own network."""

  width: int = 3

  @nn.compact
  def __call__(self, x, *, train=False):
    return nn.Dense(self.width)(x.mean(axis=(1, 2)))


def test_any_flax_module_is_found_by_name(key):
  net = backbones.make_backbone(f"{__name__}:Means", width=5)
  shape = jax.eval_shape(net.init_with_output, key, jnp.zeros((2, 8, 8, 1)))
  assert shape[0].shape == (2, 5)


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("no_such_package:Net", "No module named 'no_such_package'"),
    ("flax.linen:Nothing", "no attribute 'Nothing'"),
    ("os:getcwd", "is not a Flax module"),
    ("flax.linen:Dense", "has no argument train"),
    (f"{__name__}:", "has no attribute|is not a Flax module"),
  ],
)
def test_what_is_no_backbone_is_named(name, message):
  with pytest.raises(ValueError, match=message):
    backbones.make_backbone(name)
