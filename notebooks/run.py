"""Runs notebooks and keeps what they show: python -m notebooks.run SCRIPT ...

A notebook is two files: a script of cells, which is the one to edit, and an
.ipynb with the same cells and their outputs, which is written here. Nothing in
it tells when or where it ran, so that another run changes nothing; --check
looks.
"""

import os
import pathlib
import sys
from collections.abc import Sequence

import jupytext
import nbclient
import nbformat

from command_line import tool

FOLDER = pathlib.Path(__file__).resolve().parent
SCRIPTS = sorted(FOLDER.glob("[0-9]_*.py"))

_METADATA = {
  "jupytext": {"formats": "ipynb,py:percent"},
  "kernelspec": {
    "display_name": "Python 3",
    "language": "python",
    "name": "python3",
  },
  "language_info": {"name": "python"},
}


def read(script: pathlib.Path) -> nbformat.NotebookNode:
  """The notebook of a script, without outputs."""
  notebook = jupytext.read(script)
  for number, cell in enumerate(notebook.cells):
    cell.id = f"cell-{number}"
    cell.metadata.pop("lines_to_next_cell", None)
  return notebook


def execute(notebook: nbformat.NotebookNode) -> None:
  """Fills in the outputs, as if opened in Jupyter from the notebooks' folder.

  The first cell that fails raises `nbclient.exceptions.CellExecutionError`.
  """
  client = nbclient.NotebookClient(
    notebook,
    kernel_name="python3",
    timeout=None,
    startup_timeout=600,
    record_timing=False,
    coalesce_streams=True,
    resources={"metadata": {"path": str(FOLDER)}},
    extra_arguments=["--log-level=ERROR"],
  )
  # XLA's alarm about a slow compilation is no result.
  client.execute(env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"})
  notebook.metadata = nbformat.from_dict(_METADATA)


def differences(
  script: pathlib.Path, notebook: nbformat.NotebookNode
) -> list[str]:
  """The cells with another output than in the notebook beside the script."""
  kept = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
  return [
    f"{script.stem} {cell.id}"
    for cell, old in zip(notebook.cells, kept.cells, strict=False)
    if cell.get("outputs") != old.get("outputs")
  ]


def main(argv: Sequence[str]) -> None:
  """Executes what argv names; a cell that fails ends with status 1."""
  parser = tool.make_parser(__doc__, "python -m notebooks.run")
  parser.add_argument(
    "scripts", nargs="*", type=pathlib.Path, default=SCRIPTS, metavar="SCRIPT"
  )
  parser.add_argument(
    "--check",
    action="store_true",
    help="write nothing; fail if an output is not the one that was kept",
  )
  options, changed = parser.parse_args(argv), []
  for script in options.scripts:
    if script.resolve() not in SCRIPTS:
      parser.error(f"{script} is not one of notebooks/[0-9]_*.py")
    print(f"{script.stem} runs", flush=True)
    notebook = read(script)
    try:
      execute(notebook)
    except (
      nbclient.exceptions.CellExecutionError,
      nbclient.exceptions.DeadKernelError,
    ) as error:
      parser.exit(1, f"{script.name}: {error}\n")
    if options.check:
      changed += differences(script, notebook)
    else:
      nbformat.write(notebook, script.with_suffix(".ipynb"))
  if changed:
    parser.exit(1, f"outputs changed: {', '.join(changed)}\n")


if __name__ == "__main__":
  main(sys.argv[1:])
