"""Errors that name the argument and the numbers."""


def head_width(features: int, num_heads: int, name: str) -> int:
  """Width of one head; num_heads must divide features, reported as name."""
  if num_heads < 1 or features % num_heads:
    raise ValueError(f"num_heads={num_heads} does not divide {name}={features}")
  return features // num_heads


def check_tokens(x) -> None:
  """Checks that x is [b s d]."""
  if x.ndim != 3:
    raise ValueError(
      f"x must have 3 axes (batch, sequence, width), got shape {x.shape}"
    )


def check_state(name: str, state, expected) -> None:
  """Checks the shape of every array in a state to continue from."""
  for field, array, shape in zip(state._fields, state, expected, strict=True):
    if array.shape != shape:
      raise ValueError(
        f"{name}.{field} must have shape {shape}, got {array.shape}"
      )
