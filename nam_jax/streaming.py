"""Runs a trained causal model token by token, here or from a file.

All such a model remembers of earlier tokens is its state, whose size is fixed.
So the millionth token takes as much time and memory as the first.

`generate` continues prompts with the model's own predictions. `export_step`
writes the model to a file:

  def apply(variables, memory, token):
    return layer.apply(variables, token, memory, method="continue_from")

  program = nam_jax.export_step(apply, variables, memory, token)
  pathlib.Path("step.jax").write_bytes(program)

Running it needs JAX alone; both sides need the package `flatbuffers`, from the
extra `export`. A state of zeros starts a new stream:

  exported = jax.export.deserialize(pathlib.Path("step.jax").read_bytes())
  step = jax.jit(exported.call, donate_argnums=0)
  state = [jnp.zeros(a.shape, a.dtype) for a in exported.in_avals[:-1]]
  for token in tokens:
    output, state = step(state, token)
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Int

from nam_jax.ops import masks


@functools.partial(jax.jit, static_argnames=("apply", "num_tokens"))
def generate(
  apply: Callable[..., tuple[Array, Any]],
  variables: Any,
  prompts: Int[Array, "b s"],
  num_tokens: int,
  *,
  mask: masks.Mask | None = None,
  temperature: ArrayLike | None = None,
  key: Array | None = None,
) -> Int[Array, "b n"]:
  """Continues prompts, token by token, with what a language model predicts.

  One compiled program reads the prompts and generates. It is compiled again
  for another `apply`, another `num_tokens` or other shapes.

  Args:
    apply: apply(variables, state, tokens [b s], mask=None) -> (logits [b s y],
      state), for instance by `continue_from` of a model; state is None at the
      start. Define it once, outside of loops.
    variables: The weights.
    prompts: Token ids, at least one real one in each row.
    num_tokens: How many tokens to generate, n.
    mask: True at real tokens, for prompts of different lengths; padding may
      stand on either side.
    temperature: Divides the logits before a token is drawn at random. By
      default, each token is the likeliest one.
    key: A random key; needed with a temperature.

  Returns:
    The tokens generated, without the prompts.
  """
  if (temperature is None) != (key is None):
    raise ValueError(
      "drawing tokens needs both a temperature and a key, taking the likeliest"
      " ones needs neither"
    )

  def step(carry, key):
    logits, state = carry
    if key is not None:  # argmax(l / t + gumbel) = argmax(l + t gumbel)
      noise = jax.random.gumbel(key, logits.shape, logits.dtype)
      logits = logits + jnp.asarray(temperature, logits.dtype) * noise
    token = jnp.argmax(logits, axis=-1).astype(prompts.dtype)
    logits, state = apply(variables, state, token[:, None])
    return (logits[:, -1], state), token

  logits, state = apply(variables, None, prompts, mask=mask)
  if mask is None:
    logits = logits[:, -1]
  else:
    last = masks.last_real(mask)[:, None, None]
    logits = jnp.take_along_axis(logits, last, axis=1)[:, 0]
  keys = None if key is None else jax.random.split(key, num_tokens)
  _, tokens = jax.lax.scan(step, (logits, state), keys, length=num_tokens)
  return tokens.T


def export_step(
  apply: Callable[[Any, Any, Array], tuple[Any, Any]],
  variables: Any,
  state: Any,
  token: ArrayLike,
  *,
  platforms: Sequence[str] | None = None,
) -> bytes:
  """The step from one token to the next as a program, with the weights in it.

  Args:
    apply: apply(variables, state, token) -> (output, state), for instance by a
      layer's `apply`.
    variables: The weights.
    state: The state before the first token.
    token: A token of the shape and dtype that the program will take, or several
      tokens: every call then takes as many.
    platforms: Where the program will run, such as ("cpu", "cuda", "tpu"); by
      default the platform it is made on.

  Returns:
    What `jax.export.deserialize` reads: a program called with (state, token)
    that returns (output, state), where state is a plain list of arrays. The
    first of them says whether the stream has begun, the others are the leaves
    of the model's state.
  """
  state, token = jax.tree.map(jnp.asarray, (state, token))
  _check_state(apply, variables, state, token)
  first, structure = jax.tree.flatten(state)

  def step(state, token):
    begun, *leaves = state
    leaves = jax.tree.map(functools.partial(jnp.where, begun), leaves, first)
    state = jax.tree.unflatten(structure, leaves)
    output, state = apply(variables, state, token)
    return output, [jnp.ones_like(begun), *jax.tree.leaves(state)]

  export = jax.export.export(jax.jit(step), platforms=platforms)
  return bytes(export([jnp.array(False), *first], token).serialize())


def _check_state(apply, variables, state, token):
  """Checks that a step returns a state that the next step can take."""
  given = jax.eval_shape(lambda: state)
  _, returned = jax.eval_shape(apply, variables, state, token)
  if returned != given:
    raise ValueError(
      "apply must return a state like the one it is given, but for"
      f" {given} it returned {returned}"
    )
