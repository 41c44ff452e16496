"""The error that this package raises."""

from nam_jax.training.errors import UserError

_MOST_CHARACTERS = 200


class DataError(UserError):
  """Something is wrong with a file; the message names it and what to do."""


def excerpt(content: object) -> str:
  """What a file or a library says, for an error: one short, printable line."""
  text = str(content)
  shown = "".join(
    character if character.isprintable() else ascii(character)[1:-1]
    for character in " ".join(text[: 2 * _MOST_CHARACTERS].split())
  )
  if len(shown) <= _MOST_CHARACTERS and len(text) <= 2 * _MOST_CHARACTERS:
    return shown
  return f"{shown[: _MOST_CHARACTERS - 3]}..."
