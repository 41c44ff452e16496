"""Changes to the bytes of a file, at random."""

import gzip
import io
import lzma
import random
import re
import zipfile
from typing import NamedTuple

# What readers of text and numbers may stumble over.
_PIECES = (
  *(b"\0", b"\t", b"\n", b"\r\n", b" ", b'"', b"\\", b"/", b"../", b","),
  *(b"\xff\xfe", b"\xef\xbb\xbf", b"\\ud800", b"caf\xe9", b"{}", b"null"),
  *(b"-1", b"NaN", b"1e999", b"0x10", b"9" * 400, b"x" * 5000),
  *(b"[" * 5000, b"(" * 5000, b"[MAX " * 2000, b'{"a":' * 2000),
)
_NUMBERS = (
  *(b"-1", b"0", b"256", b"65536", b"2147483648", b"18446744073709551616"),
  *(b"nan", b"inf", b"1e400", b"1.5", b"", b"9" * 5000),
)
# Formats with checksums of their own content.
_CHECKED = (".gz", ".xz", ".npz", ".zip", ".png")


class Mutation(NamedTuple):
  """What was done, the new content, and whether a checksum must notice."""

  what: str
  content: bytes
  is_checked: bool


def mutate(rng: random.Random, name: str, content: bytes) -> Mutation:
  """Changes a data file; a third of packed ones inside, then packed again."""
  if rng.random() < 1 / 3 and name.endswith((".gz", ".xz", ".npz", ".zip")):
    what, changed = _inside(rng, name, content)
    return Mutation(f"inside, {what}", changed, False)
  what, changed = damage(rng, content)
  return Mutation(what, changed, name.endswith(_CHECKED))


def damage(rng: random.Random, content: bytes) -> tuple[str, bytes]:
  """What was done, and the damaged content."""
  change = rng.choice(_CHANGES if content else (_insert,))
  what, changed = change(rng, content)
  return f"{change.__name__[1:]} {what}", changed


def _inside(rng, name, content):
  if name.endswith(".gz"):
    what, changed = damage(rng, gzip.decompress(content))
    return what, gzip.compress(changed, 1)
  if name.endswith(".xz"):
    what, changed = damage(rng, lzma.decompress(content))
    return what, lzma.compress(changed, preset=0)
  with zipfile.ZipFile(io.BytesIO(content)) as archive:
    members = {member: archive.read(member) for member in archive.namelist()}
  chosen = rng.choice(sorted(members))
  what, members[chosen] = damage(rng, members[chosen])
  packed = io.BytesIO()
  with zipfile.ZipFile(packed, "w") as archive:
    for member, data in members.items():
      archive.writestr(member, data)
  return f"{chosen}: {what}", packed.getvalue()


def _flip(rng, content):
  """One bit."""
  changed, bit = bytearray(content), rng.randrange(8 * len(content))
  changed[bit // 8] ^= 1 << bit % 8
  return f"bit {bit}", bytes(changed)


def _flips(rng, content):
  count = rng.randrange(2, 20)
  for _ in range(count):
    _, content = _flip(rng, content)
  return f"{count} bits", content


def _truncate(rng, content):
  end = rng.randrange(len(content))
  return f"to {end} of {len(content)}", content[:end]


def _empty(rng, content):
  del rng
  return f"all of {len(content)}", b""


def _cut(rng, content):
  start, end = _span(rng, content)
  return f"{start} to {end}", content[:start] + content[end:]


def _repeat(rng, content):
  start, end = _span(rng, content)
  return f"{start} to {end}", content[:end] + content[start:]


def _zero(rng, content):
  start, end = _span(rng, content)
  return f"{start} to {end}", content[:start] + bytes(end - start) + content[
    end:
  ]


def _scramble(rng, content):
  start, end = _span(rng, content)
  noise = rng.randbytes(end - start)
  return f"{start} to {end}", content[:start] + noise + content[end:]


def _insert(rng, content):
  at, piece = rng.randrange(len(content) + 1), rng.choice(_PIECES)
  return f"{piece[:20]!r} at {at}", content[:at] + piece + content[at:]


def _renumber(rng, content):
  """Another number in the place of some digits."""
  found = [*re.finditer(rb"\d+", content[: 1 << 16])]
  if not found:
    return _insert(rng, content)
  match, number = rng.choice(found), rng.choice(_NUMBERS)
  what = f"{match[0][:20]!r} at {match.start()} by {number[:20]!r}"
  return what, content[: match.start()] + number + content[match.end() :]


def _span(rng, content):
  """A piece, most often a short one."""
  start = rng.randrange(len(content))
  longest = min(len(content) - start, 1 << rng.randrange(16))
  return start, start + rng.randint(1, longest)


_CHANGES = (
  *(_flip, _flip, _flips, _truncate, _empty, _cut),
  *(_repeat, _zero, _scramble, _insert, _renumber),
)
