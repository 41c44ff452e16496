"""Every config file, for every model: it loads, fits, and makes a step.

Steps are traced at full size but not compiled; gradients are computed in
miniature, one for each kind of model.
"""

import importlib
import itertools

import jax
import numpy as np
import pytest

from algorithmic import config as config_lib
from algorithmic import data, paper, run
from algorithmic.tasks import registry as tasks
from configs.algorithmic import base, chomsky
from nam_jax import training
from nam_jax.models import registry
from tests import abstract_step, linen_tools, project_tree

FOLDER = project_tree.ROOT / "configs" / "algorithmic"
# Files of other protocols have tests of their own below.
OTHERS = ("chomsky", "recall", "state_tracking")
FILES = sorted(
  p.stem for p in FOLDER.glob("*.py") if p.stem not in ("base", *OTHERS)
)
MODELS = list(registry.CORES)
# Tasks change nothing for memories and Transformers, so one file is enough.
CASES = [*itertools.product(FILES, paper.ACCURACY)]
CASES += [("palin", model) for model in MODELS if model not in paper.ACCURACY]

SAMPLES = data.sweep_set(tasks.make_task("palin"), 10)
TINY = {
  "emb_dim": 8,
  "num_heads": 2,
  "mlp_dim": 8,
  "controller_features": 8,
  "num_steps": 2,
  "num_layers": 1,
  "max_len": 64,
  "readout_dim": 8,
  "state_features": 4,
}


def make(file, arg, **overrides):
  """The config of a file as the script sees it."""
  module = importlib.import_module(f"configs.algorithmic.{file}")
  config = module.get_config(f"copy,{arg}" if file == "task" else arg)
  config.update(overrides)
  return training.from_config_dict(config, run.AlgorithmicConfig)


def count(experiment):
  """The number of parameters; tasks differ only in it, so one makes a step."""
  config, task = experiment.config, experiment.task
  if task.name != "palin":
    params = jax.eval_shape(experiment.init_fn, jax.random.key(0))["params"]
    return training.parameter_count(params)
  batch = data.take(SAMPLES, np.arange(config.batch_size))._asdict()
  loss_fn = training.make_loss_fn(experiment.model)
  state = abstract_step.take(config, experiment.init_fn, loss_fn, batch)
  return training.parameter_count(state.params)


@pytest.mark.parametrize(("file", "model"), CASES)
def test_config_builds_a_model_of_similar_size(file, model):
  config = make(file, model)
  assert (config.model, config.preset) == (model, "cpu")
  assert file in (config.task, "task")
  training.make_optimizer(config)
  experiment = run.make_experiment(config, "")
  assert str(experiment.workdir) == f"runs/{config.task}-{model}"
  assert 100_000 < count(experiment) < 130_000


@pytest.mark.parametrize(
  "model", [*paper.PARAMETERS, "linear", "nam", "gated_deltanet2"]
)
def test_paper_preset_has_the_sizes_of_table_1(model):
  config = make("palin", f"{model},paper")
  experiment = run.make_experiment(config, "")
  assert str(experiment.workdir) == f"runs/palin-{model}-paper"
  assert config.num_steps * config.batch_size == 200 * 25_600
  # Models that the paper does not have are about as large.
  millions = paper.PARAMETERS.get(model, 30)
  assert count(experiment) == pytest.approx(1e6 * millions, rel=0.1)


# The script's own test trains a nam_tm; the memories differ in settings whose
# gradients tests/models/test_attentions.py computes.
@pytest.mark.parametrize(
  "model", ["lsam", "dnc", "ut", "lstm", "transformer", "linear", "nam"]
)
def test_shrunk_config_has_a_real_gradient(model):
  size = make("palin", model).model_kwargs
  tiny = {name: value for name, value in TINY.items() if name in size}
  experiment = run.make_experiment(make("palin", model, model_kwargs=tiny), "")
  batch = data.take(SAMPLES, np.arange(4))._asdict()
  params = linen_tools.random_params(
    experiment.model, batch["inputs"], batch["mask"]
  )["params"]
  loss_fn = training.make_loss_fn(experiment.model)

  def mean_loss(params, batch, key):
    (total, weight), _ = loss_fn(params, {}, batch, key)
    return total / weight

  loss, gradient = linen_tools.compiled(jax.value_and_grad(mean_loss))(
    params, batch, jax.random.key(0)
  )
  assert 1 < loss < 6
  assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
  for name, leaf in (("logits", "kernel"), ("embedding", "embedding")):
    assert np.abs(gradient[name][leaf]).max() > 1e-5


@pytest.mark.parametrize(
  ("file", "arg", "fields"),
  [
    *(
      ("chomsky", f"{task},{model}", {})
      for task, model in [
        ("bucket_sort", "nam_tm"),
        ("duplicate_string", "transformer"),
        ("parity", "dnc"),
      ]
    ),
    ("chomsky", "odds_first,nam", {"published": True}),
    ("state_tracking", "parity,nam_tm", {}),
    ("state_tracking", "S5,transformer", {"group": "S5", "every": True}),
    ("state_tracking", "bracket_arithmetic,kda", {"products": True}),
    ("recall", "linear", {"repeated": False}),
    ("recall", "gla,repeated", {"repeated": True}),
    ("recall", "lstm,repeated,paper", {"repeated": True}),
  ],
)
def test_configs_of_other_protocols_build(file, arg, fields):
  module = importlib.import_module(f"configs.algorithmic.{file}")
  config = module.get_config(arg)
  assert config.protocol == file
  config = training.from_config_dict(config, run.AlgorithmicConfig)
  assert config.task_kwargs == fields
  high = data.PROTOCOLS[file].splits["train"].high
  grows = {"chomsky": 8, "bracket_arithmetic": 3}
  start = grows.get(file, grows.get(config.task, high))
  assert config.curriculum_start == (start if config.preset == "cpu" else high)
  experiment = run.make_experiment(config, "")
  preset = "-paper" if config.preset == "paper" else ""
  name = f"{config.task}-{config.model}-{file}{preset}"
  assert str(experiment.workdir) == f"runs/{name}"
  batch_fn = run.make_batch_fn(config, experiment.task)
  knows_positions = config.model in ("transformer", "linear")
  is_cut = config.preset == "cpu" and not knows_positions
  assert (config.trim > 0) == is_cut
  first = config.num_steps // 2
  longest = max(
    batch_fn(step)["digits"].max() for step in range(first, first + 50)
  )
  assert 0.9 * high < longest <= high
  assert batch_fn(0)["digits"].max() <= config.curriculum_start


