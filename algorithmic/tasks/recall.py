"""Associative recall: pairs of keys and values, then keys to look up."""

import numpy as np

from algorithmic.tasks import layout, task


class Recall(task.Task):
  """Looks up keys in d pairs of keys and values: `k v k v .. _ k k ..`.

  Multi-query associative recall (Arora et al. 2023, 2312.04927). After the
  pairs, every key is asked for once; the answer stands in the key's own place.
  Keys are tokens from 16 on, shown as lower-case letters; values follow them,
  shown as capitals.

  >>> print(Recall().example("aBcAbC", "cab"))
  aBcAbC_cab
  aBcAbC_ABC

  `repeated=True`: there are half as many keys as pairs, and the last value of
  a key counts. A memory that only adds up cannot tell it from those before.

  >>> print(Recall(repeated=True).example("aBcAaC", "ca"))
  aBcAaC_ca
  aBcAaC_AC
  """

  name = "recall"
  num_keys: int = 64
  num_values: int = 64
  repeated: bool = False

  def __post_init__(self):
    for field in ("num_keys", "num_values"):
      if not 2 <= getattr(self, field) <= 256:
        raise ValueError(
          f"{field} must be in 2..256, got {getattr(self, field)}"
        )

  @property
  def vocab_size(self) -> int:
    """Keys and values come after the tokens that all tasks have."""
    return layout.VOCAB_SIZE + self.num_keys + self.num_values

  @property
  def symbols(self) -> str:
    """Keys are lower-case letters, values capitals."""
    keys = layout.letters(self.num_keys)
    return layout.SYMBOLS + keys + layout.letters(self.num_values, True)

  def num_distinct(self, digits):
    """How many keys d pairs have; of one number, or of an array."""
    return -(-digits // 2) if self.repeated else digits

  def sequence_length(self, digits: int) -> int:
    """d pairs, a delimiter, every key once."""
    return 2 * digits + 1 + self.num_distinct(digits)

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """The pairs, and the keys in another order."""
    distinct, width = self.num_distinct(digits), int(digits.max())
    if distinct.max() > self.num_keys:
      raise ValueError(
        f"{digits.max()} pairs need {distinct.max()} keys; num_keys is"
        f" {self.num_keys}"
      )
    first_key = layout.VOCAB_SIZE
    first_value = first_key + self.num_keys
    rows = np.arange(digits.size)[:, None]
    ids = np.tile(np.arange(self.num_keys, dtype=np.int32), (digits.size, 1))
    keys = first_key + rng.permuted(ids, axis=1)[:, : distinct.max()]
    # Every key once, then any of them, in a random order.
    place = np.broadcast_to(np.arange(width), (digits.size, width))
    again = rng.integers(0, distinct[:, None], place.shape)
    which = _shuffled(
      rng, np.where(place < distinct[:, None], place, again), digits
    )
    values = rng.integers(0, self.num_values, place.shape) + first_value
    pairs = np.stack([keys[rows, which], values], axis=-1)
    pairs = pairs.reshape(digits.size, 2 * width).astype(np.int32)
    return (
      layout.keep_first(pairs, 2 * digits),
      layout.keep_first(_shuffled(rng, keys, distinct), distinct),
    )

  def complete(
    self, pairs: np.ndarray, asked: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """`pairs _ keys` and `pairs _ values`."""
    keys, values = pairs[:, ::2], pairs[:, 1::2]
    is_key = keys[:, None] == asked[:, :, None]
    last = keys.shape[1] - 1 - np.argmax(is_key[:, :, ::-1], axis=2)
    found = np.take_along_axis(values, last, axis=1)
    found = np.where(asked == layout.PAD, layout.PAD, found)
    bar = layout.DELIMITER
    return layout.join(pairs, bar, asked), layout.join(pairs, bar, found)

  def counted(self, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Every key after the delimiter."""
    after = np.cumsum(inputs == layout.DELIMITER, axis=1) > 0
    return after & (inputs >= layout.VOCAB_SIZE)


def _shuffled(rng, values, lengths):
  """The first `lengths[b]` columns of each row in a random order."""
  columns = np.arange(values.shape[1])
  keys = np.where(columns < lengths[:, None], rng.random(values.shape), 1.0)
  return np.take_along_axis(values, np.argsort(keys, axis=1), axis=1)
