"""Wrong arguments to the operations: a ValueError that names the numbers.

Under pytest, jaxtyping would report most of these first, so it is switched off.
"""

import functools

import jax
import jax.numpy as jnp
import jaxtyping
import pytest

import nam_jax
from nam_jax.baselines import temporal_latent
from nam_jax.baselines.efficient import local, longformer
from nam_jax.models import attentions, registry

NOT_BOOLEAN = "mask must be boolean, True at real tokens, got float32; for an"
X = jnp.zeros((2, 5, 3, 4))
GATE = jnp.ones((2, 5, 3))


@pytest.fixture(autouse=True)
def _no_shape_checks():
  jaxtyping.config.update("jaxtyping_disable", True)
  yield
  jaxtyping.config.update("jaxtyping_disable", False)


CASES = {
  "rank": (
    {"q": jnp.zeros((5, 3, 4))},
    r"q must have 4 axes .* \(5, 3, 4\)",
  ),
  "queries": (
    {"q": jnp.zeros((2, 6, 3, 4))},
    r"q and k must agree, got \(2, 6, 3, 4\) and \(2, 5, 3, 4\)",
  ),
  "values": (
    {"v": jnp.zeros((2, 5, 2, 4))},
    r"v and k must agree .* \(2, 5, 2, 4\) and \(2, 5, 3, 4\)",
  ),
  "mask": (
    {"mask": jnp.ones((2, 4), bool)},
    r"mask must have shape \(2, 5\) .* got \(2, 4\)",
  ),
  "additive mask": (
    {"mask": jnp.zeros((2, 5))},
    r"mask must be boolean, True at real tokens, got float32; for an additive",
  ),
  "write gate": (
    {"p_w": jnp.ones((2, 5))},
    r"p_w must .* shape \(2, 5, 3\) or \(2, 5, 3, 4\) .* got \(2, 5\)",
  ),
  "read gate": (
    {"p_r": jnp.ones((2, 5, 1))},
    r"p_r must be a scalar or have shape \(2, 5, 3\) .* got \(2, 5, 1\)",
  ),
  "write probability": ({"p_w": 1.5}, r"p_w must lie in \[0, 1\], got 1.5"),
  "read probability": ({"p_r": -0.1}, r"p_r must lie in \[0, 1\], got -0.1"),
}
SCAN_CASES = CASES | {
  "erase probability": ({"p_e": 3}, r"p_e must lie in \[0, 2\], got 3"),
  "decay": ({"log_decay": 0.5}, r"log_decay must be zero or less, got 0.5"),
  "erase key": (
    {"erase_key": jnp.zeros((2, 5, 3, 5))},
    r"erase_key and k must agree, got \(2, 5, 3, 5\) and \(2, 5, 3, 4\)",
  ),
  "memory": (
    {"initial_memory": jnp.zeros((2, 3, 4, 5))},
    r"initial_memory must have shape \(2, 3, 4, 4\) .* got \(2, 3, 4, 5\)",
  ),
}


@pytest.mark.parametrize(
  "form", [nam_jax.memory_scan, nam_jax.memory_chunked], ids=["scan", "chunked"]
)
@pytest.mark.parametrize("case", SCAN_CASES)
def test_sequence_forms_name_the_wrong_argument(form, case):
  change, message = SCAN_CASES[case]
  with pytest.raises(ValueError, match=message):
    form(**{"q": X, "k": X, "v": X, **change})


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_outer_product_attention_names_the_wrong_argument(causal, case):
  change, message = CASES[case]
  arguments = {"q": X, "k": X, "v": X, **change}
  with pytest.raises(ValueError, match=message):
    nam_jax.outer_product_attention(**arguments, causal=causal)


SOFTMAX = functools.partial(nam_jax.SelfAttention, 2)
SIZES = {"emb_dim": 8, "num_heads": 2, "num_layers": 1, "mlp_dim": 8}
LAYERS = {
  "softmax": SOFTMAX(),
  "efficient": longformer.LongformerAttention(2),
  "block": nam_jax.TransformerBlock(SOFTMAX, 8),
  "universal": nam_jax.UniversalTransformer(SOFTMAX, 2, 8),
  "lstm": nam_jax.LSTMAttention(),
  "latent": temporal_latent.TemporalLatentEncoder(2, 8, 8),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_refuse_an_additive_mask(name):
  x, mask = jnp.zeros((2, 5, 8)), jnp.array([[0.0] * 3 + [-1e9] * 2] * 2)
  with pytest.raises(ValueError, match=NOT_BOOLEAN):
    LAYERS[name].init(jax.random.key(0), x, mask=mask)


@pytest.mark.parametrize("is_pair", [False, True])
def test_classifiers_refuse_an_additive_mask(is_pair):
  model = attentions.make_classifier(
    *("linear", {}),
    **(SIZES | {"qkv_dim": 8, "max_len": 5}),
    vocab_size=9,
    num_classes=2,
    is_pair=is_pair,
  )
  inputs = jnp.zeros((2, 2, 5) if is_pair else (2, 5), jnp.int32)
  with pytest.raises(ValueError, match=NOT_BOOLEAN):
    model.init(jax.random.key(0), inputs, inputs.astype(float))


def test_transducers_refuse_an_additive_mask():
  model = registry.make_model("transformer", 9, **SIZES, max_len=5)
  inputs = jnp.zeros((2, 5), jnp.int32)
  with pytest.raises(ValueError, match=NOT_BOOLEAN):
    model.init(jax.random.key(0), inputs, inputs.astype(float))


@pytest.mark.parametrize(
  "attention",
  [
    nam_jax.nam_attention_fn,
    nam_jax.linear_attention_fn,
    local.local_attention_fn(),
  ],
  ids=["nam", "linear", "local"],
)
def test_attention_functions_refuse_an_additive_mask(attention):
  with pytest.raises(ValueError, match=NOT_BOOLEAN):
    attention(X, X, X, mask=jnp.zeros((2, 1, 1, 5)))


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"mask": jnp.zeros((2, 5))}, NOT_BOOLEAN),
    ({"key_mask": jnp.zeros((2, 5))}, "key_" + NOT_BOOLEAN),
    ({"mask": jnp.ones((2, 4), bool)}, r"mask must have shape \(2, 5\)"),
  ],
)
def test_linear_attention_names_the_wrong_mask(change, message):
  with pytest.raises(ValueError, match=message):
    nam_jax.linear_attention(X, X, X, **change)


