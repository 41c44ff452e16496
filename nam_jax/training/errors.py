"""Errors that need only one line of explanation, not a traceback."""


class UserError(Exception):
  """Something that the user can fix: a wrong setting, or a file or folder.

  Scripts catch it, print the message, and exit with status 2.
  """


class TrainingDiverged(UserError):
  """The loss or its gradient is no longer a finite number."""
