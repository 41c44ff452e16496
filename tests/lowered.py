"""Reads StableHLO: how often each line runs, on one of the platforms."""

import math
import re
from typing import NamedTuple

_DEFINED = re.compile(r"(%\w+)(?::\d+)? = ")
_CONSTANT = re.compile(r"stablehlo\.constant dense<(-?\d+)> : tensor<u?i\d+>")
_FUNCTION = re.compile(r"func\.func \w+ @(\w+)")
_PLATFORM = re.compile(r"(%\w+): tensor<i32> \{[^}]*_platform_index")
_CALL = re.compile(r"\bcall @(\w+)")
_CASE = re.compile(r'"stablehlo\.case"\((%\w+)\)')
_LIMIT = re.compile(r"stablehlo\.compare +LT, (%\w+), (%\w+)")
_RETURN = re.compile(r"(?:stablehlo\.)?return (%\w+)")


class Line(NamedTuple):
  """A line, and the blocks of lines that belong to it."""

  text: str
  blocks: list[list["Line"]]


class Executed(NamedTuple):
  """A line, and how often it runs; for a loop, how often its body does."""

  times: float
  text: str


def executed(module: str, platform: int = 0) -> list[Executed]:
  """All lines that run, with those of functions that are called.

  Args:
    module: the text of a lowered or exported program.
    platform: which of the platforms of an exported program; branches for the
      others do not run.
  """
  (top,) = [line for line in _parse(module) if line.text.startswith("module")]
  functions = {
    found[1]: line
    for line in top.blocks[0]
    if (found := _FUNCTION.match(line.text))
  }
  return _Reader(functions, platform).call("main", 1)


def loops(module: str, platform: int = 0) -> list[float]:
  """How often the body of each loop runs; inf if that cannot be told."""
  lines = executed(module, platform)
  return [line.times for line in lines if "stablehlo.while" in line.text]


def _parse(text):
  """The lines as a tree: a brace at an end begins a block, in front ends it."""
  top = []
  stack = [top]
  for line in map(str.strip, text.splitlines()):
    if line.startswith("}"):
      stack.pop()
    elif not line.startswith(("cond ", "reducer")):
      stack[-1].append(Line(line, []))
    if line.endswith("{"):
      owner = stack[-1][-1]
      owner.blocks.append([])
      stack.append(owner.blocks[-1])
  return top


class _Reader:
  """Follows calls, loops and branches, and knows the numbers that decide."""

  def __init__(self, functions, platform):
    self._functions, self._platform = functions, platform

  def call(self, name, times):
    """What a function executes."""
    function = self._functions[name]
    known = dict.fromkeys(_PLATFORM.findall(function.text), self._platform)
    return self._block(function.blocks[0], known, times)[0]

  def _block(self, lines, known, times):
    """What a block executes, and the number that it returns, if known."""
    known, found, result = dict(known), [], None
    for text, blocks in lines:
      value, runs = None, times
      if constant := _CONSTANT.search(text):
        value = int(constant[1])
      elif case := _CASE.search(text):
        branches, index = blocks, known.get(case[1])
        if index is not None:
          branches = [blocks[index]]
        for branch in branches:
          inner, value = self._block(branch, known, times)
          found += inner
        value = value if len(branches) == 1 else None
      elif "stablehlo.while" in text:
        runs = times * _trips(text, blocks[0], known)
        found += self._block(blocks[1], known, runs)[0]
      elif called := _CALL.search(text):
        found += self.call(called[1], times)
      elif returned := _RETURN.match(text):
        result = known.get(returned[1])
      if value is not None:
        known[_DEFINED.match(text)[1]] = value
      found.append(Executed(runs, text))
    return found, result


def _trips(loop, condition, known):
  """How often a loop runs that counts up by one, as `lax.scan` does."""
  known = dict(known)
  for text, _ in condition:
    if constant := _CONSTANT.search(text):
      known[_DEFINED.match(text)[1]] = int(constant[1])
    elif limit := _LIMIT.search(text):
      first = re.search(rf"{limit[1]} = (%\w+)", loop)
      ends = [known.get(name) for name in (first and first[1], limit[2])]
      if None not in ends:
        return ends[1] - ends[0]
  return math.inf
