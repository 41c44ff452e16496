"""The notebooks run, show what they claim to, and mention no machine."""

import functools
import json
import re

import nbclient
import nbformat
import pytest

from notebooks import run
from tests import test_sources

# Instead of the cell tagged "parameters": seconds, and still every cell runs.
SHORT = {
  "1_reading_and_writing": """
WIDTHS, MOST_PAIRS, WRITES, UPDATES, SHOW_TIMES = (64,), 256, 100, 60, True
""",
  "2_memory_to_attention": "LENGTHS, ROUNDS, SHOW_TIMES = (2048,), 1, True",
  "3_turing_machine": """
STEPS, SWEEP, IS_FULL_RUN = 1, (), False
for name, split in data.SPLITS.items():
  data.SPLITS[name] = split._replace(size=64)
""",
  "4_one_example": """
STAGE1_STEPS, STAGE2_STEPS, EPISODES, IS_FULL_RUN = 4, 4, 20, False
""",
  "5_lra_in_ten_lines": """
STEPS, TESTS, SHOW_TIMES = 2, 64, True
ATTENTIONS = ("nam", "nam_erase")
""",
  "6_what_erasing_can_compute": """
STEPS, PAIRS, IS_FULL_RUN = 2, (2,), False
for protocol in data.PROTOCOLS.values():
  for name, split in protocol.splits.items():
    protocol.splits[name] = split._replace(size=64)
""",
}
MOST_BYTES = 600_000


def name_of(script):
  return script.stem


every_notebook = pytest.mark.parametrize("script", run.SCRIPTS, ids=name_of)


@functools.cache
def kept(script):
  """The notebook next to the script, with its outputs."""
  return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


def tags(cell):
  return tuple(cell.metadata.get("tags", ()))


def outputs(notebook):
  return [o for cell in notebook.cells for o in cell.get("outputs", ())]


def complaints(notebook):
  """What no reader should see: errors, warnings, machine paths."""
  found = [
    output
    for output in outputs(notebook)
    if output.output_type == "error" or output.get("name") == "stderr"
  ]
  return found + test_sources.foreign_strings(json.dumps(notebook))


@every_notebook
def test_notebook_runs(script):
  notebook = run.read(script)
  (parameters,) = [c for c in notebook.cells if tags(c) == ("parameters",)]
  parameters.source = SHORT.get(script.stem, parameters.source)
  run.execute(notebook)
  assert complaints(notebook) == []


@every_notebook
def test_script_and_notebook_have_the_same_cells(script):
  ours, theirs = (
    [(c.id, c.cell_type, c.source, tags(c)) for c in notebook.cells]
    for notebook in (run.read(script), kept(script))
  )
  assert ours == theirs, "run `make notebooks`"


@every_notebook
def test_kept_outputs_are_whole_clean_and_small(script):
  notebook = kept(script)
  assert complaints(notebook) == []
  assert any("image/png" in o.get("data", ()) for o in outputs(notebook))
  code = [cell for cell in notebook.cells if cell.cell_type == "code"]
  counts = [cell.execution_count for cell in code]
  assert counts == list(range(1, len(code) + 1))
  assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)
  assert notebook.metadata.language_info == {"name": "python"}
  assert script.with_suffix(".ipynb").stat().st_size < MOST_BYTES


def changing(notebook):
  """Printed numbers that differ from run to run: times, rounding errors."""
  texts = [
    output.get("text") or output.get("data", {}).get("text/plain", "")
    for output in outputs(notebook)
  ]
  return re.findall(
    r"[\d.]+ ?(?:[mu\u00b5n]?s|sec\w*|min\w*)\b|[\d.]+e-\d+", " ".join(texts)
  )


@every_notebook
def test_kept_outputs_do_not_change(script):
  assert changing(kept(script)) == []


@pytest.mark.parametrize("text", ["write 71.7 ms", "3 s\n", "error 9.8e-07"])
def test_an_output_that_changes_is_found(tmp_path, text):
  source = f"print({text!r})"
  cell = nbformat.v4.new_code_cell(source, id="a")
  cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
  notebook = nbformat.v4.new_notebook(cells=[cell])
  assert len(changing(notebook)) == 1
  script = tmp_path / "9_x.py"
  nbformat.write(notebook, script.with_suffix(".ipynb"))
  assert run.differences(script, notebook) == []
  cell.outputs[0].text = "other"
  assert run.differences(script, notebook) == ["9_x a"]


@every_notebook
def test_notebook_begins_with_what_one_will_see(script):
  first = run.read(script).cells[0]
  assert first.cell_type == "markdown"
  assert re.match(r"# .*\n\n.*You will ", first.source, re.DOTALL)


def test_notebooks_link_to_each_other():
  texts = [script.read_text() for script in run.SCRIPTS]
  links = [
    link for text in texts for link in re.findall(r"\]\((.+\.ipynb)\)", text)
  ]
  names = [script.with_suffix(".ipynb").name for script in run.SCRIPTS]
  assert sorted(set(links)) == names


def test_a_cell_that_fails_or_warns_is_found():
  failing, warning = (
    nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    for source in ("1 / 0", "import warnings; warnings.warn('old')")
  )
  with pytest.raises(nbclient.exceptions.CellExecutionError, match="division"):
    run.execute(failing)
  run.execute(warning)
  assert complaints(warning)[0].name == "stderr"
