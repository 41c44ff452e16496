"""The error message for an unknown name."""

import difflib
from collections.abc import Iterable


def unknown(
  kind: str, name: object, known: Iterable[str], prefix: str = ""
) -> str:
  """ "unknown model 'lsm'; did you mean 'lsam'? Known: ...", for an error.

  Args:
    kind: what the name is a name of.
    name: what was given.
    known: what could have been given.
    prefix: of all these names, for instance "model_kwargs.".
  """
  known = list(known)
  nearest = difflib.get_close_matches(str(name), known, n=1)
  hint = f"; did you mean {prefix + nearest[0]!r}?" if nearest else "."
  given = repr(f"{prefix}{name}" if prefix else name)
  return f"unknown {kind} {given}{hint} Known: {', '.join(known) or 'none'}"
