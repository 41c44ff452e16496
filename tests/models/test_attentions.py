"""The classifiers of the Long Range Arena, with every attention."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax import training
from nam_jax.baselines import lru
from nam_jax.layers import nam_attention, presets
from nam_jax.models import attentions
from tests import agreement, linen_tools
from tests.reference import attention_layers
from tests.reference import nam_attention as reference

TEXT = {
  "emb_dim": 256,
  "num_heads": 4,
  "num_layers": 4,
  "qkv_dim": 256,
  "mlp_dim": 1024,
}
LISTOPS = TEXT | {"emb_dim": 512, "num_heads": 8, "qkv_dim": 512}
MATCHING = TEXT | {"emb_dim": 128, "qkv_dim": 128, "mlp_dim": 512}
CIFAR = TEXT | {
  "emb_dim": 128,
  "num_heads": 8,
  "num_layers": 1,
  "qkv_dim": 64,
  "mlp_dim": 128,
  "learn_pos_emb": True,
}
PATHFINDER = TEXT | {
  "emb_dim": 32,
  "qkv_dim": 16,
  "mlp_dim": 32,
  "classifier_pool": "MEAN",
}
LINEAR_PATHFINDER = PATHFINDER | {
  "emb_dim": 128,
  "num_heads": 2,
  "num_layers": 1,
  "qkv_dim": 64,
  "mlp_dim": 128,
}

# attention, sizes, ids, classes, length, pairs: the benchmark's parameters.
COUNTS = {
  "listops": ("softmax", LISTOPS, 17, 10, 2000, False, 8_948_746),
  "text": ("softmax", TEXT, 257, 2, 1000, False, 3_486_722),
  "matching": ("softmax", MATCHING, 257, 2, 4000, True, 1_087_618),
  "cifar10": ("softmax", CIFAR, 256, 10, 1024, False, 248_458),
  "cifar10 by nam": ("nam", CIFAR, 256, 10, 1024, False, 248_458),
  "pathfinder32": ("softmax", PATHFINDER, 256, 2, 1024, False, 26_530),
  "pathfinder32, linear": (
    "linear",
    LINEAR_PATHFINDER,
    256,
    2,
    1024,
    False,
    116_098,
  ),
}

TINY = {
  "emb_dim": 8,
  "num_heads": 2,
  "num_layers": 2,
  "qkv_dim": 8,
  "mlp_dim": 8,
}
# Options that make a kind's blocks fit a sequence of a dozen tokens.
OPTIONS = {
  "local": {"block_size": 4},
  "longformer": {"sliding_window_size": 4},
  "bigbird": {"block_size": 2},
  "sparse": {"block_size": 4, "num_summary": 1},
  "sinkhorn": {"block_size": 4},
  "reformer": {"chunk_len": 4, "n_buckets": 2},
  "tlb": {"block_size": 4, "num_state_tokens": 3},
}
# Those that are settings of `NAMAttention`.
MEMORIES = {
  "nam": {},
  "nam_causal": {"mode": "causal"},
  "nam_erase": presets.PRESETS["nam"],
  **{n: fields for n, fields in presets.PRESETS.items() if n != "nam"},
}


def make(attention, is_pair=False, max_len=12, options=None, **sizes):
  options = OPTIONS.get(attention, {}) if options is None else options
  return attentions.make_classifier(
    attention,
    options,
    vocab_size=20,
    num_classes=3,
    max_len=max_len,
    is_pair=is_pair,
    **(TINY | sizes),
  )


def make_layer(attention, **sizes):
  """The attention alone; of a latent kind, the encoder."""
  size = attentions.Size(**(TINY | sizes), max_len=12)
  kind = attentions.KINDS[attention]
  made = kind.make(size, **OPTIONS.get(attention, {}))
  return made if kind.latent else made()


def tokens(*shape, length=None, seed=0):
  inputs = np.random.default_rng(seed).integers(1, 20, shape, np.int32)
  mask = np.ones(shape, bool)
  if length is not None:
    mask[..., length:] = False
    inputs[~mask] = 0
  return inputs, mask


@pytest.mark.parametrize("name", COUNTS)
def test_parameters_are_as_many_as_in_the_benchmark(name):
  attention, sizes, ids, classes, length, is_pair, expected = COUNTS[name]
  model = attentions.make_classifier(
    attention,
    {},
    vocab_size=ids,
    num_classes=classes,
    max_len=length,
    is_pair=is_pair,
    **sizes,
  )
  inputs = jnp.zeros((1, 2, length) if is_pair else (1, length), jnp.int32)
  shapes = jax.eval_shape(model.init, jax.random.key(0), inputs, inputs == 0)
  assert training.parameter_count(shapes["params"]) == expected


@pytest.mark.parametrize("attention", attentions.KINDS)
def test_every_kind_classifies_pairs_too(attention):
  inputs = jnp.zeros((3, 2, 12), jnp.int32)
  (logits, _) = jax.eval_shape(
    make(attention, is_pair=True).init_with_output,
    jax.random.key(0),
    inputs,
    inputs == 0,
  )
  assert logits.shape == (3, 3)


@pytest.mark.parametrize("attention", attentions.KINDS)
def test_every_kind_learns_from_every_token_and_from_no_padding(attention):
  model = make(attention, classifier_pool="MEAN", mlp_dim=32, num_layers=1)
  inputs, mask = tokens(3, 12, length=11)

  def loss(variables, inputs, mask):
    dropout = {"dropout": jax.random.key(0)}
    logits = model.apply(variables, inputs, mask, train=True, rngs=dropout)
    return jnp.sum(jnp.square(logits)), logits

  learn = linen_tools.compiled(jax.grad(loss, has_aux=True))
  variables = linen_tools.random_params(model, inputs, mask)
  gradient, logits = learn(variables, inputs, mask)
  assert logits.shape == (3, 3)
  for leaf in jax.tree.leaves(gradient):
    assert np.isfinite(leaf).all()
  embedding = gradient["params"]["tokens"]["embedding"]["embedding"]
  seen = np.unique(inputs[mask])
  assert (np.abs(embedding[seen]).max(axis=1) > 0).all()
  assert not embedding[0].any()
  for anything in (np.nan, np.inf, 1e38):  # where the padding's embedding is
    variables["params"]["tokens"]["embedding"]["embedding"][0] = anything
    linen_tools.close(learn(variables, inputs, mask), (gradient, logits))


@pytest.mark.parametrize("attention", attentions.KINDS)
def test_padding_of_a_layer_can_hold_anything(attention):
  layer = make_layer(attention)
  x, mask = linen_tools.normal(2, 12, 8), tokens(2, 12)[1]
  mask[0, 7:] = mask[1, 10:] = mask[1, 0] = False
  params = linen_tools.random_params(layer, x, mask=mask)

  def loss(params, x, mask):
    outputs = layer.apply(params, x, mask=mask)
    if not attentions.KINDS[attention].latent:
      outputs = jnp.where(mask[..., None], outputs, 0)
    return jnp.sum(jnp.sin(outputs)), outputs

  learn = linen_tools.compiled(jax.grad(loss, (0, 1), has_aux=True))
  expected = learn(params, x, mask)
  for anything in (0, np.nan, np.inf):
    padded = np.where(mask[..., None], x, np.float32(anything))
    linen_tools.close(learn(params, padded, mask), expected)


# One head is an odd number: each of two directions gets one.
@pytest.mark.parametrize("attention", MEMORIES)
def test_a_memory_equals_its_twin(attention):
  layer = make_layer(attention, num_heads=1)
  heads = 2 if attention in ("nam_decay", "nam_full") else 1
  fields = MEMORIES[attention]
  twin = nam_attention.NAMAttention(heads, qkv_dim=8, **fields)
  x, mask = attention_layers.tokens(12)
  params = attention_layers.params_of(layer)
  expected = reference.outputs(twin, params["params"], x, mask)
  actual = attention_layers.apply(layer)(params, x, mask=mask)
  agreement.assert_agree(actual[mask], expected[mask], 1e-5)


@pytest.mark.parametrize("attention", attentions.KINDS)
def test_every_kind_classifies_as_the_benchmark_does(attention):
  model = make(attention, compat=True)
  inputs = jnp.zeros((3, 12), jnp.int32)
  (logits, _) = jax.eval_shape(
    model.init_with_output, jax.random.key(0), inputs, inputs == 0
  )
  assert logits.shape == (3, 3)


@pytest.mark.parametrize("shape", [(0, 12), (2, 0)])
@pytest.mark.parametrize("attention", attentions.KINDS)
def test_an_empty_batch_or_sequence_is_no_error(attention, shape):
  model = make(attention, classifier_pool="MEAN", num_layers=1)
  inputs, mask = tokens(2, 12)
  variables = linen_tools.random_params(model, inputs, mask)

  def loss(variables, inputs, mask):
    logits = model.apply(variables, inputs, mask)
    assert logits.shape == (shape[0], 3)
    return jnp.sum(logits)

  jax.eval_shape(jax.grad(loss), variables, *tokens(*shape))


def test_no_token_can_be_pooled_from_none():
  model, (inputs, mask) = make("nam", is_pair=True), tokens(3, 2, 0)
  with pytest.raises(ValueError, match="'CLS' pools a token, but s = 0"):
    jax.eval_shape(model.init, jax.random.key(0), inputs, mask)


@pytest.mark.parametrize("pool", ["CLS", "MEAN", "SUM"])
@pytest.mark.parametrize(
  ("attention", "merge"),
  [
    ("softmax", ()),
    ("linear", ()),
    ("nam", ()),
    ("nam_causal", ()),
    ("nam_erase", ()),
    ("nam_full", ()),
    ("lru", ()),
    ("nam", (3,)),
    ("nam_causal", (3,)),
  ],
)
def test_padding_changes_nothing(attention, merge, pool):
  model = make(attention, classifier_pool=pool, num_layers=1, merge=merge)
  inputs, mask = tokens(2, 12, length=7)
  variables = linen_tools.random_params(model, inputs, mask)
  apply = linen_tools.compiled(model.apply)
  expected = apply(variables, inputs[:, :7], mask[:, :7])
  other = np.where(mask, inputs, 5)
  for padded in (inputs, other):
    np.testing.assert_allclose(
      apply(variables, padded, mask), expected, rtol=2e-5, atol=2e-5
    )


@pytest.mark.parametrize(
  ("attention", "merge"),
  [
    ("nam_causal", ()),
    ("nam_erase", ()),
    ("gated_deltanet2", ()),
    ("nam_causal", (2, 3)),
    ("nam_decay", ()),  # in both directions
  ],
)
@pytest.mark.parametrize("is_pair", [False, True], ids=["one", "pair"])
def test_a_memory_is_pooled_where_all_tokens_were_seen(
  attention, merge, is_pair
):
  model = make(attention, is_pair, mlp_dim=32, merge=merge)
  inputs, mask = tokens(*((2, 2, 12) if is_pair else (2, 12)), length=7)
  variables = linen_tools.random_params(model, inputs, mask)
  apply = linen_tools.compiled(model.apply)
  before = apply(variables, inputs, mask)
  for position in (0, 6):
    changed = inputs.copy()
    changed[..., position] = changed[..., position] % 19 + 1
    after = apply(variables, changed, mask)
    assert (np.abs(after - before).max(axis=-1) > 1e-6).all()


@pytest.mark.parametrize(
  ("attention", "compat", "is_read"),
  [
    ("softmax", True, False),
    ("softmax", False, True),
    ("linear", True, True),
    ("nam", True, True),
    ("nam_full", True, False),
    ("nam_full", False, True),
  ],
)
def test_compat_takes_black_pixels_for_padding(attention, compat, is_read):
  inputs, mask = tokens(2, 12)
  inputs[:, 5] = 0
  model = make(attention, compat=compat, num_layers=1)
  variables = linen_tools.random_params(model, inputs, mask)
  apply = linen_tools.compiled(model.apply)
  before = apply(variables, inputs, mask)
  variables["params"]["tokens"]["embedding"]["embedding"][0] *= -1
  after = apply(variables, inputs, mask)
  assert (np.abs(after - before).max() > 1e-6) == is_read


@pytest.mark.parametrize("compat", [False, True])
def test_compat_takes_the_mean_over_padding(compat):
  model = make("softmax", classifier_pool="MEAN", compat=compat)
  inputs, mask = tokens(2, 12, length=7)
  variables = linen_tools.random_params(model, inputs, mask)
  apply = linen_tools.compiled(model.apply)
  short = apply(variables, inputs[:, :7], mask[:, :7])
  differs = np.abs(apply(variables, inputs, mask) - short).max() > 1e-4
  assert differs == compat


def test_compat_gives_padded_queries_the_mean_of_all_values():
  model = make("softmax", classifier_pool="MEAN", compat=True, num_layers=1)
  inputs, mask = tokens(1, 12, length=7)
  variables = linen_tools.random_params(model, inputs, mask)
  tree = variables["params"]["tokens"]["encoder"]["encoderblock_0"]
  layer = make_layer("softmax", compat=True)
  x = np.random.default_rng(1).normal(size=(1, 12, 8)).astype(np.float32)
  attention = {"params": tree["SelfAttention_0"]}
  y = linen_tools.compiled(layer.apply)(attention, x, mask=mask)
  kernels = attention["params"]
  values = np.einsum("bsd,dhv->bshv", x, kernels["value"]["kernel"])
  mean = np.einsum("bhv,hvd->bd", values.mean(axis=1), kernels["out"]["kernel"])
  np.testing.assert_allclose(y[0, 7:], np.repeat(mean, 5, axis=0), rtol=1e-4)


@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize("attention", ["local", "synthesizer"])
def test_compat_lets_padding_attend_from_what_it_holds(attention, compat):
  layer = make_layer(attention, compat=compat)
  x, mask = linen_tools.normal(2, 12, 8), tokens(2, 12, length=7)[1]
  params = linen_tools.random_params(layer, x, mask=mask)
  apply = linen_tools.compiled(layer.apply)
  padded = np.where(mask[..., None], x, -x)
  change = apply(params, x, mask=mask) - apply(params, padded, mask=mask)
  assert np.abs(change[mask]).max() < 1e-6
  assert (np.abs(change[:, 7]).max() > 1e-3) == compat


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"attention": "nan"}, "unknown attention 'nan'; did you mean 'nam'?"),
    ({"classifier_pool": "MAX"}, "classifier_pool='MAX' is not one of CLS"),
    (
      {"attention": "performer", "options": {"attention_fn_cls": "x"}},
      "attention_fn_cls='x' is not one of generalized, softmax",
    ),
    ({"norm": "rms"}, "norm='rms' is not one of layer, batch"),
    ({"merge": (2,)}, r"merge=\(2,\) must have one number"),
    (
      {"attention": "nam_full", "options": {"bidirectional": False}},
      "bidirectional is no option: choose another attention",
    ),
    ({"options": {"mode": "causal"}}, "attention_kwargs.mode is no option"),
    (
      {"options": {"decoy": 1}},
      "unknown option of nam 'attention_kwargs.decoy'; did you mean"
      " 'attention_kwargs.decay'? Known: initial_write, initial_erase,",
    ),
    (
      {"attention": "softmax", "options": {"foo": 1}},
      "option of softmax 'attention_kwargs.foo'. Known: none",
    ),
    (
      {"attention": "lru", "options": {"num_heads": 1}},
      "'attention_kwargs.num_heads'. Known: state_dim, r_min, r_max,",
    ),
    (
      {"attention": "tlb", "options": {"foo": 1}},
      "option of tlb 'attention_kwargs.foo'. Known: block_size,",
    ),
    (
      {"attention": "bigbird", "options": {"dropout_rate": 0.1}},
      "Known: block_size, num_rand_blocks, seed, use_bias, dtype",
    ),
    (
      {
        "attention": "performer",
        "options": {"attention_fn_kwargs": {"kernel_eps": 1.0}},
      },
      "did you mean 'attention_kwargs.attention_fn_kwargs.kernel_epsilon'?",
    ),
    ({"attention": "tlb", "norm": "batch"}, "norm needs the blocks of a Tr"),
    ({"attention": "tlb", "gated_mlp": True}, "gated_mlp needs the blocks"),
    ({"attention": "tlb", "merge": (2, 1)}, "merge needs the blocks"),
  ],
)
def test_a_wrong_name_is_answered_with_the_known_ones(change, message):
  with pytest.raises(ValueError, match=message.replace("?", r"\?")):
    make(**({"attention": "nam"} | change))


def test_the_state_of_lru_is_as_wide_as_all_heads():
  size = attentions.Size(**(TINY | {"qkv_dim": 6}), max_len=12)
  make_lru = attentions.KINDS["lru"].make
  assert make_lru(size)().state_dim == 6
  assert make_lru(size, state_dim=3, r_min=0.5)() == lru.LRU(3, r_min=0.5)


def test_an_unknown_size_is_an_error():
  with pytest.raises(TypeError, match="num_head"):
    make("softmax", num_head=3)


def test_options_are_fields_of_the_memory():
  size = attentions.Size(**TINY, max_len=12)
  layer = attentions.KINDS["nam_full"].make(size, max_erase=2, decay="head")()
  assert (layer.max_erase, layer.decay, layer.bidirectional) == (2, "head", 1)


def test_the_style_of_the_blocks_arrives():
  sizes = {"norm": "batch", "gated_mlp": True, "merge": (1, 2)}
  model = make("softmax", classifier_pool="MEAN", **sizes)
  inputs, mask = tokens(2, 12)
  shapes = jax.eval_shape(model.init, jax.random.key(0), inputs, mask)
  encoder = shapes["params"]["tokens"]["encoder"]
  assert set(encoder) == {
    "encoderblock_0",
    "merge_1",
    "encoderblock_1",
    "encoder_norm",
  }
  block = encoder["encoderblock_1"]
  assert block["MLP_0"]["Dense_0"]["kernel"].shape == (8, 16)
  assert "BatchNorm_0" in block


def test_sizes_have_the_names_of_the_benchmark():
  names = {field.name for field in dataclasses.fields(attentions.Size)}
  assert {"emb_dim", "num_heads", "num_layers", "qkv_dim", "mlp_dim"} < names


def test_options_of_an_attention_of_ones_own_are_checked_if_known(monkeypatch):
  def mine(size, *, mode="a", **options):
    return lambda: nam_attention.NAMAttention(size.num_heads, **options)

  def strict(size, window=8):
    return mine(size)

  monkeypatch.setitem(attentions.KINDS, "mine", attentions.Kind(mine))
  monkeypatch.setitem(attentions.KINDS, "strict", attentions.Kind(strict))
  make("mine", options={"mode": "b", "decay": "head"})
  make("strict", options={"window": 4})
  with pytest.raises(ValueError, match=r"kwargs\.windo'; did .* Known: window"):
    make("strict", options={"windo": 4})


def test_only_pairs_interact():
  with pytest.raises(ValueError, match="interact needs a task with pairs"):
    make("nam", interact=True)
