"""The benchmark measures fairly, and reports what it measured."""

import importlib
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import (
  candidate,
  flops,
  goals,
  machines,
  peers,
  plain,
  rounding,
  sequence,
  step_memory,
  timing,
)
from nam_jax.ops import lsam, tape
from tests.agreement import assert_agree

needs_torch = pytest.mark.skipif(peers.torch is None, reason=peers.ABSENT)


class Clock:
  """A clock that only runs while work is done."""

  def __init__(self):
    self.now, self.turns = 0.0, []

  def perf_counter(self):
    return self.now

  def sleep(self, seconds):
    assert seconds == 0

  def worker(self, name, *seconds):
    """Takes the given seconds in turn, then the last of them."""
    seconds = list(seconds)

    def run():
      self.turns.append(name)
      self.now += seconds.pop(0) if len(seconds) > 1 else seconds[0]

    return run


@pytest.fixture
def clock(monkeypatch):
  clock = Clock()
  monkeypatch.setattr(timing, "time", clock)
  return clock


def test_candidates_run_in_turn_and_the_fastest_round_counts(clock):
  candidates = {
    "a": clock.worker("a", 9, 3, 2, 4),
    "b": clock.worker("b", 1, 6, 5, 5),
  }
  assert timing.race(candidates, rounds=3) == {"a": 2, "b": 5}
  assert "".join(clock.turns) == "abababab"


def test_a_slow_candidate_leaves_the_race_after_a_timed_round(clock):
  candidates = {"a": clock.worker("a", 10), "b": clock.worker("b", 1)}
  assert timing.race(candidates, rounds=9, seconds=3) == {"a": 10, "b": 1}
  assert "".join(clock.turns) == "ab" + "ab" + "bb"


def test_results_are_printed_written_and_drawn(tmp_path, capsys):
  options = ["--quick", "--groups=bidirectional,streaming", "--sizes=8,16"]
  command.main([*options, "--rounds=1", "--limit=0", f"--out={tmp_path}"])
  written = json.loads((tmp_path / "results.json").read_text())
  assert set(written) == {"machine", "settings", "results", "goals"}
  assert written["machine"]["jax"] == jax.__version__
  assert written["settings"]["sizes"] == [8, 16]
  first, *_ = results = written["results"]
  assert set(first) == set(candidate.Result._fields)
  assert (first["name"], first["task"], first["size"]) == (
    "softmax",
    "forward",
    8,
  )
  for field in ("seconds", "compile_seconds", "temporary_mib", "flops"):
    assert first[field] > 0
  assert first["median_seconds"] >= first["seconds"]
  assert {r["name"] for r in results if r["group"] == "streaming"} == {
    "causal",
    "erase",
  }
  for r in results:
    is_long = r["size"] == 16 and r["group"] == "bidirectional"
    assert (r["seconds"] is None) == is_long
    assert bool(r["skipped"]) == is_long
  fields = {"name", "value", "goal", "at_most", "met"}
  assert fields == set(written["goals"][0])
  out = capsys.readouterr().out
  assert "skipped: softmax, forward, 16: it would take" in out
  assert "tokens/s" in out
  assert "S=8192 / S=4096" in out
  assert (tmp_path / "cost_by_length.png").stat().st_size > 10_000


@pytest.mark.parametrize(
  ("option", "complaint"),
  [
    ("--groups=causal,casual", "unknown 'casual'; choose from bidirectional"),
    ("--attentions=nan", "unknown 'nan'; choose from softmax"),
    ("--sizes=64,x", "'x' is not a positive integer"),
    ("--lra=txt:64", "unknown 'txt'; choose from image"),
    ("--rounds=0", "'0' is not a positive integer"),
  ],
)
def test_a_wrong_option_is_one_line(option, complaint, capsys):
  with pytest.raises(SystemExit) as stopped:
    command.main([option])
  assert stopped.value.code == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert complaint in line


@pytest.fixture
def without_torch(monkeypatch):
  monkeypatch.setitem(sys.modules, "torch", None)
  importlib.reload(peers)
  yield
  monkeypatch.undo()
  importlib.reload(peers)


