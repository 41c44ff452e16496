"""What a run is trained and tested on, in a few lines of its config.json.

A fingerprint holds, for every split, the number of rows and a digest of the
arrays that they come from; and name and size of the files that were read. Data
are the same if the digests are: the files only help to say what differs.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Fingerprint = dict[str, Any]

_AT_ONCE = 1 << 24  # bytes
_NAMED = 3  # files that differ


def make(
  splits: Mapping[str, Sequence[np.ndarray]],
  files: Mapping[str, int] | None = None,
) -> Fingerprint:
  """The fingerprint of some data, for `fit` and `load`.

  Args:
    splits: the arrays of each split, the first with one entry per row.
    files: sizes of the files that were read, by name.
  """
  return {
    "splits": {
      name: {"rows": len(arrays[0]), "sha256": _digest(arrays)}
      for name, arrays in splits.items()
    },
    # A list: names with dots cannot be keys of a ConfigDict.
    "files": [
      {"name": name, "bytes": size} for name, size in (files or {}).items()
    ],
  }


def only(fingerprint: Fingerprint, names: Sequence[str]) -> Fingerprint:
  """The fingerprint of some of the splits."""
  splits = {name: fingerprint["splits"][name] for name in names}
  return fingerprint | {"splits": splits}


def differences(theirs: Fingerprint, ours: Fingerprint) -> list[str]:
  """What is not the same in the splits of `ours`; empty for the same data."""
  there, here = (
    {file["name"]: file["bytes"] for file in data["files"]}
    for data in (theirs, ours)
  )
  found = []
  for name, split in ours["splits"].items():
    other = theirs["splits"].get(name, {"rows": 0, "sha256": "none"})
    if split["rows"] != other["rows"]:
      found.append(
        f"{name} has {other['rows']} rows there and {split['rows']} here"
      )
    elif split["sha256"] != other["sha256"]:
      found.append(
        f"{name} has {split['rows']} other rows (sha256"
        f" {other['sha256'][:8]} there, {split['sha256'][:8]} here)"
      )
  if not found:
    return []
  changed = [n for n in there | here if there.get(n) != here.get(n)]
  return found + [
    f"file {name} has {there.get(name, 'no')} bytes there and"
    f" {here.get(name, 'no')} here"
    for name in changed[:_NAMED]
  ]


def _digest(arrays: Sequence[np.ndarray]) -> str:
  digest = hashlib.sha256()
  for array in arrays:
    digest.update(f"{array.dtype.str} {array.shape}".encode())
    for part in _parts(array):
      digest.update(part.tobytes())
  return digest.hexdigest()


def _parts(array: np.ndarray) -> Iterator[np.ndarray]:
  """The array in pieces, since it may be a large file."""
  size = max(1, _AT_ONCE * len(array) // max(1, array.nbytes))
  for start in range(0, len(array), size):
    yield array[start : start + size]
