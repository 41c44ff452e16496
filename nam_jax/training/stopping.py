"""SIGTERM and SIGINT end a run after the current step, not during it."""

import signal
import threading

import jax
from jax.experimental import multihost_utils


class StopRequest:
  """Remembers the first signal; a second one acts at once, as usual.

  With several processes, JAX itself watches for SIGTERM and makes them agree on
  the step at which they stop.
  """

  def __init__(self):
    self._signal = None
    self._handlers = {}

  def __enter__(self) -> "StopRequest":
    main_thread = threading.current_thread() is threading.main_thread()
    if jax.process_count() == 1 and main_thread:
      for number in (signal.SIGTERM, signal.SIGINT):
        self._handlers[number] = signal.signal(number, self._remember)
    return self

  def __exit__(self, *_) -> None:
    for number, handler in self._handlers.items():
      signal.signal(number, handler)

  def received(self, step: int) -> signal.Signals | None:
    """The signal that asks to stop after this step; call it every step."""
    if jax.process_count() > 1:
      if multihost_utils.reached_preemption_sync_point(step):
        return signal.SIGTERM
      return None
    return self._signal

  def _remember(self, number, _):
    self._signal = signal.Signals(number)
    for number, handler in self._handlers.items():
      signal.signal(number, handler)
