"""Imitates chaos/train_toy.py without JAX, in less than a second.

The environment variable FAULT says what it does wrong.
"""

import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

STEPS, PAUSE = 60, 0.01
FAULT = os.environ.get("FAULT", "")
stopped_by = None


def stop(number, _):
  global stopped_by
  stopped_by = signal.Signals(number)


def locked(path, wait=False):
  """The file, if no other process has its lock."""
  file = open(path, "a")  # noqa: SIM115
  try:
    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
  except BlockingIOError:
    return None
  return file


def save(workdir, step):
  folder = workdir / "checkpoints" / str(step)
  folder.mkdir(parents=True, exist_ok=True)
  (folder / "seal.json").write_text("{}")


def main():
  print("started", flush=True)
  workdir = Path(sys.argv[1])
  workdir.mkdir(parents=True, exist_ok=True)
  index = int(os.environ.get("JAX_PROCESS_ID", "0"))
  is_pair = "JAX_PROCESS_ID" in os.environ
  lock = locked(workdir / f"lock{index}", wait=is_pair)
  if not lock:
    print("error: it is in use by process 1")
    return 2
  other = workdir / f"lock{1 - index}"
  # Every pair has its own address, so this file says who has come, for good.
  address = os.environ.get("JAX_COORDINATOR_ADDRESS", "").replace(":", "_")
  (workdir / f"{address}_{index}").touch()
  while is_pair and not (workdir / f"{address}_{1 - index}").exists():
    time.sleep(PAUSE)
  print("connected", flush=True)
  for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN if FAULT == "deaf" else stop)
  lock.truncate(0)
  seals = (workdir / "checkpoints").glob("*/seal.json")
  start = max((int(seal.parent.name) for seal in seals), default=0)
  if FAULT == "lost":
    start = 0
  if start:
    print(f"continuing the run after step {start}")
  for step in range(start + 1, STEPS + 1):
    print(f"step {step}/{STEPS}", flush=True)
    time.sleep(PAUSE)
    if FAULT == "hang":
      time.sleep(100)
    if FAULT == "crash":
      print("Traceback (most recent call last):")
      return 1
    if index == 0:
      save(workdir, step)
    if stopped_by:
      print(f"stopped by {stopped_by.name} after step {step}, saved")
      return 128 + stopped_by
    if is_pair and locked(other) and not other.read_text():
      print("error: the other process has ended")
      return 1
  lock.write("done")
  lock.flush()
  if index == 0:
    rows = [json.dumps({"step": step}) for step in range(STEPS)]
    (workdir / "metrics.jsonl").write_text("\n".join(rows))
    found = {"loss": FAULT == "wrong", "more": "x" * 7000}
    (workdir / "results.json").write_text(json.dumps(found))
  return 0


if __name__ == "__main__":
  try:
    sys.exit(main())
  except OSError as error:
    print(f"error: cannot write {error.filename}: {error.strerror}")
    sys.exit(2)
