"""The script from its arguments to its files, with a tiny model."""

import json
import runpy
import shutil
import sys

import jax.numpy as jnp
import pytest
from flax import linen as nn

import nam_jax
from algorithmic import config, data, pictures
from algorithmic import run as run_lib
from nam_jax import training
from nam_jax.models import registry
from tests import compiled_once, project_tree

# ml_collections loads config files in a way that Python 3.11 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:the load_module")

TINY = (
  "--config.num_steps=2",
  "--config.batch_size=4",
  "--config.eval_every=1",
  "--config.warmup_steps=0",
  "--config.eval_batch_size=8",
  "--config.tensorboard=False",
)
TINY_MODEL = (
  "--config.model_kwargs.emb_dim=8",
  "--config.model_kwargs.num_heads=2",
)
CONFIGS = project_tree.ROOT / "configs" / "algorithmic"


class Guess(nn.Module):
  """A user's core: it looks at each token by itself."""

  @nn.compact
  def __call__(self, x, *, mask, train):
    return jnp.where(mask[..., None], x, 0.0)


@pytest.fixture(scope="module", autouse=True)
def small_data(tmp_path_factory):
  """24 samples in each split, and the user's model."""
  programs = compiled_once.within(tmp_path_factory.mktemp("programs"))
  with programs, pytest.MonkeyPatch.context() as patch:
    for protocol in data.PROTOCOLS.values():
      for name, split in protocol.splits.items():
        patch.setitem(protocol.splits, name, split._replace(size=24))
    patch.setitem(registry.CORES, "guess", Guess)
    yield


def run(*arguments):
  run_lib.main(["train_algorithmic.py", *arguments])


def guess(workdir, *arguments):
  config = f"--config={CONFIGS}/palin.py:guess"
  run(config, *TINY, f"--workdir={workdir}", *arguments)


def read(workdir):
  return json.loads((workdir / "results.json").read_text())


def files(folder):
  return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def machine_run(tmp_path_factory):
  """The folder of a run with the default model."""
  workdir = tmp_path_factory.mktemp("runs") / "machine"
  run(*TINY, *TINY_MODEL, f"--workdir={workdir}")
  return workdir


@pytest.fixture(scope="module")
def guess_run(tmp_path_factory):
  """The folder of a run with the user's model."""
  workdir = tmp_path_factory.mktemp("runs") / "guess"
  guess(workdir)
  return workdir


def test_results_have_exactly_the_documented_keys(machine_run):
  results = read(machine_run)
  assert list(results) == [
    "task",
    "model",
    "protocol",
    "preset",
    "seed",
    "parameters",
    "epochs",
    "selected_epoch",
    "splits",
    "by_length",
    "wall_seconds",
    "machine",
    "fingerprint",
    "versions",
  ]
  keys = ("task", "model", "protocol", "preset", "seed")
  named = [results[key] for key in keys]
  assert named == ["palin", "nam_tm", "paper", "cpu", 0]
  assert results["parameters"] > 1000
  # 24 samples in batches of 4 make an epoch of 6 steps.
  assert results["selected_epoch"] in (1 / 6, 2 / 6)
  assert results["epochs"] == 2 / 6
  assert list(results["splits"]) == ["id", "od_easy", "od_hard"]
  for accuracies in results["splits"].values():
    assert list(accuracies) == ["sequence_accuracy", "token_accuracy"]
    assert all(0 <= value <= 1 for value in accuracies.values())
  assert [int(d) for d in results["by_length"]] == list(range(5, 17))
  assert results["wall_seconds"] > 0
  assert results["versions"]["jax"]


def test_pictures_stand_beside_the_results(machine_run, guess_run):
  pictures = {path.name for path in machine_run.glob("*.png")}
  assert pictures == {
    "accuracy_by_length.png",
    "heads_6_digits.png",
    "heads_14_digits.png",
  }
  assert {p.name for p in guess_run.glob("*.png")} == {"accuracy_by_length.png"}


def test_test_only_gives_the_same_numbers_and_sweeps(
  machine_run, capsys, monkeypatch
):
  before = read(machine_run)
  (machine_run / "results.json").unlink()
  checkpoints = files(machine_run / "checkpoints")
  monkeypatch.setattr(pictures, "save", lambda *_: None)
  run(
    *(*TINY, *TINY_MODEL, f"--workdir={machine_run}"),
    *("--test_only", "--sweep=40"),
  )
  after = read(machine_run)
  assert list(after["by_length"].pop("40")) == list(before["by_length"]["16"])
  assert after == before
  assert files(machine_run / "checkpoints") == checkpoints
  output = capsys.readouterr().out
  assert "od_hard" in output
  assert "40 digits" in output
  assert f"results.json and pictures are in {machine_run}" in output


def test_the_same_command_continues_a_run(guess_run, capsys):
  before = read(guess_run)
  guess(guess_run)
  assert read(guess_run) == before
  assert "continuing the run" in capsys.readouterr().out


def test_a_run_of_an_older_version_is_tested_as_new_ones_are(
  guess_run, tmp_path
):
  workdir = tmp_path / "run"
  shutil.copytree(guess_run, workdir)
  file = workdir / "config.json"
  fields = json.loads(file.read_text())
  for name in ("protocol", "fingerprint"):
    del fields[name]
  fields["sweep_kwargs"] = {"tape_length": 256}
  file.write_text(json.dumps(fields))
  guess(workdir, "--test_only")
  fields["protocol"] = "paper"
  file.write_text(json.dumps(fields))
  with pytest.raises(training.UserError, match="sweep_kwargs is"):
    guess(workdir, "--test_only")


