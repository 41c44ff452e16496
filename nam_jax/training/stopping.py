"""SIGTERM and SIGINT end a run after the current step, not during it."""

import os
import signal
import threading

import jax
import numpy as np
from jax.experimental import multihost_utils


class StopRequest:
  """Remembers the first signal; a second one acts at once, as usual.

  So does the first one before there is a step to save. With several processes,
  JAX itself watches for SIGTERM and makes them agree on the step at which they
  stop; SIGINT at any of them is passed on to JAX.
  """

  def __init__(self):
    self._signal = None
    self._handlers = {}

  def __enter__(self) -> "StopRequest":
    return self

  def __exit__(self, *_) -> None:
    for number, handler in self._handlers.items():
      signal.signal(number, handler)

  def received(self, step: int) -> signal.Signals | None:
    """The signal that asks to stop after this step; call it every step."""
    if not self._handlers:
      self._install()
    if jax.process_count() == 1:
      return self._signal
    if not multihost_utils.reached_preemption_sync_point(step):
      return None
    mine = np.int32(self._signal or 0)
    return signal.Signals(
      int(multihost_utils.process_allgather(mine).max()) or signal.SIGTERM
    )

  def _install(self):
    if threading.current_thread() is threading.main_thread():
      numbers = [signal.SIGINT]
      if jax.process_count() == 1:
        numbers.append(signal.SIGTERM)
      for number in numbers:
        self._handlers[number] = signal.signal(number, self._remember)

  def _remember(self, number, _):
    if self._signal:
      self.__exit__()
      signal.raise_signal(number)
    self._signal = signal.Signals(number)
    if jax.process_count() > 1:
      os.kill(os.getpid(), signal.SIGTERM)
