"""The script from its arguments to its files, on tiny data and models."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from lra_tasks import config as config_lib
from lra_tasks import effort
from lra_tasks import run as run_lib
from nam_jax import training
from tests import compiled_once, project_tree
from tests.data_files import writers

# ml_collections loads config files in a way that Python 3.11 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:the load_module")

CONFIGS = project_tree.ROOT / "configs" / "lra"
TINY = (
  "--config.num_steps=3",
  "--config.batch_size=4",
  "--config.eval_every=2",
  "--config.log_every=1",
  "--config.warmup_steps=0",
)
TINY_MODEL = (
  "--config.model_kwargs.emb_dim=8",
  "--config.model_kwargs.qkv_dim=8",
  "--config.model_kwargs.mlp_dim=8",
  "--config.model_kwargs.num_layers=1",
  "--config.model_kwargs.num_heads=2",
)
SIZES = {
  "emb_dim": 8,
  "num_heads": 2,
  "num_layers": 1,
  "qkv_dim": 8,
  "mlp_dim": 8,
}
BLOCKS = (
  "--config.model_kwargs.norm=batch",
  "--config.model_kwargs.gated_mlp=True",
  "--config.model_kwargs.merge=(2,)",
)
TINY_LISTOPS = (
  "--config.task_kwargs.num_train=32",
  "--config.task_kwargs.num_validation=8",
  "--config.task_kwargs.num_test=9",
  "--config.task_kwargs.max_length=32",
)

# A config in the benchmark's form, with a base next to it.
BASE = """
import ml_collections

def get_config():
  config = ml_collections.ConfigDict()
  config.batch_size = 32
  config.eval_frequency = 2
  config.num_train_steps = 2
  config.num_eval_steps = -1
  config.learning_rate = 0.05
  config.weight_decay = 0.1
  config.prompt = ""
  config.save_checkpoints = True
  config.restore_checkpoints = True
  config.checkpoint_freq = 10000
  config.random_seed = 0
  config.factors = "constant * linear_warmup * rsqrt_decay"
  config.warmup = 10
  config.classifier_pool = "CLS"
  config.max_length = 16
  config.emb_dim = config.qkv_dim = config.mlp_dim = 8
  config.num_heads = 2
  config.num_layers = 1
  return config
"""
MODEL = """
from lra_benchmarks.text_classification.configs import base_tc_config

def get_config():
  config = base_tc_config.get_config()
  config.model_type = "local"
  config.model = {"block_size": 4}
  return config
