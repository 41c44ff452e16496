"""The connections between the processes of a run."""

import socket
import threading

from nam_jax.training import peers

SECRET = b"0123456789abcdef"


def _greet(port, words):
  connection = socket.create_connection(("localhost", port))
  connection.sendall(words)
  return connection


def test_only_processes_of_the_run_are_accepted(monkeypatch):
  monkeypatch.setattr(peers, "_PATIENCE", 0.2)
  with socket.create_server(("localhost", 0)) as server:
    port = server.getsockname()[1]
    greetings = [
      b"",  # says nothing
      b"GET / HTTP/1.1\r\n\r\n",
      SECRET[:-1] + b"x" + (1).to_bytes(4),
      SECRET + (2).to_bytes(4),
      SECRET + (1).to_bytes(4),
    ]
    connections = [_greet(port, words) for words in greetings]
    found = {}
    thread = threading.Thread(
      target=lambda: found.update(peers._accept(server, SECRET, 2))
    )
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
  assert sorted(found) == [1, 2]
  found[1].sendall(b"one")
  assert connections[-1].recv(3) == b"one"
  for connection in (*connections, *found.values()):
    connection.close()
