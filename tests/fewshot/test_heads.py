"""Heads: one interface, hidden classes, ragged supports."""

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
  },
  "two_sided": {"kind": "nam", "two_sided": True},
  "reads": {"kind": "nam", "gates_see_reads": True},
}


def arrays(seed=0):
  keys = jax.random.split(jax.random.key(seed), 2)
  support = jax.random.normal(keys[0], (N, K, D))
  return support, jnp.ones((N, K), bool), jax.random.normal(keys[1], (Q, D))


def make(variant, seed=0):
  """Network and parameters, moved away from their initial values."""
  net = heads.EpisodeNetwork(heads.make_head(**VARIANTS[variant]), C)
  params = net.init(jax.random.key(1), *arrays(), jnp.ones(C, bool))["params"]
  leaves, tree = jax.tree.flatten(params)
  keys = jax.random.split(jax.random.key(seed), len(leaves))
  moved = [
    x + 0.3 * jax.random.normal(key, x.shape)
    for x, key in zip(leaves, keys, strict=True)
  ]
  return net, jax.tree.unflatten(tree, moved)


def logits(variant, support, mask, query, shown=None):
  net, params = make(variant)
  shown = jnp.ones(C, bool) if shown is None else shown
  return net.apply({"params": params}, support, mask, query, shown)


@pytest.mark.parametrize("variant", VARIANTS)
def test_hidden_base_classes_take_no_part(variant):
  shown = jnp.ones(C, bool).at[jnp.array([1, 4])].set(False)
  net, params = make(variant)
  other = jax.tree.map(lambda x: x, params)
  other["base"] = params["base"].at[jnp.array([1, 4])].add(3.0)
  found, expected = (
    net.apply({"params": p}, *arrays(), shown) for p in (other, params)
  )
  assert jnp.isneginf(found[:, jnp.array([1, 4])]).all()
  kept = jnp.array([0, 2, 3, *range(5, C + N)])
  assert jnp.isfinite(found[:, kept]).all()
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

  found = jax.grad(loss, argnums=(0, 1))(params, support.at[0].set(0.0))
  assert jax.tree.all(jax.tree.map(lambda g: jnp.isfinite(g).all(), found))


@pytest.mark.parametrize("variant", ["nam", "nam_delta", "nam_projection"])
def test_one_shot_novel_scores_are_those_of_the_cosine_classifier(variant):
  support, mask, query = arrays()
  novel = [
    logits(name, support[:, :1], mask[:, :1], query)[:, C:]
    for name in (variant, "cosine")
  ]
  _, params = make(variant)
  scale = params["scale"] / make("cosine")[1]["scale"]
  agreement.assert_agree(novel[0], novel[1] * scale)


def test_cosine_is_the_cosine_with_class_means():
  support, mask, query = arrays()
  _, params = make("cosine")
  means = nam_jax.unit(support).mean(axis=1)
  rows = nam_jax.unit(jnp.concatenate([params["base"], means]))
  expected = params["scale"] * nam_jax.unit(query) @ rows.T
  agreement.assert_agree(logits("cosine", support, mask, query), expected)


def test_attention_generator_equals_its_loop():
  support, mask, query = arrays()
  shown = jnp.array([True, False, True, True, True, True])
  _, params = make("attention")
  novel = few_shot.attention_weights(
    params["head"], params["base"], np.asarray(shown), support
  )
  rows = nam_jax.unit(jnp.concatenate([params["base"], novel]))
  expected = params["scale"] * nam_jax.unit(query) @ rows.T
  found = logits("attention", support, mask, query, shown)
  kept = jnp.array([0, *range(2, C + N)])
  agreement.assert_agree(found[:, kept], expected[:, kept], 1e-4)


def test_prototypes_are_negative_squared_distances():
  support, mask, query = arrays()
  _, params = make("prototypes")
  rows = jnp.concatenate([params["base"], support.mean(axis=1)])
  distances = np.array([[jnp.mean((q - r) ** 2) for r in rows] for q in query])
  found = logits("prototypes", support, mask, query)
  agreement.assert_agree(found, -params["scale"] * distances)


def test_two_sides_and_reads_change_the_answer_where_they_should():
  support, mask, query = arrays()
  net, params = make("two_sided")
  plain = heads.EpisodeNetwork(heads.make_head("nam"), C)
  shown = jnp.ones(C, bool)
  inner = {k: v for k, v in params["head"].items() if k != "share"}
  one = plain.apply(
    {"params": {**params, "head": inner}}, support, mask, query, shown
  )
  two = net.apply({"params": params}, support, mask, query, shown)
  agreement.assert_agree(two[:, :C], one[:, :C])
  assert agreement.relative(two[:, C:], one[:, C:]) > 1e-2


@pytest.mark.parametrize(
  ("entry", "message"),
  [
    ({"kind": "svm"}, "'svm' is not one of cosine"),
    ({"kind": "nam", "accumulate": "max"}, "accumulate='max' is not one of"),
  ],
)
def test_an_unknown_head_names_the_known_ones(entry, message):
  with pytest.raises(ValueError, match=message):
    heads.make_head(**entry)


@pytest.mark.parametrize("variant", ["cosine", "prototypes"])
def test_the_sign_of_the_scale_never_turns_the_order(variant):
  support, mask, query = arrays()
  net, params = make(variant)
  flipped = {**params, "scale": -params["scale"]}
  found, expected = (
    net.apply({"params": p}, support, mask, query, jnp.ones(C, bool))
    for p in (flipped, params)
  )
  agreement.assert_agree(found, expected)