@pytest.mark.usefixtures("without_torch")
def test_torch_is_left_out_where_it_is_not_installed(tmp_path, capsys):
  command.main(["--quick", "--groups=streaming", f"--out={tmp_path}"])
  assert capsys.readouterr().out.splitlines()[0] == peers.ABSENT
  written = json.loads((tmp_path / "results.json").read_text())
  assert written["machine"]["torch"] is None
  assert not (tmp_path / "cost_by_length.png").exists()
  assert peers.sequence_candidates("forward", ()) == {}
  assert peers.machine_candidates("lsam", {}, None, None) == {}


def numpy_tree(tree):
  return jax.tree.map(np.asarray, tree)


@needs_torch
def test_torch_computes_the_same_over_sequences():
  inputs = sequence.make_inputs(2, 5, 3, 4)
  theirs = peers.sequence_candidates(sequence.TASKS[1], inputs)
  for name, form in (
    ("torch loop", sequence.plain_scan),
    ("torch attention", causal_softmax),
  ):
    output, grads = theirs[name]().run()
    if name == "torch attention":
      output, *grads = (a.transpose(1, 2) for a in (output, *grads))
    args = [jnp.asarray(array) for array in inputs[: len(grads)]]
    ours = candidate.with_gradient(form, jnp.asarray(inputs.v), *args).run()
    assert_agree(numpy_tree((output, tuple(grads))), numpy_tree(ours), 1e-5)


def causal_softmax(q, k, v):
  return jax.nn.dot_product_attention(q, k, v, is_causal=True)


@needs_torch
@pytest.mark.parametrize("name", ["lsam", "nam_tm", "lstm"])
def test_torch_computes_the_same_machines(name):
  rng = np.random.default_rng(0)
  x, seed = rng.standard_normal((2, 3, 5, 8), np.float32)
  layer = machines.make_machines(8)[name].layer
  ours, params = machines.layer_candidate(layer, x, seed)
  (theirs,) = peers.machine_candidates(name, params, x, seed).values()
  output, (d_params, dx) = numpy_tree(ours.run())
  expected = (output, (dx, *jax.tree.leaves(d_params)))
  assert_agree(numpy_tree(theirs.run()), expected, 1e-5)


def test_plain_scans_take_the_place_of_the_fast_ones():
  found = machines.make_machines(8)
  for name, module, function in (
    ("lsam", lsam, "lsam_scan"),
    ("nam_tm", tape, "tape_scan"),
  ):
    fast = getattr(module, function)
    with found[name].context():
      assert getattr(module, function) is getattr(plain, function)
    assert getattr(module, function) is fast


def test_plain_dnc_has_the_same_parameters():
  machine, x = machines.make_machines(8)["dnc"], jnp.ones((1, 2, 8))
  fast, slow = (
    jax.eval_shape(layer.init, jax.random.key(0), x) for layer in machine[:2]
  )
  assert fast == slow


def test_operations_in_a_loop_count_as_often_as_it_runs():
  matrix = jnp.ones((4, 4))

  def loop(x):
    return jax.lax.scan(lambda x, _: (matrix @ x, None), x, length=5)[0]

  assert flops.count(jnp.matmul, matrix, matrix) == 2 * 4**3
  assert flops.count(loop, matrix) == 5 * 2 * 4**3
  assert flops.count(jax.jit(loop), matrix) == 5 * 2 * 4**3
  assert flops.count(lambda x: jnp.sum(x.T * x), matrix) == 16 + 16


def test_operations_of_the_branch_for_this_platform_count():
  def twice(x):
    return x @ (x @ x)

  def chosen(**branches):
    return lambda x: jax.lax.platform_dependent(x, **branches)

  x, here = jnp.ones((4, 4)), jax.default_backend()
  elsewhere = "tpu" if here != "tpu" else "cpu"
  one, two = 2 * 4**3, 4 * 4**3
  taken = chosen(**{here: twice, "default": jnp.sin})
  assert flops.count(taken, x) == two
  taken = chosen(**{elsewhere: twice, "default": lambda x: x @ x})
  assert flops.count(taken, x) == one
  either = lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, twice, x)  # noqa: E731
  assert flops.count(either, x) == two + 1


