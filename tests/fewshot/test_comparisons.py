"""Tables from several runs: what runs, what is printed and recorded."""

import json

import pytest

from docs import tables as docs_tables
from fewshot import comparisons


def finish(folder, name, results):
  (folder / name).mkdir()
  (folder / name / "results.json").write_text(json.dumps(results))


def claim(cosine, nam, ci95=0.003):
  heads = {
    label: {"accuracy": {"both": {"mean": both, "ci95": 0.002}}}
    for label, both in (("attention", cosine), ("nam_attention", nam))
  }
  gain = {"both": {"mean": nam - cosine, "ci95": ci95}}
  heads["nam_attention"]["difference"] = gain
  machine = {"device": "cpu", "cores": 1}
  return {
    "shots": {"5": heads},
    "machine": machine,
    "versions": {"jax": "0.10.2"},
  }


def test_the_claim_is_the_mean_of_paired_differences(tmp_path, capsys):
  finish(tmp_path, "glyphs-claim-cpu-0", claim(0.90, 0.91))
  finish(tmp_path, "glyphs-claim-cpu-1", claim(0.92, 0.91, 0.004))
  file = tmp_path / "results.json"
  file.write_text("{}")
  options = (f"--folder={tmp_path}", "--seeds=0,1,2", "--show")
  arguments = [*options, "--experiments=claim", f"--json={file}"]
  assert comparisons.main(arguments) == 0
  line = capsys.readouterr().out.splitlines()[2]
  assert line.split()[:3] == ["glyphs", "91.00", "91.00"]
  assert "+0.00 ±0.25" in line or "-0.00 ±0.25" in line
  assert line.endswith("+1.00, -1.00")
  table = json.loads(file.read_text())["fewshot_claim"]
  assert table["seeds"] == "0, 1, 2"
  assert table["machine"] == "cpu, 1 core, JAX 0.10.2"
  assert "--experiments=claim --seeds=0,1,2" in table["command"]
  assert all(docs_tables.provenance(table, table["rows"][0]).values())
  assert "| glyphs | 91.00 |" in docs_tables.as_markdown({"x": table}, "x")


def test_sessions_stand_beside_published_rows(tmp_path, capsys):
  one = {"mean": 0.5, "ci95": 0.01}
  head = {
    **{name: [0.6, 0.5, 0.4] for name in ("all", "base", "new")},
    **dict.fromkeys(("average", "last", "forgetting"), one),
    "difference": {},
  }
  found = {
    "num_sessions": 2,
    "num_way": 5,
    "num_shot": 5,
    "num_rounds": 3,
    "heads": {"cosine": head, "nam": {**head, "difference": {"average": one}}},
  }
  results = {
    "data": "mini-imagenet",
    "backbone": "conv32",
    "stage1": {"seconds": 120.0},
    "sessions": found,
  }
  finish(tmp_path, "mini_imagenet-sessions-cpu-0", results)
  comparisons.main([f"--folder={tmp_path}", "--show", "--markdown"])
  printed = capsys.readouterr().out
  assert "fewshot_sessions_mini_imagenet" in printed
  assert "+50.00 ±1.00" in printed
  assert "TOPIC, ResNet" in printed


def test_every_run_has_its_preset(tmp_path, monkeypatch):
  made = []
  monkeypatch.setattr(
    comparisons.tables, "complete", lambda _, runs, __: made.extend(runs) or 1
  )
  arguments = [f"--folder={tmp_path}", "--data_dir=there"]
  assert comparisons.main(arguments) == 1
  with pytest.raises(SystemExit):
    comparisons.main([*arguments, "--show"])
  configs = [run.arguments[0].rpartition("/")[2] for run in made]
  sessions = "cosine,cosine_tuned,nam,nam_projection,sessions,cpu"
  assert configs == [
    f"mini_imagenet.py:{sessions}",
    f"omniglot.py:{sessions}",
    *(
      f"{name}.py:attention,nam_attention,claim,cpu"
      for name in ("mini_imagenet", "omniglot", "glyphs")
    ),
  ]
  assert "--data_dir=there" in made[0].arguments
  assert "--data_dir=there" not in made[-1].arguments
