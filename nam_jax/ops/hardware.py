"""Functions with hand-written gradients, in the form that suits a platform.

Which platform a program is for is known when it is compiled, not when it is
traced: the same trace may be exported for several. So each form is traced, and
`lax.platform_dependent` keeps the one that fits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import lax

from nam_jax.ops import varying


class Form(NamedTuple):
  """A computation and its gradient, as for `jax.custom_vjp`."""

  forward: Callable[..., tuple[Any, Any]]  # (*operands) -> (results, saved)
  backward: Callable[[Any, Any], Any]  # (saved, gradients) -> gradients
  alone: Callable[..., Any] | None = None  # the results, without a gradient


def differentiable(form: Form, on_cpu: Form | None = None) -> Callable:
  """The results of a form, as a function of its operands.

  Args:
    form: How they are computed, and their gradients.
    on_cpu: The same for a CPU, if that differs.
  """
  if on_cpu is None:
    return _with_gradient(*form)
  forms = (on_cpu, form)

  def forward(*operands):
    shapes = [jax.eval_shape(f.forward, *operands)[1] for f in forms]

    def run(chosen):
      def branch(*operands):
        results, saved = forms[chosen].forward(*operands)
        # What another form would save: never used, so never computed.
        others = [varying.zeros(shape, operands) for shape in shapes]
        others[chosen] = saved
        return results, tuple(others)

      return branch

    return lax.platform_dependent(*operands, cpu=run(0), default=run(1))

  def backward(saved, gradients):
    def run(chosen):
      return lambda saved, *rest: forms[chosen].backward(saved[chosen], *rest)

    return lax.platform_dependent(saved, gradients, cpu=run(0), default=run(1))

  def alone(*operands):
    cpu, default = (_alone(f.forward, f.alone) for f in forms)
    return lax.platform_dependent(*operands, cpu=cpu, default=default)

  return _with_gradient(forward, backward, alone)


def _alone(forward, alone):
  return alone or (lambda *operands: forward(*operands)[0])


def _with_gradient(forward, backward, alone=None):
  function = jax.custom_vjp(_alone(forward, alone))
  function.defvjp(forward, backward)
  return lambda *operands: function(*varying.alike(*operands))
