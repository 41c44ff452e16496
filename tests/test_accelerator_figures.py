"""`make accelerators` compiles everything public, and counts rightly."""

import inspect
import itertools
import json
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from flax import linen as nn

import nam_jax
from benchmarks import accelerators, hlo, programs, targets
from command_line import record
from tests import project_tree

# Two loops inside each other; the outer one says how often it runs in its
# condition alone, as on a TPU.
TEXT = """\
HloModule jit_f, is_scheduled=true

%inner (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %x = f32[4]{0:T(256)} fusion(%a), calls=%f, backend_config={COST}
  ROOT %y = f32[4]{0} copy(%x)
}

%inner_end (a: f32[4]) -> pred[] {
  ROOT %p = pred[] compare(%a, %a), direction=LT
}

%outer (b: (s32[], f32[4])) -> (s32[], f32[4]) {
  %b = (s32[]{:T(128)}, f32[4]{0}) parameter(0)
  %w = f32[4]{0} while(%b), condition=%inner_end, body=%inner, \
backend_config={"known_trip_count":{"n":"3"}}
  ROOT %t = (s32[], f32[4]{0}) tuple(%w)
}

%outer_end (b: (s32[], f32[4])) -> pred[] {
  %end = s32[]{:T(128)} constant(5)
  ROOT %q = pred[] compare(%b, %end), direction=LT
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %start = (f32[4]{0}, u32[]{:S(2)}) copy-start(%x)
  %done = f32[4]{0} copy-done(%start)
  %room = f32[4]{0} custom-call(), custom_call_target="AllocateBuffer"
  ROOT %v = (s32[]{:T(128)}, f32[4]{0}) while(%x), condition=%outer_end, \
body=%outer
}
"""


def test_operations_in_loops_count_as_often_as_they_run():
  found = hlo.count(TEXT, hlo.cycles)
  assert found.loops == (5, 15)
  assert found.operations == 1 + 5 * 1 + 15 * (1 + 2)
  assert found.estimate == 0


def test_estimates_in_loops_count_as_often_as_they_run():
  costs = [
    {"name": "", "exec_time_us": 7.0},
    {"name": "sol", "exec_time_us": 9.0},
    {"name": "indexing-cost-model", "exec_time_us": 2.0},
  ]
  for cost, estimate, each in (
    ('"estimated_cycles":"11"', hlo.cycles, 11),
    (f'"reification_cost":{json.dumps(costs)}', hlo.microseconds, 2),
    (f'"reification_cost":{json.dumps(costs[:2])}', hlo.microseconds, 7),
    ('"reification_cost":[]', hlo.microseconds, 0),
  ):
    text = TEXT.replace("COST", cost)
    assert hlo.count(text, estimate).estimate == 15 * each


def test_a_loop_of_unknown_length_is_no_guess():
  text = TEXT.replace("constant(5)", "parameter(1)")
  with pytest.raises(ValueError, match="a loop of unknown length: ROOT %v"):
    hlo.count(text, hlo.cycles)


def test_a_compiled_program_is_read():
  def run(x):
    return jax.lax.fori_loop(0, 6, lambda _, x: jnp.sin(x @ x), x)

  x = jax.ShapeDtypeStruct((8, 8), jnp.float32)
  text = jax.jit(run).lower(x).compile().as_text()
  found = hlo.count(text, hlo.microseconds)
  assert found.loops == (6,)
  assert 12 <= found.operations <= 60


def test_every_public_form_and_layer_is_compiled():
  parts = {"DNCCell", "LSAMCell", "TransformerBlock"}
  public = {
    name
    for name, value in vars(nam_jax).items()
    if (inspect.isclass(value) and issubclass(value, nn.Module))
    or "memory_" in name
    or name == "memory"
    or "attention" in name
  }
  adapters = {"linear_attention_fn", "nam_attention_fn"}
  compiled = {re.match(r"\w+", name)[0] for name in programs.PROGRAMS}
  assert compiled == public - parts - adapters


def test_a_program_is_a_function_and_its_gradient():
  program = programs.PROGRAMS["LSTM"](jax.devices())
  outputs, state = jax.eval_shape(program.task("forward"), *program.arguments)
  assert outputs.shape == programs.MACHINE
  loss, gradients = jax.eval_shape(program.task("gradient"), *program.arguments)
  assert loss.shape == ()
  shapes = [[a.shape for a in jax.tree.leaves(tree)] for tree in gradients]
  assert shapes == [
    [a.shape for a in jax.tree.leaves(tree)] for tree in program.arguments
  ]
  assert state is not None


