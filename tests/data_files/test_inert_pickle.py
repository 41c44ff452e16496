"""Pickles are read as plain data and never run."""

import struct

import pytest

from data_files import errors, inert_pickle


@pytest.mark.parametrize(
  "pickle",
  [
    b"cos\nsystem\n(S'true'\ntR.",
    b"\x80\x02cbuiltins\neval\nU\x01\x31\x85R.",
    b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93\x8c\x00\x85R.",
    b"\x80\x02cnumpy\nload\nU\x01a\x85R.",
    b"\x80\x02}b.",
    b"\x80\x02]K\x01s.",
    b"\x80\x02}]K\x01s.",
    b"\x80\x02K\x01K\x02R.",
    b"\x80\x02(.",
    b"\x80\x02.",
    b"\x80\x02K\x01",
    b"S'\\+'\n.",
    b"\x80\x02h\x05.",
    b"\x80\x02cnumpy\ndtype\n\x81.",
    b"",
    b"not a pickle",
  ],
)
def test_pickles_of_anything_but_plain_data_are_refused(pickle):
  with pytest.raises(errors.DataError, match="refused"):
    inert_pickle.load(pickle)


def test_arrays_of_later_pickles_are_read():
  expected = [[0, 1, 200], [3, 4, 5]]
  dtype = b"\x8c\x05numpy\x8c\x05dtype\x93\x8c\x02u1\x89\x88\x87R"
  state = b"(K\x03\x8c\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
  buffer = b"\x96" + struct.pack("<Q", 6) + bytes(expected[0] + expected[1])
  fifth = (
    b"\x80\x05\x8c\x13numpy._core.numeric\x8c\x0b_frombuffer\x93("
    + buffer
    + dtype
    + state
    + b"K\x02K\x03\x86\x8c\x01CtR."
  )
  text = "\x00\x01\xc8\x03\x04\x05".encode()
  second = (
    b"\x80\x02cnumpy._core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
    b"K\x00\x85C\x01b\x87R(K\x01K\x02K\x03\x86cnumpy\ndtype\nX\x02\x00\x00\x00u1"
    b"\x89\x88\x87R\x89c_codecs\nencode\nX"
    + struct.pack("<I", len(text))
    + text
    + b"X\x06\x00\x00\x00latin1\x86Rtb."
  )
  for pickle in (fifth, second):
    matrix = inert_pickle.bytes_array(inert_pickle.load(pickle), 2)
    assert matrix.tolist() == expected
