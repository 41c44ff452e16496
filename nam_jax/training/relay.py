"""Passes connections on to another process; see `peers`. Run as a program.

It is a process of its own because JAX waits for answers in ways that stop all
threads of Python. It prints its port, and ends when its input is closed.
"""

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable

_started = []


def start(host: str, port: int) -> str:
  """An address on this machine, host:port, that leads to another one.

  It is valid until this process ends.
  """
  process = subprocess.Popen(
    [sys.executable, "-I", "-S", __file__, host, str(port)],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
    start_new_session=True,  # which Ctrl-C does not reach
  )
  _started.append(process)  # which closes its input when it is collected
  assert process.stdout
  return f"127.0.0.1:{process.stdout.readline().strip()}"


def _main(host, port):
  listener = socket.create_server(("127.0.0.1", 0))
  print(listener.getsockname()[1], flush=True)
  _in_thread(_accept, listener, host, port)
  sys.stdin.read()


def _accept(listener, host, port):
  while True:
    near, _ = listener.accept()
    try:
      far = socket.create_connection((host, port))
    except OSError:
      near.close()  # process 0 has not started yet, and JAX tries again
      continue
    _in_thread(_copy, near, far)
    _in_thread(_copy, far, near)


def _copy(source, target):
  # Neither end is closed: the other one must not notice.
  with contextlib.suppress(OSError):
    while data := source.recv(1 << 16):
      target.sendall(data)


def _in_thread(target: Callable, *arguments) -> None:
  threading.Thread(target=target, args=arguments, daemon=True).start()


if __name__ == "__main__":
  _main(sys.argv[1], int(sys.argv[2]))
