"""Ctrl-C ends a script at once, in one line, wherever it is.

Python itself runs signal handlers only between two of its own instructions,
not while XLA compiles, and then prints a traceback. Here a thread waits for the
signal. It imports nothing large, to be there before all that takes time.
"""

import atexit
import os
import signal
import threading


def install() -> None:
  """Ends this process at once on Ctrl-C, with status 130.

  Where another handler is installed, as the training loop does to save first,
  the first signal is left to it. A second one always acts at once.
  """
  if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
    return  # it is ignored, in a background job of a shell script
  reader, writer = os.pipe()
  os.set_blocking(writer, False)
  signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
  signal.signal(signal.SIGINT, _leave_to_watcher)
  threading.Thread(target=_watch, args=[reader], daemon=True).start()
  # What is left then takes no time, and would die of the signal without a word.
  atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _leave_to_watcher(*_):
  pass


def _watch(reader):
  number = _next_signal(reader)
  if signal.getsignal(number) is not _leave_to_watcher:
    number = _next_signal(reader)
  name = signal.Signals(number).name
  line = f"stopped at once by {name}; run the same command to continue\n"
  os.write(2, line.encode())
  os._exit(128 + number)


def _next_signal(reader):
  while (number := os.read(reader, 1)[0]) not in (
    signal.SIGINT,
    signal.SIGTERM,
  ):
    pass
  return number
