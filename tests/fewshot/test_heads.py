"""Heads: one interface, hidden classes, ragged supports."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nam_jax
from fewshot import heads, writes
from tests import agreement
from tests.reference import few_shot

C, N, K, D, Q = 6, 3, 4, 10, 5
VARIANTS = {
  **{kind: {"kind": kind} for kind in heads.HEADS},
  **{
    f"nam_{accumulate}": {"kind": "nam", "accumulate": accumulate}
    for accumulate in writes.WRITES
    if accumulate != "sum"  # the default
  },
  "generator": {"kind": "nam", "generator": True},
  "fixed": {"kind": "fixed"},
  "two_sided": {"kind": "nam", "two_sided": True},
  "reads": {"kind": "nam", "gates_see_reads": True},
}


@functools.cache
def arrays():
  """Supports, their mask, and queries."""
  random = agreement.Random()
  return random.normal(N, K, D), jnp.ones((N, K), bool), random.normal(Q, D)


@functools.cache
def make(variant):
  """Network and random parameters; scales and biases are around 1."""
  net = heads.EpisodeNetwork(heads.make_head(**VARIANTS[variant]), C)
  shown = jnp.ones(C, bool)
  shapes = jax.eval_shape(net.init, jax.random.key(0), *arrays(), shown)
  random = agreement.Random(1)
  params = jax.tree.map(
    lambda x: 0.6 * random.normal(*x.shape) + float(x.ndim < 2),
    shapes["params"],
  )
  return net, params


@functools.cache
def compiled(variant):
  net, _ = make(variant)
  return jax.jit(lambda params, *inputs: net.apply({"params": params}, *inputs))


def logits(variant, support, mask, query, shown=None, **changes):
  params = make(variant)[1] | changes
  shown = jnp.ones(C, bool) if shown is None else shown
  return compiled(variant)(params, support, mask, query, shown)


@pytest.mark.parametrize("variant", VARIANTS)
def test_hidden_base_classes_take_no_part(variant):
  shown = jnp.ones(C, bool).at[jnp.array([1, 4])].set(False)
  base = make(variant)[1]["base"]
  other = base.at[jnp.array([1, 4])].add(3.0)
  found, expected = (
    np.asarray(logits(variant, *arrays(), shown, base=b)) for b in (other, base)
  )
  assert np.isneginf(found[:, [1, 4]]).all()
  kept = [0, 2, 3, *range(5, C + N)]
  assert np.isfinite(found[:, kept]).all()
  agreement.assert_agree(found[:, kept], expected[:, kept])


@pytest.mark.parametrize("variant", VARIANTS)
def test_masked_supports_are_as_if_absent(variant):
  support, mask, query = arrays()
  few = logits(variant, support[:, :2], mask[:, :2], query)
  garbage = support.at[:, 2:].set(7.0)
  masked = logits(variant, garbage, mask.at[:, 2:].set(False), query)
  agreement.assert_agree(masked, few, 1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradients_are_finite_in_training(variant):
  support, mask, query = arrays()
  net, params = make(variant)
  shown = jnp.ones(C, bool).at[0].set(False)

  def loss(params, support):
    found = net.apply({"params": params}, support, mask, query, shown)
    return -jax.nn.log_softmax(found)[:, 2].sum()

  gradient = jax.jit(jax.grad(loss, argnums=(0, 1)))
  found = jax.device_get(gradient(params, support.at[0].set(0.0)))
  assert jax.tree.all(jax.tree.map(lambda g: np.isfinite(g).all(), found))


@pytest.mark.parametrize("variant", ["nam", "nam_delta", "nam_projection"])
def test_one_shot_novel_scores_are_those_of_the_cosine_classifier(variant):
  support, mask, query = arrays()
  novel = [
    logits(name, support[:, :1], mask[:, :1], query)[:, C:]
    for name in (variant, "cosine")
  ]
  scales = [np.abs(make(name)[1]["scale"]) for name in (variant, "cosine")]
  agreement.assert_agree(novel[0] / scales[0], novel[1] / scales[1])


def test_cosine_is_the_cosine_with_class_means():
  support, mask, query = arrays()
  _, params = make("cosine")
  means = nam_jax.unit(support).mean(axis=1)
  rows = nam_jax.unit(jnp.concatenate([params["base"], means]))
  expected = jnp.abs(params["scale"]) * nam_jax.unit(query) @ rows.T
  agreement.assert_agree(logits("cosine", support, mask, query), expected)


def test_attention_generator_equals_its_loop():
  support, mask, query = arrays()
  shown = jnp.array([True, False, True, True, True, True])
  _, params = make("attention")
  hidden = np.asarray(shown)

  @jax.jit
  def loop(params, support):
    novel = few_shot.attention_weights(
      params["head"], params["base"], hidden, support
    )
    rows = nam_jax.unit(jnp.concatenate([params["base"], novel]))
    return jnp.abs(params["scale"]) * nam_jax.unit(query) @ rows.T

  found = np.asarray(logits("attention", support, mask, query, shown))
  kept = [0, *range(2, C + N)]
  expected = np.asarray(loop(params, support))
  agreement.assert_agree(found[:, kept], expected[:, kept], 1e-4)


def test_one_shot_novel_scores_with_a_generator_are_those_of_attention():
  support, mask, query = arrays()
  params = make("generator")[1]
  inner = {
    name: value
    for name, value in params["head"].items()
    if name not in ("gates", "Dense_0", "LayerNorm_0")
  }
  one = support[:, :1], mask[:, :1], query
  found = logits("generator", *one)
  expected = logits("attention", *one, **params | {"head": inner})
  agreement.assert_agree(found[:, C:], expected[:, C:])
  assert agreement.relative(found[:, :C], expected[:, :C]) > 1e-2


def test_prototypes_are_negative_squared_distances():
  support, mask, query = arrays()
  _, params = make("prototypes")
  rows = jnp.concatenate([params["base"], support.mean(axis=1)])
  differences = np.asarray(query)[:, None] - np.asarray(rows)[None]
  expected = -np.abs(params["scale"]) * np.mean(differences**2, axis=-1)
  found = logits("prototypes", support, mask, query)
  agreement.assert_agree(found, expected)


def test_two_sides_and_reads_change_the_answer_where_they_should():
  params = make("two_sided")[1]
  inner = {k: v for k, v in params["head"].items() if k != "share"}
  one = logits("nam", *arrays(), **params | {"head": inner})
  two = logits("two_sided", *arrays())
  agreement.assert_agree(two[:, :C], one[:, :C])
  assert agreement.relative(two[:, C:], one[:, C:]) > 1e-2


@pytest.mark.parametrize(
  ("entry", "message"),
  [
    ({"kind": "svm"}, "unknown head 'svm'. Known: cosine"),
    ({"kind": "nam", "accumulate": "max"}, "unknown accumulate 'max'"),
    (
      {"kind": "nam", "accumulate": "scan", "generator": True},
      "generator does not work with",
    ),
  ],
)
def test_an_unknown_head_names_the_known_ones(entry, message):
  with pytest.raises(ValueError, match=message):
    heads.make_head(**entry)


@pytest.mark.parametrize("variant", ["cosine", "prototypes"])
def test_the_sign_of_the_scale_never_turns_the_order(variant):
  flipped = logits(variant, *arrays(), scale=-make(variant)[1]["scale"])
  agreement.assert_agree(flipped, logits(variant, *arrays()))
