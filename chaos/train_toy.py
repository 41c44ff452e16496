"""Trains a toy: the run that the trials disturb.

  python -m chaos.train_toy WORKDIR
  python -m chaos.train_toy WORKDIR --test_only

It is a script like the others, but takes seconds, most of them for imports.
"""

from command_line import interrupt

if __name__ == "__main__":
  interrupt.install()  # before the imports, which take seconds
  print("started", flush=True)
  from chaos import toy
  from command_line import script

  script.run(toy.main, __doc__)
