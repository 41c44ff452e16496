"""Floating-point operations of a function, loops included.

`compiled.cost_analysis()` counts the body of a loop once, however often it
runs, so every scan would seem to cost the same at all lengths.
"""

import math

import jax

# They move, choose or create numbers, and compute nothing.
_FREE = {
  "broadcast_in_dim",
  "concatenate",
  "convert_element_type",
  "copy",
  "dynamic_slice",
  "dynamic_update_slice",
  "gather",
  "iota",
  "pad",
  "platform_index",
  "reshape",
  "rev",
  "select_n",
  "slice",
  "split",
  "squeeze",
  "stop_gradient",
  "transpose",
}


def count(function, *args) -> int:
  """Operations of function(*args): two for a product and sum, else one.

  A loop counts as often as it runs; `while` with an unknown end counts once.
  Of several branches, the one for this platform counts, or else the largest.
  """
  return _count(jax.make_jaxpr(function)(*args))


def _count(jaxpr) -> int:  # open or closed
  return sum(map(_equation, jaxpr.eqns))


def _equation(equation) -> int:
  params = equation.params
  if "branches" in params:
    return _branches(params["branches"], params.get("branches_platforms"))
  inner = [v for v in params.values() if hasattr(v, "eqns")]
  if inner:
    repeats = params.get("length", 1)
    return repeats * sum(map(_count, inner))
  name = equation.primitive.name
  if name in _FREE:
    return 0
  outputs = sum(math.prod(v.aval.shape) for v in equation.outvars)
  inputs = [v.aval.shape for v in equation.invars if hasattr(v.aval, "shape")]
  if name == "dot_general":
    (contracted, _), _ = params["dimension_numbers"]
    return 2 * outputs * math.prod(inputs[0][i] for i in contracted)
  if name.startswith("reduce"):
    return sum(map(math.prod, inputs))
  return outputs


def _branches(branches, platforms) -> int:
  for branch, names in zip(branches, platforms or (), strict=False):
    if names is None or jax.default_backend() in names:
      return _count(branch)
  return max(map(_count, branches))
