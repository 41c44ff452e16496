"""TensorBoard events in the folder summary/ of a run."""

import time
from pathlib import Path
from typing import Any


class Events:
  """Writes scalars at once.

  The writer of tensorboardX leaves it to a thread, which prints a traceback of
  its own when the disk is full, and nobody waits for it.
  """

  def __init__(self, folder: Path, start: int):
    from tensorboardX import event_file_writer
    from tensorboardX.proto import event_pb2

    folder.mkdir(parents=True, exist_ok=True)
    proto: Any = event_pb2  # whose classes are made at run time
    self._event = proto.Event
    self._file = event_file_writer.EventsWriter(str(folder / "events"))
    # Hides what an interrupted run wrote of later steps.
    began = proto.SessionLog(status=proto.SessionLog.START)
    self._write(start + 1, session_log=began)

  def add_scalar(self, name: str, value: float, step: int) -> None:
    """Adds one number of this step."""
    from tensorboardX import summary

    self._write(step, summary=summary.scalar(name, value))

  def flush(self) -> None:
    """Makes what has been added visible to others."""
    self._file.flush()

  def close(self) -> None:
    """Ends the file."""
    self._file.close()

  def _write(self, step, **content):
    event = self._event(wall_time=time.time(), step=step, **content)
    self._file.write_event(event)
