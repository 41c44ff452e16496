"""The NAM Turing machine as a layer (paper, section NAM Turing Machine)."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, DTypeLike, Float

from nam_jax.layers import checks
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks, normalize, precision, tape
from nam_jax.ops.tape import Tape, Transition


class NAMTuringMachine(nn.Module):
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
  """

  num_heads: int
  tape_dim: int | None = None
  transitions: tuple[Transition, ...] = tape.TRANSITIONS
  normalize_heads: bool = True
  separate_erase: bool = False
  right_bias: tuple[float, float] = (0.0, 0.0)
  dtype: DTypeLike | None = None

  def __post_init__(self):
    if not self.transitions:
      raise ValueError("transitions must name at least one way to move, got ()")
    if any(self.right_bias) and tape.RIGHT not in self.transitions:
      raise ValueError(
        f"right_bias={self.right_bias} needs RIGHT in transitions"
      )
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

    Where the heads were when each token was read and written, [b s 2 h n], is
    sown as `heads` into the collection `intermediates`.

    Args:
      x: The tokens; values and keys are computed from them.
      control: What steers the machine, for instance the outputs of a recurrent
        net over x. The tokens themselves by default.
      tape_length: Cells of a new tape.
      initial_tape: A tape to continue with, instead of a new one.
      mask: True at real tokens. The others change nothing and output zero.
    """
    checks.check_tokens(x)
    masks.check_mask(mask, x.shape[:2])
    if tape_length < 1:
      raise ValueError(f"tape_length must be positive, got {tape_length}")
    x = masks.hide(x, mask)
    control = x if control is None else masks.hide(control, mask)
    controls = self._controls(x, control)
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
      transitions=self.transitions,
      normalize_heads=self.normalize_heads,
      mask=mask,
    )
    self.sow("intermediates", "heads", heads)
    outputs = nn.DenseGeneral(
      x.shape[-1], axis=(-2, -1), dtype=self.dtype, use_bias=False, name="out"
    )(read)
    return outputs, final

  def _controls(self, x, control) -> tape.Controls:
    width = checks.head_width(
      self.tape_dim or x.shape[-1], self.num_heads, "tape_dim"
    )
    keyed = any(transition.uses_found for transition in self.transitions)
    actions = len(self.transitions)
    gates = 3 if self.separate_erase else 2

    def project(name, inputs, *shape, bias_init=nn.initializers.zeros):
      return nn.DenseGeneral(
        shape, dtype=self.dtype, bias_init=bias_init, name=name
      )(inputs)

    value = project("value", x, self.num_heads, width)
    key = query = value[..., :0]
    if keyed:
      key = normalize.unit(project("key", x, self.num_heads, width))
      query = normalize.unit(project("query", control, self.num_heads, width))
    action = project(
      "action",
      control,
      2,
      self.num_heads,
      actions,
      bias_init=self._prefer_right,
    )
    gate = jax.nn.sigmoid(project("gate", control, self.num_heads, gates))
    return tape.Controls(
      value=value,
      key=key,
      query=query,
      p_r=gate[..., 0],
      p_w=gate[..., 1],
      p_e=gate[..., -1],
      actions=jnp.moveaxis(jax.nn.softmax(action), 2, 0),
    )

  def _prefer_right(self, key, shape, dtype):
    del key  # nothing is random
    is_right = jnp.array([t == tape.RIGHT for t in self.transitions], dtype)
    bias = jnp.outer(jnp.array(self.right_bias, dtype), is_right)
    return jnp.repeat(bias[:, None], self.num_heads, axis=1).reshape(shape)
