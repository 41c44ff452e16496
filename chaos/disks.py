"""The disk fills up during a run, then gets room again."""

import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from chaos import kills, processes
from chaos import lab as lab_lib
from chaos.case import Case
from chaos.lab import Lab

_NAME = "disk"  # of the folder that is one
_TOTAL = 1 << 23
# Bytes that are left on a full disk: none, or less than this.
_LEFT = 1 << 18
# Bytes that a file may have where nothing can be mounted: some files of the
# toy are larger, but not what it prints.
_LARGEST = (3500, 7000)


class _Disk(NamedTuple):
  """A folder on a small disk."""

  folder: Path
  fill: Callable[[int], None]  # until so many bytes are left
  make_room: Callable[[], None]
  largest_file: int | None = None  # in bytes


@functools.cache
def stand_in() -> str:
  """What takes the place of a small disk on this machine."""
  with tempfile.TemporaryDirectory() as folder:
    mounted = _mount(folder)
    if mounted:
      _unmount(folder)
  return "a tmpfs" if mounted else "a limit on the size of files"


def trial(case: Case, lab: Lab) -> None:
  """A run stops in one line, a second try as well; with room, it goes on."""
  with _small_disk(case) as disk:
    workdir = disk.folder / "run"
    log = case.folder / "full.log"
    toy = processes.Toy(workdir, log, largest_file=disk.largest_file)
    kills.await_moment(case, lab, toy, lab_lib.STARTED)
    left = case.rng.choice((0, case.rng.randrange(_LEFT)))
    case.note(f"{left} bytes left")
    disk.fill(left)
    _end(case, toy)
    log = case.folder / "still_full.log"
    _end(case, processes.Toy(workdir, log, largest_file=disk.largest_file))
    saved = lab_lib.saved_step(workdir)
    case.note(f"saved step {saved}")
    disk.make_room()
    lab_lib.continue_and_compare(case, workdir, lab.folder / "whole", saved)


def unmount_left(folder: Path) -> None:
  """Removes the small disk of a trial that was killed, if there is one."""
  if os.path.ismount(folder / _NAME):
    _unmount(folder / _NAME)


def _end(case, toy):
  status = toy.end(case, [0, 2])
  case.note(f"status {status}")
  if status == 2 and "cannot write" not in toy.output():
    case.blame("wrong", "refused for another reason")


@contextlib.contextmanager
def _small_disk(case: Case) -> Iterator[_Disk]:
  folder = case.folder / _NAME
  folder.mkdir(parents=True)
  if stand_in() != "a tmpfs":
    most = case.rng.randrange(*_LARGEST)
    case.note(f"files of up to {most} bytes")
    yield _Disk(folder, lambda left: None, lambda: None, most)
    return
  if not _mount(folder):
    raise OSError(f"cannot mount a tmpfs on {folder}")
  filler = folder / "filler"
  try:
    yield _Disk(folder, functools.partial(_fill, filler), filler.unlink)
  finally:
    _unmount(folder)


def _fill(filler, left):
  with filler.open("wb") as file:
    while (free := shutil.disk_usage(filler).free) > left:
      with contextlib.suppress(OSError):  # the run has taken some
        end = filler.stat().st_size
        os.posix_fallocate(file.fileno(), end, free - left)


def _mount(folder):
  """Whether it worked."""
  if shutil.which("mount") is None:
    return False
  words = ["mount", "-t", "tmpfs", "-o", f"size={_TOTAL}", "chaos", folder]
  return subprocess.run(words, stderr=subprocess.DEVNULL).returncode == 0


def _unmount(folder):
  subprocess.run(["umount", "-l", folder], check=True)