def test_another_protocol_has_other_sets_and_new_samples_every_epoch(
  tmp_path, monkeypatch
):
  drawn = []
  draw = data.training_set

  def recorded(task, seed, width, protocol, epoch, shift):
    drawn.append(epoch)
    return draw(task, seed, width, protocol, epoch, shift)

  monkeypatch.setattr(data, "training_set", recorded)
  run(
    f"--config={CONFIGS}/state_tracking.py:Z5,guess",
    *TINY,
    "--config.num_steps=13",  # more than two epochs of six updates
    "--config.eval_every=13",
    f"--workdir={tmp_path}/z5",
    "--sweep=300",
  )
  results = read(tmp_path / "z5")
  assert results["protocol"] == "state_tracking"
  assert list(results["splits"]) == ["id", "od"]
  assert "300" in results["by_length"]
  assert sorted(set(drawn)) == [0, 1, 2]
  rows = training.read_metrics(tmp_path / "z5")
  evaluation = rows[-1]
  assert evaluation["kind"] == "eval"
  assert "id_token_accuracy" in evaluation
  assert "od_token_accuracy" not in evaluation


def test_other_samples_are_refused(guess_run, monkeypatch):
  """As after a change of the generator."""
  monkeypatch.setattr(data, "_VALIDATION_SEED", 1)
  for arguments in ((), ("--test_only",)):
    with pytest.raises(training.UserError, match="data: id has 24 other rows"):
      guess(guess_run, *arguments)


def test_missing_matplotlib_costs_the_pictures_alone(
  guess_run, tmp_path, monkeypatch, capsys
):
  monkeypatch.setitem(sys.modules, "nam_jax.viz", None)
  monkeypatch.delattr(nam_jax, "viz", raising=False)
  guess(tmp_path / "plain", "--config.seed=1")
  assert read(tmp_path / "plain")["model"] == "guess"
  assert not list((tmp_path / "plain").glob("*.png"))
  assert "matplotlib" in capsys.readouterr().out
  # Another seed makes another run.
  losses = [
    training.read_metrics(folder)[-2]["loss"]
    for folder in (guess_run, tmp_path / "plain")
  ]
  assert losses[0] != losses[1]


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ([f"--config={CONFIGS}/task.py:dykc"], "task 'dykc'; did you mean 'dyck'"),
    ([f"--config={CONFIGS}/palin.py:dcn"], "model 'dcn'; did you mean 'dnc'"),
    ([f"--config={CONFIGS}/palin.py:dnc,big"], r"^unknown preset 'big'\. "),
    ([f"--config={CONFIGS}/nothing.py"], "nothing.py: no such file; there are"),
    (["--config.lerning_rate=1"], "'lerning_rate'; did you mean 'learning_rat"),
    (["--config.learning_rate=fast"], "learning_rate=fast"),
    (
      ["--config.model_kwargs.tape_lenght=3"],
      "'tape_lenght'; did you mean 'tape_length'",
    ),
    (["--config.model_kwargs.num_heads=5"], "num_heads=5 does not divide"),
    (["--config.task_kwargs.count='x'"], "unknown field of task 'palin'"),
    (["--config.curriculum_start=11"], "start 11, end 10"),
    (["--config.protocol=chomksy"], "'chomksy'; did you mean 'chomsky'"),
    (
      [
        f"--config={CONFIGS}/chomsky.py:parity,transformer",
        "--config.model_kwargs.max_len=99",
      ],
      "508 tokens is longer than max_len=99",
    ),
    (["--config.num_steps=0"], "num_steps=0 must be at least 1"),
    (["--sweep=20,far"], "^--sweep=20,far is no list of lengths; write"),
    (["--sweep=20,-3"], "^--sweep=20,-3 is no list of lengths; write"),
    (["--config.sweep_kwargs.tap_length=9"], "did you mean 'tape_length'"),
    (["--tset_only"], "tset_only"),
    (["palin"], "unknown argument 'palin'"),
    (["--test_only"], "holds no run"),
  ],
)
def test_mistake_is_explained_before_anything_is_written(
  arguments, message, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(training.UserError, match=message) as error:
    run(*arguments)
  assert "\n" not in str(error.value)
  assert list(tmp_path.iterdir()) == []


def test_folder_of_another_config_is_left_alone(guess_run):
  before = files(guess_run)
  with pytest.raises(training.UserError, match="seed is 0 there and 7 here"):
    guess(guess_run, "--config.seed=7")
  assert files(guess_run) == before


def test_unwritable_folder_is_named(tmp_path):
  (tmp_path / "file").write_text("mine")
  with pytest.raises(training.UserError, match="cannot write to workdir"):
    guess(tmp_path / "file" / "run")
  assert (tmp_path / "file").read_text() == "mine"


def test_help_lists_flags_and_names(capsys):
  with pytest.raises(SystemExit) as stop:
    run("--help")
  assert not stop.value.code
  text = capsys.readouterr().out
  for flag in ("--config", "--workdir", "test_only", "--sweep"):
    assert flag in text
  for names in config.NAMES.values():
    assert all(name in text for name in names)


def test_script_prints_one_line_and_exits_with_status_2(monkeypatch, capsys):
  script = project_tree.ROOT / "train_algorithmic.py"
  monkeypatch.setattr(sys, "argv", [str(script), "--config.seeds=3"])
  with pytest.raises(SystemExit) as stop:
    runpy.run_path(str(script), run_name="__main__")
  assert stop.value.code == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith("error: unknown config key 'seeds'; did you mean")
