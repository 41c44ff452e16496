"""Reads pickles of plain data and numpy arrays without running them.

A pickle is a program for a small stack machine, one of whose instructions calls
any function at all. Here such a call becomes a `Call`, a record of what would
have been called. Only the calls that make up an array are recorded; everything
else is refused.
"""

import dataclasses
import math
import pickletools
import warnings
from typing import Any

import numpy as np

from data_files.errors import DataError

_CALLABLES = {
  "numpy ndarray": "ndarray",
  "numpy dtype": "dtype",
  "numpy.core.multiarray _reconstruct": "reconstruct",
  "numpy._core.multiarray _reconstruct": "reconstruct",
  "numpy.core.numeric _frombuffer": "frombuffer",
  "numpy._core.numeric _frombuffer": "frombuffer",
  # How the oldest format with binary data spells bytes.
  "_codecs encode": "encode",
}
_UINT8 = ("u1", b"u1")


@dataclasses.dataclass(frozen=True)
class _Callable:
  """One of _CALLABLES, which is never called."""

  name: str


@dataclasses.dataclass
class Call:
  """A call that was not made; `state` would have been set on its result."""

  name: str
  arguments: tuple
  state: Any = None


def load(data: bytes) -> Any:
  """What the pickle holds: plain data, and `Call`s in place of arrays."""
  machine = _Machine()
  try:
    with warnings.catch_warnings(action="error"):
      for instruction, argument, _ in pickletools.genops(data):
        machine.run(instruction.name, argument)
    (result,) = machine.stack
  except (ValueError, TypeError, IndexError, KeyError, Warning) as error:
    raise DataError(f"the pickle is refused: {error}") from error
  return result


def field(value: Any, key: str) -> Any:
  """An entry of a dict, which Python 2 may have written with bytes as keys."""
  if not isinstance(value, dict):
    raise DataError("expected a dict")
  if key in value:
    return value[key]
  if key.encode() in value:
    return value[key.encode()]
  raise DataError(f"expected a dict with {key}")


def integers(value: Any, name: str) -> np.ndarray:
  """A list of integers as an array, int64 [n]."""
  if not isinstance(value, list) or {type(i) for i in value} - {int}:
    raise DataError(f"expected a list of integers as {name}")
  try:
    return np.array(value, np.int64)
  except OverflowError as error:
    raise DataError(f"{name}: an integer is too large") from error


def bytes_array(value: Any, axes: int) -> np.ndarray:
  """The uint8 array that a `Call` stands for, with this many axes."""
  match value:
    case Call(
      "reconstruct",
      state=(_, tuple(shape), Call("dtype", (kind, *_)), int(is_fortran), data),
    ) if len(shape) == axes:
      order = "F" if is_fortran else "C"
    case Call(
      "frombuffer", (data, Call("dtype", (kind, *_)), tuple(shape), "C")
    ) if len(shape) == axes:
      order = "C"
    case _:
      raise DataError(f"expected a numpy array with {axes} axes")
  if kind not in _UINT8 or not isinstance(data, bytes | bytearray):
    raise DataError("expected a numpy array of uint8")
  sizes = all(type(size) is int and size > 0 for size in shape)
  if not sizes or math.prod(shape) != len(data):
    raise DataError(f"the array's shape does not fit {len(data)} bytes")
  return np.frombuffer(data, np.uint8).reshape(shape, order=order)


class _Machine:
  """The stack machine of pickles, as far as plain data needs it."""

  def __init__(self):
    self.stack, self._marks, self._memo = [], [], {}

  def run(self, name: str, argument: Any) -> None:
    """Runs one instruction."""
    stack = self.stack
    match name:
      case "PROTO" | "FRAME" | "STOP":
        pass
      case "NONE":
        stack.append(None)
      case "NEWTRUE" | "NEWFALSE":
        stack.append(name == "NEWTRUE")
      case "BININT" | "BININT1" | "BININT2" | "LONG1" | "BINFLOAT":
        stack.append(argument)
      case "BINUNICODE" | "SHORT_BINUNICODE" | "BINUNICODE8":
        stack.append(argument)
      case "BINBYTES" | "SHORT_BINBYTES" | "BINBYTES8" | "BYTEARRAY8":
        stack.append(argument)
      case "BINSTRING" | "SHORT_BINSTRING":
        stack.append(argument.encode("latin-1"))
      case "BINPUT" | "LONG_BINPUT":
        self._memo[argument] = stack[-1]
      case "MEMOIZE":
        self._memo[len(self._memo)] = stack[-1]
      case "BINGET" | "LONG_BINGET":
        stack.append(self._memo[argument])
      case "GLOBAL":
        self._name(argument)
      case "STACK_GLOBAL":
        self._name(" ".join(self._pop(2)))
      case "REDUCE":
        self._call(*self._pop(2))
      case "BUILD":
        state = stack.pop()
        _expect(stack[-1], Call).state = state
      case _:
        self._collect(name)

  def _collect(self, name: str) -> None:
    """The instructions that build tuples, lists and dicts."""
    match name:
      case "MARK":
        self._marks.append(len(self.stack))
      case "EMPTY_TUPLE" | "TUPLE1" | "TUPLE2" | "TUPLE3":
        count = 0 if name == "EMPTY_TUPLE" else int(name[-1])
        self.stack.append(tuple(self._pop(count)))
      case "TUPLE":
        self.stack.append(tuple(self._pop_marked()))
      case "EMPTY_LIST":
        self.stack.append([])
      case "APPEND" | "APPENDS":
        items = self._pop(1) if name == "APPEND" else self._pop_marked()
        _expect(self.stack[-1], list).extend(items)
      case "EMPTY_DICT":
        self.stack.append({})
      case "SETITEM" | "SETITEMS":
        items = self._pop(2) if name == "SETITEM" else self._pop_marked()
        for key, value in zip(items[::2], items[1::2], strict=True):
          _expect(self.stack[-1], dict)[_expect(key, str | bytes)] = value
      case _:
        raise ValueError(f"the instruction {name} is not used for plain data")

  def _name(self, name: str) -> None:
    if name not in _CALLABLES:
      raise ValueError(f"it names {name!r:.60}, which is not part of an array")
    self.stack.append(_Callable(_CALLABLES[name]))

  def _call(self, function: Any, arguments: Any) -> None:
    name = _expect(function, _Callable).name
    match name, _expect(arguments, tuple):
      case "encode", (str(text), "latin1"):
        self.stack.append(text.encode("latin-1"))
      case _:
        self.stack.append(Call(name, arguments))

  def _pop(self, count: int) -> list:
    start = len(self.stack) - count
    if start < 0:
      raise ValueError("the stack is empty")
    items = self.stack[start:]
    del self.stack[start:]
    return items

  def _pop_marked(self) -> list:
    return self._pop(len(self.stack) - self._marks.pop())


def _expect(value: Any, kind: Any) -> Any:
  if not isinstance(value, kind):
    raise TypeError(f"expected {kind}, got {type(value)}")
  return value
