"""The NAM Turing machine as a layer (paper, section NAM Turing Machine).

The nnx module has the same `Settings` and `table`, and computes with `run`.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
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
  sharpen: float = 1.0

  def check(self) -> None:
    """Checks that the settings fit together."""
    if not self.transitions:
      raise ValueError("transitions must name at least one way to move, got ()")
    if any(self.right_bias) and tape.RIGHT not in self.transitions:
      raise ValueError(
        f"right_bias={self.right_bias} needs RIGHT in transitions"
      )
    if self.sharpen < 1:
      raise ValueError(f"sharpen must be at least 1, got {self.sharpen}")
    if self.sharpen > 1 and not self.normalize_heads:
      raise ValueError("sharpen needs normalize_heads=True")

  @property
  def has_keys(self) -> bool:
    """Whether a transition looks for keys on the tape."""
    return any(transition.uses_found for transition in self.transitions)


def table(
  settings: Settings, width: int, control_width: int
) -> parameters.Table:
  """All parameters of a layer, for tokens and control of these widths."""
  h = settings.num_heads
  v = checks.head_width(settings.tape_dim or width, h, "tape_dim")
  actions = len(settings.transitions)
  gates = 3 if settings.separate_erase else 2

  def prefer_right(key, shape, dtype):
    del key  # nothing is random
    is_right = [t == tape.RIGHT for t in settings.transitions]
    bias = np.outer(settings.right_bias, is_right)
    return jnp.array(np.broadcast_to(bias[:, None], shape), dtype)

  def dense(inputs, *outputs, bias_init=nn.initializers.zeros):
    return parameters.dense(
      (inputs,),
      outputs,
      use_bias=True,
      kernel_init=nn.initializers.lecun_normal(),
      bias_init=bias_init,
    )

  found = {"value": dense(width, h, v)}
  if settings.has_keys:
    found["key"] = dense(width, h, v)
    found["query"] = dense(control_width, h, v)
  found["action"] = dense(control_width, 2, h, actions, bias_init=prefer_right)
  found["gate"] = dense(control_width, h, gates)
  found["out"] = parameters.dense(
    (h, v),
    (width,),
    use_bias=False,
    kernel_init=nn.initializers.lecun_normal(),
  )
  return found


class Seen(NamedTuple):
  """What a machine did at every token."""

  heads: Float[Array, "b s 2 h n"]  # as they read and wrote
  actions: Float[Array, "b s 2 h a"]  # probabilities of the transitions


def run(
  settings: Settings,
  params: parameters.Params,
  x: Tokens,
  *,
  control: Float[Array, "b s e"] | None,
  tape_length: int,
  initial_tape: Tape | None,
  mask: Mask | None,
) -> tuple[Tokens, Tape, Seen]:
  """Runs the machine over a sequence: (outputs, tape, what it did)."""
  checks.check_tokens(x)
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
    sharpen=settings.sharpen,
    mask=mask,
  )
  outputs = parameters.project(params["out"], read, settings.dtype, axes=2)
  return outputs, final, Seen(heads, jnp.moveaxis(controls.actions, 0, 2))


def _controls(settings, params, x, control) -> tape.Controls:
  def project(name, inputs):
    return parameters.project(params[name], inputs, settings.dtype)

  value = project("value", x)
  key = query = value[..., :0]
  if settings.has_keys:
    key = normalize.unit(project("key", x))
    query = normalize.unit(project("query", control))
  action = project("action", control)
  gate = jax.nn.sigmoid(project("gate", control))
  return tape.Controls(
    value=value,
    key=key,
    query=query,
    p_r=gate[..., 0],
    p_w=gate[..., 1],
    p_e=gate[..., -1],
    actions=jnp.moveaxis(jax.nn.softmax(action), 2, 0),
  )


class NAMTuringMachine(nn.Module, Settings):
  """Reads and writes tapes with heads that move by learned actions.

  Every head of the layer is its own machine with one tape, a read head and a
  write head. No parameter depends on the length of the tapes.

  Attributes:
    num_heads: number of tapes.
    tape_dim: width of the cells of all tapes together; the input's by default.
    transitions: the ways a head can move. Shorten the list, or add to it:
      `TRANSITIONS + (Transition("skip", rule),)`. Define your own rules
      once per module: every new function object is compiled again.
    normalize_heads: keep heads unit vectors; False is the paper's plain sum.
    separate_erase: learn an erase probability; False is the paper's p_e = p_w.
    right_bias: how much read and write heads prefer RIGHT before training, as
      logits; with (0, 0) all transitions are equally likely.
    dtype: used in the projections; tapes are float32 or wider.
    sharpen: power that the entries of a head are raised to after every move,
      which keeps it on few cells; 1 for none. A machine that was trained
      without it can be run with 1.5, say, to get through longer sequences.
  """

  def __post_init__(self):
    self.check()
    super().__post_init__()

  @nn.compact
  def __call__(
    self,
    x: Tokens,
    *,
    control: Float[Array, "b s e"] | None = None,
    tape_length: int = 32,
    initial_tape: Tape | None = None,
    mask: Mask | None = None,
  ) -> tuple[Tokens, Tape]:
    """Runs the machine over a sequence: (outputs, tape).

    Where the heads were when each token was read and written, [b s 2 h n], and
    the probabilities of their transitions, [b s 2 h a], are sown as `heads` and
    `actions` into the collection `intermediates`.

    Args:
      x: The tokens; values and keys are computed from them.
      control: What steers the machine, for instance the outputs of a recurrent
        net over x. The tokens themselves by default.
      tape_length: Cells of a new tape.
      initial_tape: A tape to continue with, instead of a new one.
      mask: True at real tokens. The others change nothing and output zero.
    """
    steering = x if control is None else control
    groups = table(self, x.shape[-1], steering.shape[-1])
    params = {n: parameters.Group(name=n)(group) for n, group in groups.items()}
    outputs, final, seen = run(
      self,
      params,
      x,
      control=control,
      tape_length=tape_length,
      initial_tape=initial_tape,
      mask=mask,
    )
    for name, array in seen._asdict().items():
      self.sow("intermediates", name, array)
    return outputs, final
