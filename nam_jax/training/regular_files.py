"""Opens files, but nothing that only looks like one.

A pipe would be waited for, and a device may never end.
"""

import errno
import os
import stat
from typing import BinaryIO

_KINDS = {
  stat.S_IFDIR: "a folder",
  stat.S_IFIFO: "a pipe",
  stat.S_IFSOCK: "a socket",
  stat.S_IFCHR: "a device",
  stat.S_IFBLK: "a device",
}


def open_file(path: str | os.PathLike) -> BinaryIO:
  """The file, to read bytes from; an OSError if it is anything else."""
  kind = _KINDS.get(stat.S_IFMT(os.stat(path).st_mode))
  if kind:
    raise OSError(errno.EINVAL, f"it is {kind}, not a file", os.fspath(path))
  return open(path, "rb")