def test_segment_ids_of_another_shape_are_refused():
  message = r"segment_ids must have shape \(2, 5\) .* got \(2, 4\)"
  with pytest.raises(ValueError, match=message):
    nam_jax.memory(X, X, X, segment_ids=jnp.zeros((2, 4), int))


@pytest.mark.parametrize(
  "form",
  [
    nam_jax.memory,
    nam_jax.memory_scan,
    nam_jax.memory_chunked,
    nam_jax.memory_sharded,
  ],
)
def test_gates_by_position_are_told_their_names(form):
  message = rf"gates are keyword arguments: {form.__name__}\(q, k, v, p_r="
  with pytest.raises(TypeError, match=message):
    form(X, X, X, 1.0, GATE, GATE)


def test_several_writes_without_their_axis_are_refused():
  message = r"k and v must have 5 axes .* got \(2, 5, 3, 4\)"
  with pytest.raises(ValueError, match=message):
    nam_jax.memory_several_writes(X, X, X)


@pytest.mark.parametrize("gate", [{"log_decay": 0.5}, {"p_r": 1.5}])
def test_several_writes_check_numbers_as_memory_does(gate):
  writes = X[:, :, None]
  with pytest.raises(ValueError, match=f"{next(iter(gate))} must"):
    nam_jax.memory_several_writes(X, writes, writes, **gate)


@pytest.mark.parametrize("size", [0, -8, 24])
def test_a_chunk_size_that_is_no_power_of_two_is_refused(size):
  with pytest.raises(ValueError, match=f"power of two, got {size}"):
    nam_jax.memory_chunked(X, X, X, chunk_size=size)


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"M": jnp.zeros(4)}, r"M must have axes \[..., v, k\], got shape \(4,\)"),
    ({"k": jnp.zeros(3)}, r"k must have shape \(4,\) .* got \(3,\)"),
    ({"v": jnp.zeros(1)}, r"v must have shape \(3,\) .* got \(1,\)"),
    ({"p_w": jnp.zeros(3)}, r"p_w must have shape \(\) .* got \(3,\)"),
  ],
)
def test_write_names_the_wrong_argument(change, message):
  arguments = {"M": jnp.zeros((3, 4)), "k": jnp.zeros(4), "v": jnp.zeros(3)}
  with pytest.raises(ValueError, match=message):
    nam_jax.write(**(arguments | change))


def test_read_names_the_wrong_argument():
  with pytest.raises(ValueError, match=r"q must have shape \(4,\) .* \(3,\)"):
    nam_jax.read(jnp.zeros((3, 4)), jnp.zeros(3))


@pytest.mark.parametrize(
  "layer",
  [nam_jax.NAMAttention(2), nam_jax.LSAM(8, 2), nam_jax.NAMTuringMachine(2)],
  ids=["attention", "lsam", "nam_tm"],
)
def test_layers_refuse_tokens_of_another_rank(layer):
  with pytest.raises(ValueError, match=r"x must have 3 axes .* \(5, 8\)"):
    layer.init(jax.random.key(0), jnp.zeros((5, 8)))


def test_recurrent_layers_refuse_a_state_of_another_size():
  x, key = jnp.zeros((2, 5, 8)), jax.random.key(0)
  state = nam_jax.LSAMState(jnp.zeros((2, 2, 4, 4)), jnp.zeros((3, 2, 4)))
  message = r"initial_state.hidden must have shape \(2, 2, 4\), got \(3, 2, 4\)"
  with pytest.raises(ValueError, match=message):
    nam_jax.LSAM(8, 2).init(key, x, initial_state=state)
  tape = nam_jax.Tape(
    jnp.zeros((2, 2, 4, 9)), jnp.zeros((2, 2, 0, 9)), jnp.zeros((2, 2, 2, 9))
  )
  message = r"initial_tape.keys must have shape \(2, 2, 4, 9\)"
  with pytest.raises(ValueError, match=message):
    nam_jax.NAMTuringMachine(2).init(key, x, initial_tape=tape)
  with pytest.raises(ValueError, match="tape_length must be positive, got 0"):
    nam_jax.NAMTuringMachine(2).init(key, x, tape_length=0)