def test_forecasts_follow_the_last_growth():
  forecast = sequence.Forecast()
  assert forecast.seconds("forward", "nam", 64) == 0
  for size, seconds in ((64, 1.0), (128, 2.0)):
    result = candidate.Result("g", "forward", size, "nam", seconds)
    forecast.learn([result])
    if size == 64:
      assert forecast.seconds("forward", "nam", 128) == 4
  assert forecast.seconds("forward", "nam", 512) == pytest.approx(8)


def test_what_does_not_fit_into_memory_is_not_run():
  huge = candidate.Candidate(pytest.fail, temporary_mib=1e9)
  small = candidate.Candidate(lambda: None)
  racing = {"huge": huge, "small": small}
  a, b = candidate.measure("g", "t", 1, racing, candidate.QUICK)
  assert a.seconds is None
  assert "needs 1,000,000,000 MiB" in a.skipped
  assert b.seconds >= 0


def test_training_steps_are_raced(tmp_path, capsys):
  options = ["--quick", "--groups=lra", "--lra=image:16", "--rounds=1"]
  command.main([*options, "--attentions=nam,local", f"--out={tmp_path}"])
  written = json.loads((tmp_path / "results.json").read_text())
  nam, local = written["results"]
  ratio = nam["seconds"] / local["seconds"]
  lines = capsys.readouterr().out.splitlines()
  (row,) = [line.split() for line in lines if " local " in line]
  assert float(row[-3]) == pytest.approx(ratio, abs=0.01)


def test_the_memory_of_a_step_is_known_without_running_it(capsys):
  step_memory.main(["--lra=image:256", "--attentions=nam,softmax"])
  row = capsys.readouterr().out.splitlines()[-1].split()
  assert row[:2] == ["image,", "256"]
  nam, softmax = map(float, row[2:])
  weights = 256 * 8 * 257**2 * 4 / 2**30  # of 256 images and 8 heads
  assert softmax - nam > weights
  assert 0.1 < nam < 2


def test_goals_are_met_or_missed_or_not_measured():
  def form(task, size, name, seconds, mib):
    return candidate.Result("causal", task, size, name, seconds, 1, mib, size)

  results = [
    form(goals.GRADIENT, 4096, "memory_chunked", 1.0, 10),
    form(goals.GRADIENT, 8192, "memory_chunked", 2.0, 22),
    form(goals.GRADIENT, 8192, "memory_scan", 3.0, 22),
    form(goals.GRADIENT, 8192, "plain scan", 30.0, 44),
  ]
  judged = {goal.name: goal for goal in goals.judge(results, [64])}
  end = f"memory_chunked, {goals.GRADIENT}, S=8192"
  chosen = f"memory, {goals.GRADIENT}, S=8192"
  time = judged[f"time of plain scan / {chosen}"]
  assert time.cells()[1:] == ["15.00", "at least 12", "met"]
  memory = judged[f"temporary memory of plain scan / {chosen}"]
  assert (memory.value, memory.met) == (2, False)
  assert judged[f"FLOPs of {end} / S=4096"].met
  growth = judged[f"temporary memory of {end} / S=4096"]
  assert growth.cells()[1:] == ["2.20", "at most 2.1", "missed"]
  end = f"nam, {goals.GRADIENT}, S=64"
  assert judged[f"time of elu linear / {end}"].cells()[1::2] == [
    "",
    "not measured",
  ]


@pytest.mark.parametrize(
  ("options", "met", "status"),
  [([], False, 0), (["--check"], False, 1), (["--check"], None, 0)],
)
def test_a_missed_goal_fails_the_check(
  tmp_path, monkeypatch, options, met, status
):
  value = None if met is None else 1.0
  monkeypatch.setattr(
    goals, "judge", lambda *_: [goals.Goal("name", value, 2.0)]
  )
  monkeypatch.setattr(command, "GROUPS", {"none": lambda settings: []})
  arguments = ["--groups=none", f"--out={tmp_path}", *options]
  assert command.main(arguments) == status


def test_rounding_is_measured_for_both_kinds_of_heads():
  scaled, raw = rounding.measure(lengths=(8,), seeds=(0,))
  assert (scaled.normalize_heads, raw.normalize_heads) == (True, False)
  for loss in (scaled, raw):
    assert 0 < loss.outputs < 1e-5
    assert 0 < loss.gradients < 1e-4
