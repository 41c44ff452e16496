"""Runs a script that gets two signals at a certain moment, as from Ctrl-C.

`python interrupted.py MOMENT SCRIPT ARGUMENTS...`: the moment is "import",
"read" or "compile".
"""

import os
import runpy
import signal
import sys
import threading
import time


def interrupt():
  for _ in range(2):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)


class Finder:
  """Interrupts the import of flax."""

  def find_spec(self, name, path=None, target=None):
    if name == "flax":
      interrupt()


def at(owner, name, moment):
  """Interrupts every call of a function, from another thread."""
  function = getattr(owner, name)

  def interrupted(*arguments, **keywords):
    threading.Thread(target=moment).start()
    return function(*arguments, **keywords)

  setattr(owner, name, interrupted)


def main(moment, script, *arguments):
  signal.signal(signal.SIGINT, signal.default_int_handler)
  if moment == "import":
    sys.meta_path.insert(0, Finder())
  if moment == "read":
    from algorithmic.tasks import registry

    at(registry, "make_task", interrupt)
  if moment == "compile":
    import jax

    at(jax.stages.Lowered, "compile", interrupt)
  sys.argv = [script, *arguments]
  runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
  main(*sys.argv[1:])
