"""Token by token, models give the outputs of a whole sequence."""

import functools
import json
import subprocess
import sys

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import nam_jax
from nam_jax.models import transducer
from tests import linen_tools, lowered, stream_tokens
from tests.agreement import Random, assert_agree

B, S, D = 2, 7, 8
ERASE = functools.partial(nam_jax.NAMAttention, num_heads=2, mode="erase")
ENCODER = nam_jax.TransformerEncoder(ERASE, num_layers=2, mlp_dim=16)
DELTA = functools.partial(ERASE, **nam_jax.PRESETS["gated_deltanet2"])

# Each with the name of the state that it takes; None: `continue_from`.
MODELS = {
  "causal": (nam_jax.NAMAttention(2, "causal"), None),
  "erase": (ERASE(), None),
  "encoder": (ENCODER, None),
  "gated_deltanet2": (ENCODER.clone(attention=DELTA, scan=True), None),
  "lsam": (nam_jax.LSAM(D, 2), "initial_state"),
  "lstm": (nam_jax.LSTM(D), "initial_state"),
  "nam_tm": (nam_jax.NAMTuringMachine(2), "initial_tape"),
}


def continue_from(model, variables, x, state, **options):
  return model.apply(variables, x, state, **options, method="continue_from")


def make_program(name, tokens):
  """(exported program, outputs of the whole sequence, final state)."""
  model, state_name = MODELS[name]
  x = jnp.swapaxes(tokens[:, :, 0], 0, 1)  # [b s d]
  variables = linen_tools.random_params(model, x)

  def step(variables, state, token, mask=None):
    if state_name is None:
      return continue_from(model, variables, token, state, mask=mask)
    return model.apply(variables, token, mask=mask, **{state_name: state})

  # One padded token gives the state that a sequence starts with.
  nothing = jnp.zeros((x.shape[0], 1), bool)
  _, start = jax.jit(step)(variables, None, x[:, :1], nothing)
  outputs, final = linen_tools.compiled(step)(variables, None, x)
  program = nam_jax.export_step(step, variables, start, tokens[0])
  return program, np.swapaxes(outputs, 0, 1)[:, :, None], final


def make_tokens(s, b=B):
  """s tokens [b 1 d], one after another."""
  return np.asarray(Random(s).normal(s, b, 1, D))


@pytest.mark.parametrize("name", MODELS)
def test_token_by_token_equals_the_whole_sequence(name):
  tokens = make_tokens(S)
  program, expected, final = make_program(name, tokens)
  exported = jax.export.deserialize(program)
  state = [jnp.zeros(a.shape, a.dtype) for a in exported.in_avals[:-1]]
  step, outputs = jax.jit(exported.call, donate_argnums=0), []
  for token in tokens:
    output, state = step(state, token)
    outputs.append(output)
  assert_agree(np.stack(outputs), expected, 1e-5)
  assert_agree(state[1:], jax.tree.leaves(final), 1e-5)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_with_jax_alone_streams_in_constant_memory(tmp_path):
  tokens = make_tokens(1500, b=1)
  program, expected, _ = make_program("encoder", tokens)
  (tmp_path / "step.jax").write_bytes(program)
  np.save(tmp_path / "tokens.npy", tokens)
  script = [sys.executable, stream_tokens.__file__]
  run = subprocess.run(
    [*script, "step.jax", "tokens.npy", "6000", "outputs.npy"],
    cwd=tmp_path,
    capture_output=True,
    text=True,
  )
  assert run.returncode == 0, run.stderr
  report = json.loads(run.stdout)
  assert not {"nam_jax", "flax"} & set(report["modules"])
  assert report["finite"]
  assert report["last"]["mib"] < report["first"]["mib"] + 2
  assert_agree(np.load(tmp_path / "outputs.npy"), expected, 1e-4)


def test_a_program_for_other_platforms_has_the_form_of_each():
  memory, tokens = jnp.zeros((B, 2, 4, 4)), jnp.zeros((B, 128, D))
  program = nam_jax.export_step(
    lambda v, memory, token: continue_from(ERASE(), v, token, memory),
    linen_tools.random_params(ERASE(), tokens),
    memory,
    tokens,
    platforms=("cpu", "cuda", "tpu"),
  )
  exported = jax.export.deserialize(program)
  assert exported.platforms == ("cpu", "cuda", "tpu")
  text = exported.mlir_module()
  longest = [max(lowered.loops(text, platform)) for platform in range(3)]
  assert longest == [128, 2, 2]  # token by token, in chunks of 64


def test_a_state_that_changes_its_shape_is_refused():
  def longer(variables, state, token):
    return token, jnp.concatenate([state, token])

  with pytest.raises(ValueError, match=r"return a state like .*\(4,"):
    nam_jax.export_step(longer, {}, jnp.zeros(3), jnp.zeros(1))


def test_an_encoder_reads_a_sequence_in_parts():
  x = Random().normal(B, S, D)
  variables = linen_tools.random_params(ENCODER, x)

  @linen_tools.compiled
  def run(x, state=None):
    return continue_from(ENCODER, variables, x, state)

  whole, final = run(x)
  assert_agree(whole, jax.jit(ENCODER.apply)(variables, x), 1e-6)
  _, state = run(x[:, :0])
  assert not any(leaf.any() for leaf in jax.tree.leaves(state))
  first, state = run(x[:, :4], state)
  second, state = run(x[:, 4:], state)
  assert_agree(np.concatenate([first, second], axis=1), whole, 1e-5)
  assert_agree(state, final, 1e-5)


