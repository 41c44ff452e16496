"""The models of Table 1: what each must do, and how to add one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

import nam_jax
from nam_jax.models import registry
from tests import linen_tools

TINY = {
  "emb_dim": 8,
  "num_heads": 2,
  "tape_length": 5,
  "readout_dim": 8,
  "state_features": 4,
  "mlp_dim": 8,
  "controller_features": 8,
  "num_slots": 4,
  "slot_width": 4,
  "num_reads": 2,
  "num_steps": 2,
  "num_layers": 1,
  "max_len": 16,
}
# Of the memories, which differ in settings of one layer, the first and the one
# with the most settings.
NAMES = [n for n in registry.CORES if n not in registry.MEMORIES]
NAMES += ["nam", "gated_deltanet2"]


def make_tiny(name, **fields):
  """The model with those fields of TINY that it has."""
  known = ["emb_dim", *registry.core_fields(name)]
  tiny = {field: value for field, value in TINY.items() if field in known}
  return registry.make_model(name, 16, **(tiny | fields))


def make_batch(b=3, s=9):
  """Token ids and which of them are real; rows end with padding."""
  rng = np.random.default_rng(0)
  inputs = rng.integers(0, 16, (b, s), np.int32)
  tokens = np.arange(s)[None] < np.array([s, s - 2, s - 4])[:, None]
  return jnp.asarray(inputs), jnp.asarray(tokens)


@pytest.mark.parametrize("name", NAMES)
def test_padding_changes_no_real_output_and_no_gradient(name):
  model, (inputs, tokens) = make_tiny(name), make_batch()
  params = linen_tools.random_params(model, inputs, tokens)["params"]["core"]
  real = np.asarray(tokens)[..., None]
  x = linen_tools.normal(*tokens.shape, TINY["emb_dim"])

  def loss(params, x):
    core = {"params": params}
    outputs = model.core.apply(core, x, mask=tokens, train=False)
    outputs = jnp.where(real, outputs, 0)
    return jnp.sum(jnp.sin(outputs)), outputs

  learn = linen_tools.compiled(jax.grad(loss, (0, 1), has_aux=True))
  expected = learn(params, x)
  assert expected[1].shape[:2] == (3, 9)
  for anything in (0, np.nan, np.inf):
    padded = np.where(real, x, np.float32(anything))
    linen_tools.close(learn(params, padded), expected)
  assert np.abs(learn(params, x * 2)[1] - expected[1]).max() > 1e-3


@pytest.mark.parametrize("shape", [(0, 9), (2, 0)])
@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch_or_sequence_is_no_error(name, shape):
  model = make_tiny(name)
  variables = linen_tools.random_params(model, *make_batch())

  def loss(variables, inputs, tokens):
    logits = model.apply(variables, inputs, tokens)
    assert logits.shape == (*shape, 16)
    return jnp.sum(logits)

  nothing = jnp.zeros(shape, jnp.int32)
  jax.eval_shape(jax.grad(loss), variables, nothing, nothing == 0)


@pytest.mark.parametrize("what", ["embedding", "id"])
def test_padding_has_no_embedding(monkeypatch, what):
  monkeypatch.setitem(registry.CORES, "guess", Guess)
  model, (inputs, tokens) = registry.make_model("guess", 16), make_batch()
  inputs = np.where(tokens, inputs % 15, 15)
  variables = linen_tools.random_params(model, inputs, tokens)

  def loss(variables, inputs):
    logits = model.apply(variables, inputs, tokens)
    logits = jnp.where(tokens[..., None], logits, 0)
    return jnp.sum(jnp.sin(logits)), logits

  learn = linen_tools.compiled(jax.grad(loss, has_aux=True))
  expected = learn(variables, inputs)
  if what == "id":
    inputs = np.where(tokens, inputs, 99).astype(np.int32)
  else:
    variables["params"]["embedding"]["embedding"][15] = np.nan
  linen_tools.close(learn(variables, inputs), expected)


@pytest.mark.parametrize("name", NAMES)
def test_dropout_acts_in_training(name, key):
  model, (inputs, tokens) = make_tiny(name, dropout_rate=0.5), make_batch()
  variables = linen_tools.random_params(model, inputs, tokens)

  @linen_tools.compiled
  def train(variables, key):
    rngs = {"dropout": key}
    return model.apply(variables, inputs, tokens, train=True, rngs=rngs)

  first, second = (train(variables, k) for k in jax.random.split(key))
  assert np.abs(first - second)[np.asarray(tokens)].max() > 1e-3


@pytest.mark.parametrize(
  "name", ["nam_tm", "lsam", "dnc", "ut", "lstm", *registry.MEMORIES]
)
def test_models_without_learned_positions_take_any_length(name):
  model, (inputs, tokens) = make_tiny(name), make_batch()
  variables = linen_tools.random_params(model, inputs, tokens)
  longer = np.tile(inputs, 3)
  logits = jax.eval_shape(model.apply, variables, longer, np.tile(tokens, 3))
  assert logits.shape == (3, 27, 16)


def test_memories_are_the_causal_presets_and_take_further_settings():
  causal = {n for n, p in nam_jax.PRESETS.items() if "bidirectional" not in p}
  assert set(registry.MEMORIES) == causal | {"nam_causal"}
  core = make_tiny("kda", max_erase=2, num_writes=3, decay="head").core
  layer = core.attention()
  assert layer.max_erase == 2
  assert layer.num_writes == 3
  assert layer.decay == "head"
  assert layer.output_gate == "sigmoid"  # as kda has it
  with pytest.raises(ValueError, match="max_erase must lie between 0 and 2"):
    make_tiny("nam", max_erase=3)
  with pytest.raises(ValueError, match="max_erase needs mode='erase'"):
    make_tiny("gla", max_erase=2)
  with pytest.raises(ValueError, match="of model 'nam': 'max_eras'; did you"):
    make_tiny("nam", max_eras=2)


@pytest.mark.parametrize("name", ["nam", "gated_deltanet2"])
def test_memories_see_no_later_token(name):
  model, (inputs, tokens) = make_tiny(name), make_batch()
  variables = linen_tools.random_params(model, inputs, tokens)
  apply = linen_tools.compiled(lambda x: model.apply(variables, x, tokens))
  changed = inputs.at[:, 4].set((inputs[:, 4] + 1) % 16)
  difference = np.abs(apply(inputs) - apply(changed)).max(axis=(0, 2))
  assert difference[:4].max() == 0
  assert difference[4:].min() > 1e-6


@pytest.mark.parametrize("name", ["transformer", "linear"])
def test_a_convolution_comes_before_the_first_block(name):
  model, (inputs, tokens) = make_tiny(name, convolution=2), make_batch()
  variables = linen_tools.random_params(model, inputs, tokens)
  kernel = variables["params"]["core"]["kernel"]
  assert kernel.shape == (2, 8)

  @linen_tools.compiled
  def gradient(kernel):
    core = variables["params"]["core"] | {"kernel": kernel}
    params = variables["params"] | {"core": core}
    return jnp.sum(model.apply({"params": params}, inputs, tokens) ** 2)

  assert np.abs(jax.grad(gradient)(kernel)).min(axis=1).max() > 1e-4


def test_second_machine_meets_the_first_through_the_tape_alone():
  model, (inputs, tokens) = make_tiny("nam_tm"), make_batch()
  params = linen_tools.random_params(model, inputs, tokens)["params"]

  @linen_tools.compiled
  def gradients(params):
    def loss(params):
      logits = model.apply({"params": params}, inputs, tokens)
      return jnp.sum(logits**2)

    return jax.grad(loss)(params)["core"]["first_machine"]

  first = gradients(params)
  assert np.abs(first["out"]["kernel"]).max() == 0
  assert np.abs(first["value"]["kernel"]).max() > 1e-4
  assert np.abs(first["key"]["kernel"]).max() > 1e-6


def test_heads_of_both_machines_are_sown_and_start_on_the_first_cell():
  model, (inputs, tokens) = make_tiny("nam_tm"), make_batch()
  variables = linen_tools.random_params(model, inputs, tokens)
  _, sown = linen_tools.compiled(
    lambda v: model.apply(v, inputs, tokens, mutable="intermediates")
  )(variables)
  core = sown["intermediates"]["core"]
  (first,) = core["first_machine"]["heads"]
  (second,) = core["second_machine"]["heads"]
  assert first.shape == second.shape == (3, 9, 2, 2, 5)
  start = np.broadcast_to(np.eye(5)[0], (3, 2, 2, 5))
  np.testing.assert_array_equal(first[:, 0], start)
  np.testing.assert_array_equal(second[:, 0], start)
  assert np.abs(first[0] - second[0]).max() > 1e-3


@pytest.mark.parametrize(
  ("name", "fields", "actions", "gates"),
  [
    ("nam_tm", {}, 4, 2),
    ("nam_tm_nojump", {}, 3, 2),
    ("nam_tm", {"separate_erase": True}, 4, 3),
  ],
)
def test_variants_of_the_machine(name, fields, actions, gates):
  model, (inputs, tokens) = make_tiny(name, **fields), make_batch()
  params = linen_tools.random_params(model, inputs, tokens)["params"]
  machine = params["core"]["second_machine"]
  assert machine["action"]["kernel"].shape == (8, 2, 2, actions)
  assert machine["gate"]["kernel"].shape == (8, 2, gates)
  assert ("key" in machine) == ("query" in machine) == (actions == 4)


def test_state_carries_what_the_machine_read_before():
  inputs, tokens = make_batch()

  def influence(**fields):
    """The first token's effect on the last logits, through the state alone."""
    model = make_tiny("nam_tm", **fields)
    params = linen_tools.random_params(model, inputs, tokens)["params"]
    params["logits"]["kernel"][:8] = 0  # leaves the part of the state
    apply = linen_tools.compiled(
      lambda x: model.apply({"params": params}, x, tokens)
    )
    first_changed = inputs.at[:, 0].set((inputs[:, 0] + 1) % 16)
    return np.abs(apply(inputs) - apply(first_changed))[0, -1].max()

  assert influence() > 1e-4
  assert influence(state_features=0) == 0


