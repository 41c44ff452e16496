"""What the linen and the nnx module of the NAM Turing machine share.

Their settings, their parameters, and what they compute.
"""

import dataclasses

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, DTypeLike, Float

from nam_jax.layers import checks, parameters
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks, normalize, precision, tape
from nam_jax.ops.tape import Tape, Transition


@dataclasses.dataclass(eq=False, repr=False)
class Settings:
  """The fields of `NAMTuringMachine`, which says what they mean."""

  num_heads: int
  tape_dim: int | None = None
  transitions: tuple[Transition, ...] = tape.TRANSITIONS
  normalize_heads: bool = True
  separate_erase: bool = False
  right_bias: tuple[float, float] = (0.0, 0.0)
  dtype: DTypeLike | None = None

  def check(self) -> None:
    """Checks that the transitions are those that other fields need."""
    if not self.transitions:
      raise ValueError("transitions must name at least one way to move, got ()")
    if any(self.right_bias) and tape.RIGHT not in self.transitions:
      raise ValueError(
        f"right_bias={self.right_bias} needs RIGHT in transitions"
      )

  def is_keyed(self) -> bool:
    """Whether a transition needs the key tape."""
    return any(transition.uses_found for transition in self.transitions)


def table(settings: Settings, width: int, control: int) -> parameters.Table:
  """All parameters of a layer, for tokens and controls of these widths."""
  h = settings.num_heads
  v = checks.head_width(settings.tape_dim or width, h, "tape_dim")

  def dense(inputs, *outputs, bias_init=nn.initializers.zeros):
    return parameters.dense(
      (inputs,),
      outputs,
      use_bias=True,
      kernel_init=nn.initializers.lecun_normal(),
      bias_init=bias_init,
    )

  def prefer_right(key, shape, dtype):
    del key  # nothing is random
    is_right = [t == tape.RIGHT for t in settings.transitions]
    bias = jnp.outer(
      jnp.array(settings.right_bias, dtype), jnp.array(is_right, dtype)
    )
    return jnp.broadcast_to(bias[:, None], shape)

  found = {"value": dense(width, h, v)}
  if settings.is_keyed():
    found |= {"key": dense(width, h, v), "query": dense(control, h, v)}
  found["action"] = dense(
    control, 2, h, len(settings.transitions), bias_init=prefer_right
  )
  found["gate"] = dense(control, h, 3 if settings.separate_erase else 2)
  found["out"] = parameters.dense(
    (h, v),
    (width,),
    use_bias=False,
    kernel_init=nn.initializers.lecun_normal(),
  )
  return found


def run(
  settings: Settings,
  params: parameters.Params,
  x: Tokens,
  control: Float[Array, "b s e"] | None,
  tape_length: int,
  initial_tape: Tape | None,
  mask: Mask | None,
) -> tuple[Tokens, Tape, Float[Array, "b s 2 h n"]]:
  """(outputs, tape, heads) of a machine over a sequence."""
  masks.check_mask(mask, x.shape[:2])
  if tape_length < 1:
    raise ValueError(f"tape_length must be positive, got {tape_length}")
  x = masks.hide(x, mask)
  control = x if control is None else masks.hide(control, mask)
  controls = _controls(settings, params, x, control)
  b, _, h, v = controls.value.shape
  k = controls.key.shape[-1]
  if initial_tape is None:
    dtype = precision.accumulator(controls.value.dtype)
    initial_tape = tape.blank_tape(b, h, v, k, tape_length, dtype)
  n = initial_tape.values.shape[-1]
  shapes = ((b, h, v, n), (b, h, k, n), (2, b, h, n))
  checks.check_state("initial_tape", initial_tape, shapes)
  read, final, heads = tape.tape_scan(
    controls,
    initial_tape,
    transitions=settings.transitions,
    normalize_heads=settings.normalize_heads,
    mask=mask,
  )
  outputs = parameters.project(params["out"], read, settings.dtype, axes=2)
  return outputs, final, heads


def _controls(settings, params, x, control) -> tape.Controls:
  def project(name, inputs):
    return parameters.project(params[name], inputs, settings.dtype)

  value = project("value", x)
  key = query = value[..., :0]
  if settings.is_keyed():
    key = normalize.unit(project("key", x))
    query = normalize.unit(project("query", control))
  gate = jax.nn.sigmoid(project("gate", control))
  actions = jax.nn.softmax(project("action", control))
  return tape.Controls(
    value=value,
    key=key,
    query=query,
    p_r=gate[..., 0],
    p_w=gate[..., 1],
    p_e=gate[..., -1],
    actions=jnp.moveaxis(actions, 2, 0),
  )