@pytest.mark.parametrize("file", ["chomsky", "state_tracking"])
def test_machines_of_long_sequences_keep_their_heads_sharp(file):
  config = make(file, "parity,nam_tm")
  assert config.model_kwargs["sharpen"] == 1.5
  assert config.test_kwargs["sharpen"] == config.sweep_kwargs["sharpen"] == 2.5


def test_the_chomsky_config_reads_tasks_as_their_published_code_does():
  assert len(chomsky.TASKS) == 15
  readings = [n for n in chomsky.TASKS if hasattr(tasks.TASKS[n], "published")]
  assert set(readings) == set(chomsky.PUBLISHED)
  for name in chomsky.TASKS:
    task = tasks.make_task(name, **chomsky.get_config(name).task_kwargs)
    given = task.sample(np.random.default_rng(0), np.full(64, 41))
    symbols = (given.inputs != 14) & (given.inputs != 10) & (given.inputs != 13)
    counts = (symbols & given.mask).sum(axis=1)
    # A sign between two numbers is a delimiter here.
    signs = name in ("binary_addition", "binary_multiplication")
    expected = 40 if signs or name == "missing_duplicate" else 41
    assert set(counts) == {expected}, name


def test_learned_positions_are_trained_in_every_column():
  experiment = run.make_experiment(make("fib", "transformer"), "")
  batch_fn = run.make_batch_fn(experiment.config, experiment.task)
  tokens = np.concatenate([batch_fn(step)["mask"] for step in range(20)])
  assert tokens.shape[1] == 57  # 16 digits: 3 * 16 + 5 tokens, 4 free ones
  assert tokens.any(axis=0).all()


def test_samples_are_not_cut_where_positions_are_learned():
  assert make("fib", "lsam,converged").trim == 8
  assert make("fib", "lsam").trim == make("fib", "ut,converged").trim == 0
  with pytest.raises(training.UserError, match=r"trim=8.*wide_training=False"):
    make("fib", "transformer", trim=8)
  with pytest.raises(training.UserError, match="trim=-1 must not be negative"):
    make("fib", "lsam", trim=-1)


def test_curriculum_grows_to_ten_digits():
  config = make("fib", "nam_tm", num_steps=300)
  experiment = run.make_experiment(config, "")
  batch_fn = run.make_batch_fn(config, experiment.task)
  longest = [batch_fn(step)["digits"].max() for step in (0, 100, 200, 299, 310)]
  assert longest == [2, 6, 10, 10, 10]
  config = make("palin", "nam_tm")
  batch_fn = run.make_batch_fn(config, experiment.task)
  assert batch_fn(0)["digits"].max() == 10


def test_a_slow_model_has_fewer_epochs_of_the_same_length():
  slow, other = make("fib", "ut"), make("fib", "lstm")
  assert (slow.num_steps, other.num_steps) == (4 * 400, 10 * 400)
  assert slow.eval_every == other.eval_every == 400
  assert make("palin", "ut").num_steps == 400


def test_preset_converged_waits_for_the_curriculum_and_then_for_a_rise():
  config = make("fib", "lsam,converged")
  assert config.num_steps == 60 * 400
  assert (config.patience, config.patience_from) == (8, 10 * 400)
  assert config.patience_metric == "id_token_accuracy"
  experiment = run.make_experiment(config, "")
  batch_fn = run.make_batch_fn(config, experiment.task)
  longest = [
    max(batch_fn(step)["digits"].max() for step in range(first, first + 50))
    for first in (0, 4000)
  ]
  assert longest == [2, 10]
  assert make("palin", "lsam,converged").patience_from == 0


def test_runs_of_other_protocols_end_when_they_have_solved_their_task():
  cases = (("chomsky", "parity,nam"), ("recall", "nam"))
  for config in itertools.starmap(make, cases):
    assert (config.patience, config.patience_at) == (2, 0.999)
    assert config.patience_metric == config.selection_metric
  assert make("palin", "nam").patience == 0
  # Exactness takes longer than a solution.
  assert make("state_tracking", "S3,nam").patience == 0


def test_addition_is_tested_on_a_tape_longer_than_its_tokens():
  experiment = run.make_experiment(make("fib", "nam_tm"), "")
  tapes = [
    model.core.tape_length
    for model in (experiment.model, experiment.test_model)
  ]
  assert tapes == [32, 64]


def test_any_task_runs_by_its_name():
  module = importlib.import_module("configs.algorithmic.task")
  config = module.get_config("dyck,ut,paper")
  assert (config.task, config.model, config.preset) == ("dyck", "ut", "paper")
  assert module.get_config("dyck").model == "nam_tm"


def test_presets_are_those_of_the_help():
  assert tuple(base.SIZES) == config_lib.NAMES["presets"]
  for sizes in base.SIZES.values():
    assert set(sizes) == set(MODELS)
  with pytest.raises(ValueError, match=r"preset 'huge'\. Known: cpu"):
    make("palin", "nam_tm,huge")