def test_lsam_decoder_starts_from_the_encoders_memory_with_zero_hidden():
  model, (inputs, tokens) = make_tiny("lsam"), make_batch()
  variables = linen_tools.random_params(model, inputs, tokens)
  calls = []

  def record(call, args, kwargs, context):
    result = call(*args, **kwargs)
    if isinstance(context.module, nam_jax.LSAM):
      calls.append((kwargs.get("initial_state"), result[1]))
    return result

  with nn.intercept_methods(record):
    model.apply(variables, inputs, tokens)
  (nothing, encoded), (start, _) = calls
  assert nothing is None
  np.testing.assert_array_equal(start.memory, encoded.memory)
  assert np.abs(start.memory).max() > 0
  assert np.abs(start.hidden).max() == 0


class Guess(nn.Module):
  """The smallest core: it looks at each token by itself."""

  scales: tuple[float, ...] = (1.0,)

  @nn.compact
  def __call__(self, x, *, mask, train):
    return jnp.concatenate([scale * x for scale in self.scales], axis=-1)


def test_user_adds_a_core_by_registering_it(monkeypatch, key):
  monkeypatch.setitem(registry.CORES, "guess", Guess)
  model = registry.make_model("guess", 16, emb_dim=4, scales=[1.0, 2.0])
  assert model.core.scales == (1.0, 2.0)  # a list, as in JSON
  logits, variables = jax.eval_shape(model.init_with_output, key, *make_batch())
  assert logits.shape == (3, 9, 16)
  assert variables["params"]["logits"]["kernel"].shape == (8, 16)


def test_unknown_model_is_named_with_the_nearest():
  with pytest.raises(ValueError, match="'nam_tn'; did you mean 'nam_tm'"):
    registry.make_model("nam_tn", 16)


def test_unknown_argument_is_named_with_the_known_ones():
  message = "of model 'lstm': 'featurs'; did you mean 'features'. Known: emb"
  with pytest.raises(ValueError, match=message):
    registry.make_model("lstm", 16, featurs=8)