"""


def run(*arguments):
  run_lib.main(["train_lra.py", *arguments])


def read(folder):
  return json.loads((folder / "results.json").read_text())


@pytest.fixture(scope="module", autouse=True)
def programs(tmp_path_factory):
  with compiled_once.within(tmp_path_factory.mktemp("programs")):
    yield


@pytest.fixture(scope="module")
def listops(tmp_path_factory):
  """The arguments of a run that generates its data, after it has run."""
  folder = tmp_path_factory.mktemp("listops")
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    arguments = (
      f"--config={CONFIGS}/listops.py:nam_erase,plain",
      f"--model_dir={folder / 'run'}",
      *TINY,
      *TINY_MODEL,
      *BLOCKS,
      *TINY_LISTOPS,
    )
    run(*arguments)
    yield folder / "run", arguments


@pytest.fixture
def imdb(tmp_path):
  """A folder with a tiny official archive."""
  writers.write_archive(
    tmp_path / "data" / "aclImdb_v1.tar.gz", writers.imdb_contents()
  )
  return tmp_path / "data"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
  """A config file of the benchmark in its checkout."""
  monkeypatch.setattr(sys, "path", list(sys.path))
  folder = tmp_path / "long-range-arena" / "lra_benchmarks"
  configs = folder / "text_classification" / "configs"
  writers.write(folder / "__init__.py", "")
  writers.write(configs / "base_tc_config.py", BASE)
  return writers.write(configs / "local_base.py", MODEL)


def test_results_have_exactly_the_documented_keys(listops):
  results = read(listops[0])
  assert list(results) == [
    "accuracy",
    "loss",
    "perplexity",
    "task",
    "attention",
    "compat",
    "seed",
    "parameters",
    "last",
    "best",
    "validation_accuracy",
    "validation_is_test",
    "steps_per_second",
    "input_wait",
    "wall_seconds",
    "machine",
    "peak_memory_bytes",
    "fingerprint",
    "versions",
  ]
  assert (results["task"], results["attention"]) == ("listops", "nam_erase")
  for name in ("last", "best"):
    assert list(results[name]) == ["step", "accuracy", "loss", "perplexity"]
  assert results["last"]["step"] == 3
  assert results["best"]["step"] in (2, 3)
  assert results["accuracy"] == results["last"]["accuracy"]
  assert results["accuracy"] * 9 == pytest.approx(
    round(results["accuracy"] * 9)
  )
  assert results["steps_per_second"] > 0
  assert 0 <= results["input_wait"] <= 1
  assert not results["validation_is_test"]
  assert results["machine"]["cores"] >= 1
  # Python and JAX alone need more than 64 MiB.
  assert 2**26 < results["peak_memory_bytes"] < 2**40


def test_the_best_state_is_the_one_that_validates_best(listops):
  results = read(listops[0])
  lines = (listops[0] / "metrics.jsonl").read_text().splitlines()
  rows = [row for row in map(json.loads, lines) if row["kind"] == "eval"]
  accuracy = {row["step"]: row["accuracy"] for row in rows}
  assert sorted(accuracy) == [2, 3]
  assert results["validation_accuracy"] == max(accuracy.values())
  assert accuracy[results["best"]["step"]] == results["validation_accuracy"]


def test_time_only_writes_a_pace_and_nothing_else(listops, tmp_path):
  folder = tmp_path / "pace"
  more = ("--time_only=0.01", f"--workdir={folder}")
  run(*listops[1], *more)
  assert [path.name for path in folder.iterdir()] == ["pace.json"]
  pace = effort.Pace(**json.loads((folder / "pace.json").read_text()))
  assert 0 < pace.step_seconds < 5
  assert 0 < pace.evaluation_seconds < 5


def test_tensorboard_has_the_tags_of_the_benchmark(listops):
  (events,) = (listops[0] / "summary").iterdir()
  content = events.read_bytes()
  for tag in (
    b"train_loss",
    b"train_accuracy",
    b"train_learning_rate",
    b"train_perplexity",
    b"steps_per_second",
    b"eval_loss",
    b"eval_accuracy",
    b"eval_perplexity",
  ):
    assert tag in content


def test_test_only_repeats_the_numbers_of_a_run_of_version_0_1(listops, capsys):
  folder, arguments = listops
  before = read(folder)
  (folder / "results.json").unlink()
  file = folder / "config.json"
  fields = json.loads(file.read_text())
  file.write_text(json.dumps(fields | {"task": "basic"}))
  run(*arguments, "--test_only", "--task_name=basic")
  assert read(folder) == before | {"peak_memory_bytes": None}
  assert "accuracy" in capsys.readouterr().out
  assert json.loads(file.read_text())["task"] == "basic"


def test_text_is_validated_on_reviews_held_out_unless_compat(imdb):
  for fields, validation, count in (
    ({}, "held_out", 2),
    ({"compat": True}, "test", 4),
    ({"task_kwargs": {"validation": "test"}}, "test", 4),
  ):
    config = config_lib.LRAConfig(task="text", model_kwargs=SIZES, **fields)
    experiment = run_lib.make_experiment(config, "", str(imdb))
    assert experiment.config.task_kwargs == {"validation": validation}
    assert len(experiment.task.train) == count
    is_test = experiment.task.validation is experiment.task.test
    assert is_test == (validation == "test")


def test_an_older_run_on_all_reviews_can_be_tested_but_not_continued(
  imdb, tmp_path
):
  config = config_lib.LRAConfig(
    task="text",
    task_kwargs={"max_length": 16},
    model_kwargs=SIZES,
    num_steps=1,
    batch_size=4,
  )
  settings = config.task_kwargs | {"validation": "test"}
  old = dataclasses.replace(config, task_kwargs=settings)
  trained = run_lib.make_experiment(old, str(tmp_path / "run"), str(imdb))
  before = run_lib.measure(trained, run_lib.train(trained))
  file = tmp_path / "run" / "config.json"
  fields = json.loads(file.read_text())
  del fields["task_kwargs"]["validation"], fields["trim"]
  file.write_text(json.dumps(fields))
  experiment = run_lib.make_experiment(config, str(tmp_path / "run"), str(imdb))
  assert len(experiment.task.train) == 2
  after = run_lib.measure(experiment, run_lib.load(experiment))
  assert after["last"] == before["last"]
  with pytest.raises(training.UserError, match="'validation': 'held_out'"):
    run_lib.train(experiment)


def test_other_data_under_the_same_name_are_refused(imdb, tmp_path):
  """Neither continued nor tested; one line says what differs."""
  config = config_lib.LRAConfig(
    task="text",
    task_kwargs={"max_length": 16, "validation": "test"},
    model_kwargs=SIZES,
    num_steps=1,
    batch_size=4,
  )
  workdir = str(tmp_path / "run")
  run_lib.train(run_lib.make_experiment(config, workdir, str(imdb)))
  data = json.loads((tmp_path / "run" / "config.json").read_text())[
    "fingerprint"
  ]
  assert [file["name"] for file in data["files"]] == ["aclImdb_v1.tar.gz"]
  rows = {name: split["rows"] for name, split in data["splits"].items()}
  assert rows == {"train": 4, "validation": 4, "test": 4}
  contents = writers.imdb_contents()
  name = next(name for name in contents if "/test/" in name)
  contents[name] += b" Not."
  writers.write_archive(tmp_path / "b" / "aclImdb_v1.tar.gz", contents)
  other = run_lib.make_experiment(config, workdir, str(tmp_path / "b"))
  message = "other data: validation has 4 other rows .*; test has 4 other rows"
  for call in (run_lib.train, run_lib.load):
    with pytest.raises(training.UserError, match=message) as error:
      call(other)
    assert "\n" not in str(error.value)


def test_the_same_seed_gives_the_same_numbers(listops, tmp_path):
  folder, arguments = listops
  run(*arguments, f"--workdir={tmp_path / 'again'}")
  before, after = read(folder), read(tmp_path / "again")
  for name in ("last", "best"):
    assert after[name] == before[name]


def test_a_config_of_the_benchmark_runs_unchanged(
  checkout, imdb, tmp_path, capsys
):
  data = (f"--config={checkout}", f"--data_dir={imdb}")
  run(*data, f"--model_dir={tmp_path / 'a'}", "--config.batch_size=2")
  results = read(tmp_path / "a")
  assert (results["task"], results["attention"]) == ("text", "local")
  notices = [
    line
    for line in capsys.readouterr().out.splitlines()
    if line.startswith("notice: ")
  ]
  assert notices == [
    "notice: these fields have no effect, as in the benchmark: prompt"
  ]
  config, notices, flags = config_lib.read(
    [
      *("", *data, "--model_dir=b", "--task_name=imdb_reviews"),
      *("--attention=nam", "--config.compat=True"),
    ],
    "",
  )
  assert (config.task, config.attention, config.compat) == ("text", "nam", True)
  assert "--attention drops {'block_size': 4}" in notices
  assert flags.workdir == "b"


def test_another_attention_runs_with_a_config_of_the_benchmark(
  checkout, imdb, tmp_path
):
  arguments = (
    f"--config={checkout}",
    f"--data_dir={imdb}",
    f"--model_dir={tmp_path / 'run'}",
    "--config.batch_size=2",
    "--config.num_heads=1",  # each of two directions gets one
    "--attention=nam_full",
  )
  run(*arguments)
  results = read(tmp_path / "run")
  assert (results["attention"], results["last"]["step"]) == ("nam_full", 2)
  (tmp_path / "run" / "results.json").unlink()
  run(*arguments, "--test_only")
  assert read(tmp_path / "run") == results | {"peak_memory_bytes": None}


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    (("--attention=nan",), "unknown attention 'nan'; did you mean 'nam'"),
    (("--task_name=imag",), "unknown task 'imag'; did you mean 'image'"),
    (("--config.batch=3",), "unknown config key 'batch'; did you mean"),
    (("--config.model_kwargs.num_heads=3",), "num_heads=3 does not divide"),
    (
      ("--config.model_kwargs.heads=3",),
      "did you mean 'model_kwargs.num_heads",
    ),
    (("--config.model_kwargs.max_len=3",), "key 'model_kwargs.max_len'"),
    (("--config.attention_kwargs.foo=3",), "'attention_kwargs.foo'. Known: "),
    (("--data_dir=nowhere",), "data_dir nowhere: no such folder"),
    (("--attention_kwargs=3",), "Unknown command line flag"),
    (("--time_only=long",), "--time_only=long is not a number of seconds"),
    (("stray",), "unknown argument 'stray'"),
  ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
  tmp_path, monkeypatch, arguments, message
):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  with pytest.raises(training.UserError, match=message) as error:
    run(
      f"--config={CONFIGS}/listops.py:nam,plain",
      f"--model_dir={tmp_path / 'run'}",
      *(() if arguments[0].startswith("--data_dir") else TINY_LISTOPS),
      *arguments,
    )
  assert "\n" not in str(error.value)
  assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
  ("file", "address"),
  [
    ("text", "aclImdb_v1.tar.gz"),
    ("image", "cifar-10-binary.tar.gz"),
    ("retrieval", "lra_release.gz"),
    ("pathfinder", "lra_release.gz"),
  ],
)
def test_without_data_the_user_learns_what_to_fetch(tmp_path, file, address):
  with pytest.raises(training.UserError, match=address):
    run(f"--config={CONFIGS}/{file}.py:nam", f"--workdir={tmp_path / 'run'}")
  assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
  ("flags", "task", "settings"),
  [
    (("--config=configs/lra/cifar10.py:nam,cpu",), "image", {}),
    (("--config=configs/lra/matching.py:nam,lra",), "retrieval", {}),
    (("--task_name=cifar10",), "image", {}),
    (("--task_name=pathfinder",), "pathfinder", {}),
    (("--task_name=pathfinder32_hard",), "pathfinder", {}),
    (
      ("--task_name=pathfinder64_easy",),
      "pathfinder",
      {"resolution": 64, "level": "easy"},
    ),
  ],
)
def test_names_of_the_benchmark_are_translated(flags, task, settings):
  config, _, _ = config_lib.read(["", *flags], "")
  assert config.task == task
  assert settings.items() <= config.task_kwargs.items()
  old = {"task": flags[0].partition("=")[2], "task_kwargs": {}}
  if flags[0].startswith("--task_name"):
    new = {"task": task, "task_kwargs": settings, "trim": 0}
    assert config.upgraded(old).items() >= new.items()


def test_help_lists_flags_and_names(capsys):
  with pytest.raises(SystemExit) as end:
    run("--help")
  assert end.value.code == 0
  text = capsys.readouterr().out
  for flag in ("--workdir", "--model_dir", "--data_dir", "--task_name"):
    assert flag in text
  for names in config_lib.NAMES.values():
    assert all(name in text for name in names)


def test_script_prints_one_line_and_exits_with_status_2(tmp_path):
  script = project_tree.ROOT / "train_lra.py"
  done = subprocess.run(
    [sys.executable, str(script), "--config.seeds=3"],
    capture_output=True,
    text=True,
    env=os.environ | {"JAX_PLATFORMS": "cpu"},
    cwd=tmp_path,
  )
  assert done.returncode == 2
  (line,) = done.stderr.splitlines()
  assert line.startswith("error: unknown config key 'seeds'; did you mean")
  assert list(tmp_path.iterdir()) == []


def test_a_config_for_another_task_is_the_one_complaint(checkout, capsys):
  with pytest.raises(training.UserError, match="config for the task text, not"):
    run(f"--config={checkout}", "--task_name=listops")
  with pytest.raises(training.UserError, match="unknown task 'tex'; did you"):
    run(f"--config={checkout}", "--task_name=tex")
  with pytest.raises(training.UserError, match="data_dir nowhere"):
    run(f"--config={checkout}", "--data_dir=nowhere")
  assert capsys.readouterr().out == ""


def test_settings_of_another_task_are_dropped_with_a_notice():
  config, notices, _ = config_lib.read(["", "--task_name=cifar10"], "")
  assert (config.task, config.task_kwargs) == ("image", {})
  (notice,) = notices
  assert notice.startswith("--task_name drops {'max_length': ")


def test_a_base_config_of_the_benchmark_is_refused(tmp_path):
  file = tmp_path / "base.py"
  file.write_text(
    "import ml_collections\n\ndef get_config():\n"
    "  return ml_collections.ConfigDict({'num_train_steps': 1})\n"
  )
  with pytest.raises(training.UserError, match="sets no task"):
    run(f"--config={file}")
