"""What a compiled program executes, counted in the text of its HLO.

An operation is an instruction that the device is told to run: a fusion, a copy,
a matrix product, a call into a library. Names for existing buffers (`bitcast`,
`tuple`, ...), constants, and the ends of asynchronous copies are none. A loop
counts as often as it runs, with what decides whether it goes on: the condition
is a kernel of its own on a GPU.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

_FREE = {"after-all", "bitcast", "constant", "get-tuple-element", "parameter"}
_FREE |= {"partition-id", "tuple"}
_FREE_CALLS = ('"AllocateBuffer"', '"ConcatBitcast"')  # of a TPU

_HEADER = re.compile(r"(ENTRY )?%?([\w.-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"  (?:ROOT )?%?[\w.-]+ = (.*)")
_OPCODE = re.compile(r" ([a-z][\w-]*)\(")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_COSTS = re.compile(r'"reification_cost":(\[\{.*?\}\])')
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')


class Instruction(NamedTuple):
  """A line of a computation."""

  opcode: str
  text: str

  def called(self, role: str) -> str:
    """The name of the computation that plays the role: body, condition."""
    return re.search(rf"\b{role}=%?([\w.-]+)", self.text)[1]

  def is_free(self) -> bool:
    """Whether the device has nothing to do."""
    if self.opcode == "custom-call":
      return any(name in self.text for name in _FREE_CALLS)
    return self.opcode in _FREE or self.opcode.endswith("-done")


class Count(NamedTuple):
  """What a program executes.

  `loops` holds how often the body of each loop runs, in total for a nested one;
  `estimate` is in the compiler's unit, and 0 if it made none.
  """

  loops: tuple[int, ...]
  operations: int
  estimate: float


def microseconds(line: str) -> float:
  """XLA's estimate for an operation on a GPU.

  Of its cost models, the one made for tiled kernels is the most exact, where it
  has something to say.
  """
  found = _COSTS.search(line)
  costs = json.loads(found[1]) if found else []
  by_model = {cost["name"]: cost["exec_time_us"] for cost in costs}
  return by_model.get("indexing-cost-model", by_model.get("", 0.0))


def cycles(line: str) -> float:
  """XLA's estimate for an operation on a TPU."""
  found = _CYCLES.search(line)
  return float(found[1]) if found else 0.0


def count(text: str, estimate: Callable[[str], float]) -> Count:
  """Counts what `jax.stages.Compiled.as_text()` says.

  Args:
    text: the program.
    estimate: the compiler's estimate in the text of an instruction.
  """
  computations, entry = parse(text)
  return _count(computations, entry, 1, estimate)


def parse(text: str) -> tuple[dict[str, list[Instruction]], str]:
  """The computations by name, and the name of the first to run."""
  computations, entry, current = {}, "", []
  for line in text.splitlines():
    if header := _HEADER.match(line):
      current = computations.setdefault(header[2], [])
      entry = header[2] if header[1] else entry
    elif found := _INSTRUCTION.match(line):
      # A type may have brackets of its own: (f32[2]{0:T(256)}, s32[]).
      opcode = _OPCODE.search(" " + _without_type(found[1]))[1]
      current.append(Instruction(opcode, line))
  return computations, entry


def _without_type(text):
  """What follows the type, which is one word or a tuple."""
  depth = 0
  for i, character in enumerate(text):
    depth += (character == "(") - (character == ")")
    if character == " " and depth == 0:
      return text[i + 1 :]
  raise ValueError(f"no instruction: {text[:80]}")


def _count(
  computations: Mapping[str, list[Instruction]],
  name: str,
  times: int,
  estimate: Callable[[str], float],
) -> Count:
  """The count of a computation that runs so many times."""
  loops, operations, total = [], 0, 0.0
  for instruction in computations[name]:
    inner, repeats = [], times
    if instruction.opcode == "while":
      repeats = times * _trips(computations, instruction)
      loops.append(repeats)
      inner = [instruction.called(role) for role in ("condition", "body")]
    elif instruction.opcode == "call":
      inner = [instruction.called("to_apply")]
    elif not instruction.is_free():
      operations += times
      total += times * estimate(instruction.text)
    for each in inner:
      found = _count(computations, each, repeats, estimate)
      loops += found.loops
      operations += found.operations
      total += found.estimate
  return Count(tuple(loops), operations, total)


def _trips(computations, loop) -> int:
  """How often a loop runs: from 0, by 1, as `lax.scan` has it."""
  if found := _TRIPS.search(loop.text):
    return int(found[1])
  condition = computations[loop.called("condition")]
  bounds = [
    int(found[1])
    for instruction in condition
    if (found := re.search(r"s32\[\]\S* constant\((\d+)\)", instruction.text))
  ]
  if len(bounds) != 1:
    raise ValueError(f"a loop of unknown length: {loop.text.strip()[:80]}")
  return bounds[0]
