"""The command that trains parity twice: its runs, its table, its picture."""

import json

import pytest

from algorithmic import parity
from docs import tables as docs_tables


@pytest.fixture
def commands(monkeypatch):
  """The arguments of runs, which are not made; up to 1 guesses."""
  made = []

  def fake_main(argv):
    made.append(argv)
    (workdir,) = [w.partition("=")[2] for w in argv if "--workdir" in w]
    guesses = "--config.model_kwargs.max_erase=1" in argv
    accuracy = {"sequence_accuracy": 0.5 if guesses else 1.0}
    results = {
      "splits": {"id": accuracy, "od": accuracy},
      "by_length": {str(n): accuracy for n in range(3, 257)},
      "wall_seconds": 61.4,
      "machine": {"device": "cpu", "cores": 2},
      "versions": {"jax": "0.10.2"},
    }
    folder = parity.Path(workdir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results))

  monkeypatch.setattr(parity.run, "main", fake_main)
  return made


def test_both_limits_are_trained_drawn_and_recorded(tmp_path, commands, capsys):
  table, picture = tmp_path / "tables.json", tmp_path / "new" / "parity.png"
  table.write_text("{}")
  folder = f"--folder={tmp_path / 'runs'}"
  parity.main([folder, "--steps=9", f"--out={picture}", f"--json={table}"])
  assert len(commands) == 2
  assert [argv[-1].rpartition("=")[2] for argv in commands] == ["1", "2"]
  assert all("--config.num_steps=9" in argv for argv in commands)
  assert picture.read_bytes().startswith(b"\x89PNG")
  assert "p_e up to 2: 100.0, 100.0" in capsys.readouterr().out
  tables = json.loads(table.read_text())
  text = docs_tables.as_markdown(tables, "parity")
  assert "| up to 1 | 50.0 | 50.0 | 9 | 61 s |" in text
  assert "| up to 2 | 100.0 | 100.0 | 9 | 61 s |" in text
  assert "cpu, 2 cores, JAX 0.10.2" in text
  for row in tables["parity"]["rows"]:
    assert all(docs_tables.provenance(tables["parity"], row).values())


def test_the_picture_has_a_line_for_each_limit():
  def results(accuracy):
    by = {str(n): {"sequence_accuracy": accuracy(n)} for n in range(3, 257)}
    return {"by_length": by}

  figure = parity.draw({1: results(lambda n: 0.5), 2: results(lambda n: n > 9)})
  first, second = figure.axes[0].get_lines()
  assert set(first.get_ydata()) == {50.0}
  # Lengths 3 to 11 are one point: two of nine are longer than 9.
  assert second.get_ydata()[0] == pytest.approx(100 * 2 / 9)
  assert set(second.get_ydata()[1:]) == {100.0}
  assert second.get_xdata()[0] == 5.5
