"""Errors that one line explains to the person who started the run."""


class UserError(Exception):
  """A mistake or a state of the disk that the user can put right.

  Scripts catch it, print the message, and exit with status 2.
  """


class TrainingDiverged(UserError):
  """The loss or its gradient is no longer a finite number."""
