"""Tasks by name, and the command that shows them."""

import re
import runpy
import sys

import pytest

from algorithmic import show
from algorithmic.tasks import registry


def test_all_tasks_are_registered():
  assert len(registry.TASKS) == 24
  for name, task_class in registry.TASKS.items():
    assert registry.make_task(name) == task_class()
    assert task_class.name == name


def test_fields_reach_the_task():
  assert registry.make_task("reduce", count="target").count == "target"
  assert registry.make_task("repeat_copy", max_repeats=2).max_repeats == 2


@pytest.mark.parametrize(
  ("name", "fields", "message"),
  [
    ("fibb", {}, r"unknown task 'fibb'; did you mean 'fib'\? Known: fib, pal"),
    ("zzz", {}, r"unknown task 'zzz'. Known: fib, palin"),
    ("reduce", {"counts": "input"}, r"'reduce' 'counts'; did you mean 'count'"),
    ("fib", {"base": 2}, r"field of task 'fib' 'base'. Known: none"),
    ("reduce", {"count": "x"}, "count must be 'input' or 'target', got 'x'"),
    ("repeat_copy", {"max_repeats": 0}, r"max_repeats must be in 1..9, got 0"),
  ],
)
def test_wrong_names_get_one_helpful_line(name, fields, message):
  with pytest.raises(ValueError, match=message) as error:
    registry.make_task(name, **fields)
  assert "\n" not in str(error.value)


def test_show_prints_pairs_of_lines(capsys):
  show.main(["fib", "--digits", "6", "--count", "4"])
  samples = capsys.readouterr().out.strip().split("\n\n")
  assert len(samples) == 4
  for sample in samples:
    given, completed = sample.splitlines()
    assert re.fullmatch(r"\.*_\d{1,6}_\d{6}_M{6,7}E\.*", given)
    assert re.fullmatch(r"\.*_\d{1,6}_\d{6}_\d{6,7}E\.*", completed)
    assert len(given) == len(completed) == 23


def test_show_repeats_itself_and_follows_the_seed(capsys):
  outputs = []
  for seed in ("1", "1", "2"):
    show.main(["palin", "--seed", seed])
    outputs.append(capsys.readouterr().out)
  assert outputs[0] == outputs[1] != outputs[2]


def test_show_help_lists_the_tasks(capsys):
  with pytest.raises(SystemExit) as ended:
    show.main(["--help"])
  assert ended.value.code == 0
  text = capsys.readouterr().out
  assert {f"{name} " in text for name in registry.TASKS} == {True}
  assert "--digits" in text


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    (["fibb"], "error: unknown task 'fibb'; did you mean 'fib'?"),
    (["fib", "--digits", "0"], "error: digits must be at least 1, got 0"),
    (["fib", "--width", "3"], "error: width 3 is too small: fib needs 23"),
    (["fib", "--count", "0"], "error: count must be at least 1, got 0"),
  ],
)
def test_show_refuses_in_one_line(capsys, arguments, message):
  with pytest.raises(SystemExit) as ended:
    show.main(arguments)
  assert ended.value.code == 2
  error = capsys.readouterr().err
  assert error.startswith(message)
  assert error.count("\n") == 1


def test_show_runs_as_a_module(monkeypatch, capsys):
  monkeypatch.setattr(sys, "argv", ["show", "dyck"])
  runpy.run_path(show.__file__, run_name="__main__")
  assert capsys.readouterr().out.count("\n") == 8
