"""The race of the delta-rule family is fair, and its ratios are right."""

import importlib.metadata
import json
import types

import jax
import numpy as np
import pytest

import nam_jax
from benchmarks import candidate, family, rules
from docs import tables
from tests.agreement import assert_agree

needs_peer = pytest.mark.skipif(rules.peer is None, reason=family.ABSENT)


def form(q, k, v, p_w, p_e, log_decay=None):
  """Stands in for our forms: compiles in no time."""
  u = (p_w - p_e + 1)[..., None] * v
  return (u if log_decay is None else u + log_decay[..., None]), None


def delta_rule(q, k, v, beta, *, scale):
  assert scale == 1
  return v * beta[..., None], None


def gated_delta_rule(q, k, v, g, beta, *, scale):
  return delta_rule(q, k, v * jax.numpy.exp(g)[..., None], beta, scale=scale)


@pytest.fixture
def stand_ins(monkeypatch):
  peer = types.SimpleNamespace(
    delta_rule=delta_rule, gated_delta_rule=gated_delta_rule
  )
  monkeypatch.setattr(rules, "peer", peer)
  monkeypatch.setattr(rules, "FORMS", dict.fromkeys(rules.FORMS, form))
  monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")


OPTIONS = ["--rules=delta_rule,gated_delta_rule", "--shapes=1x2x4x3"]


@pytest.mark.usefixtures("stand_ins")
def test_a_run_prints_goals_and_writes_a_table(tmp_path, capsys):
  file = tmp_path / "results.json"
  file.write_text("{}")
  family.main([*OPTIONS, "--rounds=1", f"--json={file}"])
  written = json.loads(file.read_text())
  table = written[family.TABLE]
  assert [row["rule"] for row in table["rows"]] == [
    "`delta_rule`",
    "`gated_delta_rule`",
  ]
  for row in table["rows"]:
    assert tuple(row) == family.COLUMNS
    assert all(tables.provenance(table, row).values())
  assert "9.9" in table["machine"]
  assert "Freed memory is kept" in table["differs"]
  assert "1 x 2 x 4 x 3" in tables.as_markdown(written, family.TABLE)
  out = capsys.readouterr().out
  assert table["differs"] in out
  assert "time of peer / memory, gated_delta_rule, 1x2x4x3" in out


@pytest.mark.usefixtures("stand_ins")
def test_without_the_peer_the_rest_runs(monkeypatch, capsys):
  monkeypatch.setattr(rules, "peer", None)
  monkeypatch.setattr(family.host_memory, "keep_freed_memory", pytest.fail)
  family.main([*OPTIONS, "--rounds=1", "--default_allocator"])
  out = capsys.readouterr().out
  assert family.ABSENT in out.splitlines()
  assert "left to the default allocator" in out
  assert out.count("not measured") == 4
  with pytest.raises(SystemExit):
    family.main(["--json=results.json"])
  (line,) = capsys.readouterr().err.splitlines()[-1:]
  assert line.startswith("error: --json needs jax-linear-attention")


def test_a_wrong_shape_is_one_line(capsys):
  with pytest.raises(SystemExit):
    family.main(["--shapes=1x2x3"])
  (line,) = capsys.readouterr().err.splitlines()
  assert "'1x2x3' is not batch x heads x tokens x width" in line


def test_ratios_are_judged():
  def results(**figures):
    return [
      candidate.Result(
        "family", "", 1, name, seconds, None, mib, median_seconds=2 * seconds
      )
      for name, (seconds, mib) in figures.items()
    ]

  scan, chunked = (0.025, 9), (0.015, 9)
  forms = {"memory_scan": scan, "memory_chunked": chunked}
  raced = {
    "delta_rule": results(peer=(0.05, 16), memory=(0.02, 8), **forms),
    "gated_delta_rule": results(peer=(0.05, 10), memory=(0.03, 8), **forms),
    "kda": results(memory=(0.06, 8), **forms),
  }
  lines = family.compare((1, 4, 2048, 128), raced)
  assert [line.cells()[2:] for line in lines] == [
    ("50.0 (100.0)", "20.0 (40.0)", "2.50", "0.50", "1.33", "-"),
    ("50.0 (100.0)", "30.0 (60.0)", "1.67", "0.80", "2.00", "1.50"),
    ("-", "60.0 (120.0)", "-", "-", "4.00", "3.00"),
  ]
  judged = [[goal.met for goal in family.judge(line)] for line in lines]
  assert judged == [
    [True, True, False],  # the goal for this width is lower
    [False, False, False, False],
    [None, None, False],
  ]
  narrow, *_ = family.compare((1, 4, 2048, 64), raced)
  assert next(family.judge(narrow)).met is False


@pytest.mark.parametrize("rule", rules.RULES)
def test_gates_are_what_our_forms_take(rule):
  inputs = rules.make_inputs((1, 2, 5, 3))
  names = ("q", "k", "v", *rules.RULES[rule].inputs)

  def run(*args):
    return rules.ours(nam_jax.memory, rules.RULES[rule], *args)

  outputs = jax.eval_shape(run, *(inputs[name] for name in names))
  assert outputs.shape == inputs["v"].shape


@needs_peer
@pytest.mark.parametrize("rule", rules.RULES)
def test_the_peer_computes_the_same(rule, monkeypatch):
  monkeypatch.setattr(rules, "FORMS", {"memory_scan": nam_jax.memory_scan})
  made = rules.make_candidates(rule, rules.make_inputs((2, 2, 70, 8)))
  theirs, ours = (
    jax.tree.map(np.asarray, made[name].run())
    for name in ("peer", "memory_scan")
  )
  assert_agree(theirs, ours, 1e-4)