def test_an_encoder_refuses_a_state_that_does_not_fit():
  x = Random().normal(B, S, D)
  variables = linen_tools.random_params(ENCODER, x)
  _, state = jax.eval_shape(
    lambda: continue_from(ENCODER, variables, x[:, :0], None)
  )
  limited = ENCODER.clone(max_len=9)
  with pytest.raises(ValueError, match="max_len must be None, got 9"):
    continue_from(limited, variables, x, state)
  with pytest.raises(ValueError, match=r"shape \(1,\), one .* got \(2,\)"):
    continue_from(ENCODER, variables, x[:1], state)
  state = state._replace(memories=state.memories[:1])
  with pytest.raises(ValueError, match="1 memories, but num_layers=2"):
    continue_from(ENCODER, variables, x, state)


# Padding before, after and between the tokens of a prompt, and none.
PROMPT_MASK = np.array(
  [[0, 0, 0, 1, 1], [1, 1, 1, 1, 0], [1, 0, 1, 0, 0], [1, 1, 1, 1, 1]], bool
)
LENGTHS = PROMPT_MASK.sum(1)
MORE = 3  # tokens after the prompt
LETTERS = 20


def language_model(**options):
  """(model, variables), with NAM attention of these options."""
  attention = functools.partial(nam_jax.NAMAttention, num_heads=2, **options)
  core = nam_jax.TransformerEncoder(attention, num_layers=2, mlp_dim=16)
  model = transducer.Transducer(LETTERS, D, core)
  ids = jnp.zeros((1, 1), jnp.int32)
  variables = linen_tools.random_params(model, ids, ids == 0)
  # Norms of about one: otherwise all tokens predict the same.
  return model, jax.tree.map_with_path(
    lambda path, p: p + 1 if path[-1].key == "scale" else p, variables
  )


def places(start, stop):
  """Where tokens start to stop of each row are, in rows without gaps."""
  place = np.arange(PROMPT_MASK.shape[1] + MORE)[None]
  return (place >= np.reshape(start, (-1, 1))) & (place < stop[:, None])


def random_rows():
  """Prompts with gaps, and rows without gaps, which hold some tokens more."""
  rng = np.random.default_rng(0)
  rows = rng.integers(LETTERS, size=(4, PROMPT_MASK.shape[1] + MORE))
  rows = rows.astype(np.int32)
  prompts = np.zeros(PROMPT_MASK.shape, np.int32)
  prompts[PROMPT_MASK] = rows[places(0, LENGTHS)]
  return prompts, rows


@pytest.mark.parametrize("options", [{"mode": "erase"}])
def test_rows_of_different_lengths_stream_like_whole_rows(options):
  model, variables = language_model(**options)
  step = functools.partial(continue_from, model, variables)
  step = linen_tools.compiled(step)
  prompts, rows = random_rows()
  real = places(0, LENGTHS + MORE)
  whole = linen_tools.compiled(model.apply)(variables, rows, real)
  read, state = step(prompts, None, mask=PROMPT_MASK)
  assert_agree(read[PROMPT_MASK], whole[places(0, LENGTHS)], 1e-5)
  follows = places(LENGTHS, LENGTHS + MORE)
  outputs = []
  for token in rows[follows].reshape(4, MORE).T:
    output, state = step(token[:, None], state)
    outputs.append(output[:, 0])
  expected = whole[follows].reshape(4, MORE, LETTERS)
  assert_agree(np.stack(outputs, axis=1), expected, 1e-5)
  np.testing.assert_array_equal(state.position, LENGTHS + MORE)


def test_generated_tokens_are_the_likeliest_after_the_whole_row():
  model, variables = language_model(mode="erase")

  def apply(variables, state, tokens, mask=None):
    return continue_from(model, variables, tokens, state, mask=mask)

  prompts, rows = random_rows()
  found = nam_jax.generate(apply, variables, prompts, MORE, mask=PROMPT_MASK)
  whole, each = linen_tools.compiled(model.apply), np.arange(4)
  for length in LENGTHS + np.arange(MORE)[:, None]:
    logits = whole(variables, rows, places(0, length))
    rows[each, length] = logits[each, length - 1].argmax(-1)
  expected = rows[places(LENGTHS, LENGTHS + MORE)].reshape(4, MORE)
  assert len(np.unique(expected)) > 3
  np.testing.assert_array_equal(found, expected)
  last = nam_jax.generate(apply, variables, prompts[3:], MORE)  # no padding
  np.testing.assert_array_equal(last[0], expected[3])


def test_drawn_tokens_follow_the_temperature_in_one_program():
  logits, traced = np.array([0.0, 1.0, -1.0], np.float32), []

  def apply(variables, state, tokens, mask=None):
    traced.append(tokens.shape)
    return jnp.broadcast_to(variables, (*tokens.shape, 3)), state

  for temperature in (0.5, 2.0):
    prompt, programs = np.zeros((4, 1), np.int32), len(traced)
    tokens = nam_jax.generate(
      apply,
      logits,
      prompt,
      2500,
      temperature=temperature,
      key=jax.random.key(0),
    )
    share = np.bincount(np.ravel(tokens), minlength=3) / tokens.size
    expected = np.exp(logits / temperature)
    np.testing.assert_allclose(share, expected / expected.sum(), atol=0.02)
  assert len(traced) == programs
  with pytest.raises(ValueError, match="needs both a temperature and a key"):
    nam_jax.generate(apply, logits, prompt, 1, temperature=1.0)
