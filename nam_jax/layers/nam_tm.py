"""The NAM Turing machine as a layer (paper, section NAM Turing Machine)."""

from flax import linen as nn
from jaxtyping import Array, Float

from nam_jax.layers import checks, nam_tm_parts, parameters
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops.tape import Tape


class NAMTuringMachine(nn.Module, nam_tm_parts.Settings):
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
    width = (x if control is None else control).shape[-1]
    table = nam_tm_parts.table(self, x.shape[-1], width)
    params = {n: parameters.Group(name=n)(group) for n, group in table.items()}
    outputs, final, heads = nam_tm_parts.run(
      self, params, x, control, tape_length, initial_tape, mask
    )
    self.sow("intermediates", "heads", heads)
    return outputs, final
