"""The error message for an unknown name."""

import difflib
from collections.abc import Iterable


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
  """ "unknown model 'lsm'; did you mean 'lsam'? Known: ...", for an error."""
  known = list(known)
  nearest = difflib.get_close_matches(str(name), known, n=1)
  hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
  return f"unknown {kind} {name!r}{hint} Known: {', '.join(known) or 'none'}"
