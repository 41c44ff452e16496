"""The command that shows a task's data."""

import subprocess
import sys

import numpy as np
import pytest

from lra_tasks import inspect
from tests import project_tree
from tests.data_files import writers


def shown(capsys, *arguments):
  inspect.main([str(argument) for argument in arguments])
  return capsys.readouterr().out


def error_of(capsys, *arguments):
  with pytest.raises(SystemExit) as stopped:
    inspect.main([str(argument) for argument in arguments])
  assert stopped.value.code == 2
  output = capsys.readouterr()
  assert output.out == ""
  return output.err


def write_reviews(folder):
  items = [
    {"text": "Gr\u00fcn \x1b[2J.", "label": 1},
    {"text": "x" * 40, "label": 0},
    {"text": "last one", "label": 1},
  ]
  for split in ("train", "test"):
    lines = writers.json_lines(*items)
    writers.write(folder / f"imdb_{split}.jsonl", lines)


def test_text_is_shown_with_sizes_classes_and_lengths(tmp_path, capsys):
  write_reviews(tmp_path)
  lines = shown(
    capsys,
    *("text", "--data_dir", tmp_path, "--max_length", 12),
    *("--validation", "test"),
  ).splitlines()
  assert lines[0] == "text: 12 tokens out of 257, 2 classes"
  train = lines[lines.index("train: 3 rows") :]
  assert train[1] == "  classes: 0: 1, 1: 2"
  assert train[2] == (
    "  lengths: min 8, median 11, mean 19.7, max 40, cut 33.3%"
  )
  # Whatever is in a text, the terminal gets plain characters.
  assert train[3:5] == ["  row 0, label 1:", r"    | 'Gr\xfcn \x1b[2J.'"]
  assert train[5:7] == ["  row 1, label 0:", f"    | '{'x' * 12}'"]
  assert "validation: the same rows as test" in lines
  assert "last one" not in "".join(lines)


def test_both_texts_of_a_pair_are_shown(tmp_path, capsys):
  for split in ("train", "eval", "test"):
    line = "1.0\tA\tB\tfirst text\tsecond\n"
    writers.write(tmp_path / f"new_aan_pairs.{split}.tsv", line)
  output = shown(capsys, "retrieval", "--data_dir", tmp_path)
  assert "retrieval: pairs of 4000 tokens" in output
  assert "min 6, median 8, mean 8.0, max 10, cut 0.0%" in output
  assert "    | 'first text'\n    | 'second'\n" in output


def test_images_are_shown_as_characters(tmp_path, capsys):
  images = np.zeros((2, 32, 32), np.uint8)
  images[:, :16, 16:] = 255
  images[:, 16:30, :] = 128
  arrays = {"x_train": images, "x_test": images}
  labels = np.array([7, 3])
  np.savez(
    tmp_path / "cifar10_gray.npz", **arrays, y_train=labels, y_test=labels
  )
  output = shown(capsys, "image", "--data_dir", tmp_path)
  picture = [" " * 16 + "@" * 16] * 8 + ["+" * 32] * 7 + [" " * 32]
  block = "".join(f"    | {line}\n" for line in picture)
  assert f"  row 0, label 7:\n{block}" in output
  assert "validation: 0 rows\n" in output


def test_expressions_are_shown_as_words(tmp_path, capsys):
  source = "( ( ( [MAX 2 ) 9 ) ] )"
  for split in ("train", "val", "test"):
    lines = f"Source\tTarget\r\n{source}\t9\r\n"
    writers.write(tmp_path / f"basic_{split}.tsv", lines)
  output = shown(capsys, "listops", "--data_dir", tmp_path)
  assert "  row 0, label 9:\n    | [MAX 2 9 ]\n" in output


def test_errors_are_one_line(tmp_path, capsys):
  for arguments, complaint in (
    (["tex"], "error: unknown task 'tex'; did you mean 'text'"),
    (["image", "--max_length", 3], "error: unknown setting of image 'max_"),
    (["pathfinder", "--level=easier"], "error: expected a resolution of 32,"),
    (["retrieval", "--data_dir", tmp_path], "error: no data for retrieval: l"),
    (["retrieval", "--data_dir", tmp_path / "no"], "error: data_dir "),
    (["retrieval"], "error: retrieval needs data_dir"),
  ):
    message = error_of(capsys, *arguments)
    assert message.startswith(complaint)
    assert message.count("\n") == 1


def test_the_command_runs_and_helps():
  command = [sys.executable, "-m", "lra_tasks.inspect", "--help"]
  result = subprocess.run(
    command, cwd=project_tree.ROOT, capture_output=True, text=True, check=True
  )
  assert "--data_dir" in result.stdout
  assert "tasks: listops, text, retrieval, image, pathfinder" in result.stdout
