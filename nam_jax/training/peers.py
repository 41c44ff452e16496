"""Ends this process when another process of its run has died.

Every process has a connection to process 0 that the system breaks when either
end dies, even by kill -9. JAX alone would wait for a minute and more, or abort
with a stack of C++ calls as soon as process 0 is gone. The others therefore
reach JAX's service in process 0 through a relay that hides that it is gone, so
that the line below is all that is said.
"""

import atexit
import contextlib
import os
import secrets
import socket
import threading

import jax
import numpy as np
from jax.experimental import multihost_utils

from nam_jax.training import relay

_GOODBYE = b"."
# What a process says first: a secret of the run, and its number.
_SECRET_BYTES, _NUMBER_BYTES = 16, 4
# A connection that says nothing for so many seconds is not of this run.
_PATIENCE = 5.0
# A machine that is silent for so many seconds is gone: 5 + 4 * 5.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}


def join(host: str, port: int, num_processes: int, process_id: int) -> None:
  """`jax.distributed.initialize`, and starts watching the other processes.

  Args:
    host: where process 0 runs.
    port: where its service is to be found.
    num_processes: all of the run, each of which calls this.
    process_id: which one this is.
  """
  address = f"{host}:{port}"
  if process_id:
    address = relay.start(host.strip("[]"), port)
  jax.distributed.initialize(address, num_processes, process_id)
  for other, connection in _connections(host.strip("[]")).items():
    _keep_alive(connection)
    arguments = (connection, other)
    threading.Thread(target=_await_end, args=arguments, daemon=True).start()
    atexit.register(_say_goodbye, connection)


def _connections(host):
  """From process 0 to all others, and from each of these to process 0."""
  index = jax.process_index()
  server = _listen() if index == 0 else None
  port = server.getsockname()[1] if server else 0
  secret = np.frombuffer(secrets.token_bytes(_SECRET_BYTES), np.int32)
  port, *secret = multihost_utils.broadcast_one_to_all(
    np.array([port, *secret], np.int32)
  )
  secret = np.array(secret, np.int32).tobytes()
  if server:
    with server:
      return _accept(server, secret, jax.process_count() - 1)
  first = socket.create_connection((host, int(port)))
  first.sendall(secret + index.to_bytes(_NUMBER_BYTES))
  return {0: first}


def _accept(server, secret, count):
  """The connections of so many processes, by number; others are closed."""
  found = {}
  while len(found) < count:
    connection, _ = server.accept()
    connection.settimeout(_PATIENCE)
    words = _received(connection, len(secret) + _NUMBER_BYTES)
    if secrets.compare_digest(words[: len(secret)], secret):
      connection.settimeout(None)
      found[int.from_bytes(words[len(secret) :])] = connection
    else:
      connection.close()
  return found


def _received(connection, count):
  """The next bytes, fewer if no more come."""
  words = b""
  with contextlib.suppress(OSError):
    while len(words) < count:
      if not (more := connection.recv(count - len(words))):
        break
      words += more
  return words


def _listen():
  if socket.has_dualstack_ipv6():
    family = socket.AF_INET6
    return socket.create_server(("", 0), family=family, dualstack_ipv6=True)
  return socket.create_server(("", 0))


def _keep_alive(connection):
  connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
  for name, value in _KEEP_ALIVE.items():
    if hasattr(socket, name):  # not on every system
      connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _await_end(connection, other):
  word = b""
  with contextlib.suppress(OSError):
    word = connection.recv(1)
  if word != _GOODBYE:
    line = (
      f"error: process {other} of this run has ended; run the same command in"
      " every process to continue from the last checkpoint\n"
    )
    os.write(2, line.encode())
    os._exit(1)


def _say_goodbye(connection):
  with contextlib.suppress(OSError):
    connection.sendall(_GOODBYE)
