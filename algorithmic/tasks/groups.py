"""The word problem of a group: what do so many permutations amount to?

A symbol is an element of the group, a permutation of n objects; the answer is
the product of all elements so far. Who can tell tracks the state of a system
that every symbol changes. The group decides how hard that is: Z_n, rotations of
n objects, is a counter; S3 is not commutative; S5, and A5 in it, cannot be
solved by any fixed number of parallel steps (Barrington 1989).
"""

import functools
import itertools

import numpy as np

from algorithmic.tasks import layout, strings

_KINDS = "Z, S or A"
_MOST_ELEMENTS = 120


def elements(group: str) -> list[tuple[int, ...]]:
  """All elements of a group; the first changes nothing.

  Element p moves object i to place p[i].

  Args:
    group: "Z7" rotates 7 objects, "S5" permutes 5, "A5" permutes 5 by an even
      number of swaps.
  """
  kind, size = group[:1], group[1:]
  if kind not in ("Z", "S", "A") or not size.isdecimal() or int(size) < 2:
    raise ValueError(
      f"group must be {_KINDS} and a number, such as S5, got {group!r}"
    )
  n = int(size)
  if n > _MOST_ELEMENTS or (kind != "Z" and n > 5):
    raise ValueError(
      f"group {group} has more than {_MOST_ELEMENTS} elements: take at most"
      f" Z{_MOST_ELEMENTS}, S5 or A5"
    )
  if kind == "Z":
    return [tuple((i + turn) % n for i in range(n)) for turn in range(n)]
  every = itertools.permutations(range(n))
  return [p for p in every if kind == "S" or _is_even(p)]


@functools.cache
def products(group: str) -> np.ndarray:
  """Table [g g]: the number of the element that is row, then column."""
  every = elements(group)
  number = {element: i for i, element in enumerate(every)}
  return np.array(
    [[number[tuple(q[i] for i in p)] for q in every] for p in every], np.int32
  )


class GroupWord(strings.VerdictTask):
  """The product of d elements of a group: `_ s _ M E`.

  `group` is a name such as S3, S5, A5 or Z7. Its elements are tokens from 16
  on, shown as letters. Those of S3 are, by the places of objects 0, 1, 2:
  a 012, b 021, c 102, d 120, e 201, f 210. First b, which swaps places 1 and 2,
  then c, which swaps 0 and 1, is d. Then f, which swaps 0 and 2, makes it c:

  >>> print(GroupWord(group="S3").example("bcf"))
  _bcf_ME
  _bcf_cE

  `every=True` asks for the product so far at every element, in its place. Here,
  too, a first token tells a memory where to start:

  >>> print(GroupWord(group="Z7", every=True).example("bbgg"))
  _bbgg
  _bcba
  """

  name = "group"
  group: str = "S5"
  every: bool = False

  def __post_init__(self):
    elements(self.group)

  @property
  def order(self) -> int:
    """The number of elements."""
    return len(products(self.group))

  @property
  def vocab_size(self) -> int:
    """The elements come after the tokens that all tasks have."""
    return layout.VOCAB_SIZE + self.order

  @property
  def symbols(self) -> str:
    """The elements are letters."""
    return layout.SYMBOLS + layout.letters(self.order)

  @property
  def alphabet(self) -> range:
    """The tokens of the elements."""
    return range(layout.VOCAB_SIZE, self.vocab_size)

  def sequence_length(self, digits: int) -> int:
    """d elements, and what surrounds them."""
    return digits + 1 if self.every else super().sequence_length(digits)

  def complete(self, string: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_ s _ M E`, or `_ s` and the product so far."""
    if not self.every:
      return super().complete(string)
    product = np.where(string == layout.PAD, layout.PAD, self.so_far(string))
    bar = layout.DELIMITER
    return layout.join(bar, string), layout.join(bar, product)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The product of all elements."""
    return self.so_far(string)[:, -1:]

  def so_far(self, string: np.ndarray) -> np.ndarray:
    """The product [b w] of the elements up to each one; PAD changes nothing."""
    table = products(self.group)
    element = np.where(string == layout.PAD, 0, string - layout.VOCAB_SIZE)
    product, found = np.zeros(len(string), np.int32), np.empty_like(string)
    for column, factor in enumerate(element.T):
      product = table[product, factor]
      found[:, column] = product + layout.VOCAB_SIZE
    return found

  def counted(self, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The mask, or every element."""
    if not self.every:
      return super().counted(inputs, targets)
    return inputs >= layout.VOCAB_SIZE


def _is_even(permutation):
  pairs = itertools.combinations(permutation, 2)
  return sum(left > right for left, right in pairs) % 2 == 0
