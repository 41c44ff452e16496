"""Rows: cut and padded to one length, with a mask, indexed like a list."""

import numpy as np
import pytest

from lra_tasks import rows


def token_rows(max_length=3):
  tokens, offsets = rows.end_to_end([b"\x05\x06", b"", b"\x07\x08\x09\x0a"])
  return rows.TokenRows(tokens, offsets, np.array([1, 0, 1]), max_length)


def test_short_sequences_are_padded_and_long_ones_cut():
  inputs = [row["inputs"].tolist() for row in token_rows()]
  assert inputs == [[5, 6, 0], [0, 0, 0], [7, 8, 9]]
  mask = [row["mask"].tolist() for row in token_rows()]
  assert mask == [[True, True, False], [False] * 3, [True] * 3]


def test_rows_have_the_types_of_the_contract():
  row = token_rows()[0]
  assert {key: value.dtype for key, value in row.items()} == {
    "inputs": np.int32,
    "mask": np.bool_,
    "label": np.int32,
  }


def test_first_id_is_added_to_real_tokens_only_and_never_overflows():
  tokens, offsets = rows.end_to_end([b"\x00\xff"])
  text = rows.TokenRows(tokens, offsets, np.array([0]), 4, first_id=1)
  assert text[0]["inputs"].tolist() == [1, 256, 0, 0]


def test_labels_and_lengths_come_without_building_rows():
  assert token_rows().labels.tolist() == [1, 0, 1]
  assert token_rows().labels.dtype == np.int32
  assert token_rows().lengths.tolist() == [2, 0, 4]


def test_an_index_counts_from_the_end_or_is_an_error():
  some = token_rows()
  assert some[-1]["inputs"].tolist() == some[2]["inputs"].tolist()
  assert some[np.int64(2)]["label"] == 1
  for index in (3, -4):
    with pytest.raises(IndexError):
      some[index]


def test_pairs_take_documents_by_number():
  tokens, offsets = rows.end_to_end([b"\x05", b"\x07\x08\x09"])
  documents = rows.Sequences(tokens, offsets, 2, lengths=np.array([1, 30]))
  pairs = rows.PairRows(documents, np.array([[1, 0], [1, 1]]), np.array([1, 0]))
  assert pairs[0]["inputs"].tolist() == [[7, 8], [5, 0]]
  assert pairs[0]["mask"].tolist() == [[True, True], [True, False]]
  assert [int(row["label"]) for row in pairs] == [1, 0]
  assert pairs.lengths.tolist() == [[30, 1], [30, 30]]


def test_pixels_of_an_image_follow_row_by_row_and_are_all_real():
  images = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) * 20
  some = rows.ImageRows(images, np.array([3, 4], np.uint8))
  assert some[1]["inputs"].tolist() == [120, 140, 160, 180, 200, 220]
  assert some[1]["inputs"].dtype == np.int32
  assert some[1]["mask"].all()
  assert some[1]["label"] == 4
  assert some.lengths.tolist() == [6, 6]


def test_a_split_may_be_empty():
  none = rows.ImageRows(np.zeros((0, 2, 3), np.uint8), np.zeros(0, np.uint8))
  assert list(none) == []
  assert none.lengths.shape == (0,)


@pytest.mark.parametrize("max_length", [0, -1])
def test_a_length_without_tokens_is_an_error(max_length):
  with pytest.raises(ValueError, match=f"max_length.*{max_length}"):
    token_rows(max_length)