def compiled_for(target, chosen):
  """Replaces the processes that compile."""
  if target == "v5e":
    raise OSError("RuntimeError: no libtpu")
  for name in chosen:
    for task in programs.TASKS:
      yield accelerators.Figures(target, name, task, (3, 5, 3), 1234, 0.25)


def test_a_missing_target_is_one_line_and_the_others_go_on(monkeypatch, capsys):
  monkeypatch.setattr(accelerators, "compile_for", compiled_for)
  assert accelerators.main(["--only=LSTMA"]) == 1
  first, header, *rows = capsys.readouterr().out.splitlines()
  assert first == "v5e is not available here: RuntimeError: no libtpu"
  assert header.split()[:3] == ["target", "program", "task"]
  assert [" ".join(row.split()) for row in rows] == [
    f"{target} LSTMAttention {task} 2 x 3 + 5 1,234 0.2 -"
    for target in ("A100", "H100")
    for task in programs.TASKS
  ]


def test_a_crash_costs_one_program(monkeypatch):
  """The processes are replaced; the first one compiles once, then crashes."""
  code = """
import json, os, sys
for program, task in json.loads(sys.argv[1]):
  if (program, task) == ("b", "forward"):
    for line in ("W1118 warns", "F1118 is fatal", "a trace"):
      print(line, file=sys.stderr, flush=True)
    os.abort()
  print(json.dumps({"program": program, "task": task}), flush=True)
"""

  def start(target, jobs, log):
    return subprocess.Popen(
      [sys.executable, "-c", code, json.dumps(jobs)],
      stdout=subprocess.PIPE,
      stderr=log,
      text=True,
    )

  monkeypatch.setattr(accelerators, "_start", start)
  found = list(accelerators.compile_for("H100", ["a", "b"]))
  crash = "the compiler crashed: F1118 is fatal"
  assert [f[1:3] for f in found] == list(
    itertools.product(["a", "b"], programs.TASKS)
  )
  assert [f.error for f in found] == [None, None, crash, None]


def test_a_process_that_fails_says_why():
  # Without jax[cuda12] there is no such target, and with it no such program.
  with pytest.raises(OSError, match=r"^\w*Error: "):
    list(accelerators.compile_for("H100", ["unknown"]))


@pytest.mark.parametrize(
  ("option", "complaint"),
  [
    ("--targets=H100,H10", "unknown 'H10'; choose from A100, H100, v5e"),
    ("--only=nan", "no program contains 'nan'; there are memory, memory as"),
  ],
)
def test_a_wrong_option_is_one_line(option, complaint, capsys):
  with pytest.raises(SystemExit):
    accelerators.main([option])
  (line,) = capsys.readouterr().err.splitlines()
  assert complaint in line


def test_the_table_is_written_in_its_place(tmp_path):
  results = project_tree.ROOT / "docs" / "results.json"
  file = tmp_path / "results.json"
  file.write_text(results.read_text())
  tables = json.loads(file.read_text())
  record.write_table(file, "speed", tables["speed"])
  assert file.read_text() == results.read_text()
  found = [
    f for target in ("A100", "H100") for f in compiled_for(target, ["memory"])
  ]
  found += [f._replace(target="v5e", error="x") for f in found[:2]]
  record.write_table(file, "mine", accelerators.as_table(found))
  written = json.loads(file.read_text())
  assert [*written] == [*tables, "mine"]
  (row,) = written["mine"]["rows"]
  assert [*row] == written["mine"]["columns"]
  assert row["trips of loops"] == "2 x 3 + 5 / 2 x 3 + 5"
  assert row["operations, v5e"] == "- / -"


def test_targets_tell_their_processes_what_they_are():
  found = targets.environment("v5e", {"HOME": "here"})
  assert found["HOME"] == "here"
  assert found["JAX_PLATFORMS"] == "cpu"
  assert found["TPU_ACCELERATOR_TYPE"] == "v5litepod-4"
  text = targets.TARGETS["H100"].topology["target_config"]
  assert text.count("{") == text.count("}")
  assert "core_count: 132 " in text
