"""The configs of the Long Range Arena: they load, fit, and make a step.

Steps are traced at full size and not compiled, except for two in miniature;
tests/models/test_attentions.py computes the gradients of every attention.
"""

import importlib

import jax
import numpy as np
import pytest

from lra_tasks import config as config_lib
from lra_tasks import run
from lra_tasks.task import Task
from nam_jax import training
from nam_jax.models import attentions as models
from nam_jax.training import classification
from nam_jax.training import state as state_lib
from tests import abstract_step, project_tree

FOLDER = project_tree.ROOT / "configs" / "lra"
# Each file's ids, classes, length, and parameters with softmax or nam.
FILES = {
  "image": (256, 10, 1024, 248_458),
  "listops": (17, 10, 2000, 8_948_746),
  "retrieval": (257, 2, 4000, 1_087_618),
  "pathfinder": (256, 2, 1024, 26_530),
  "text": (257, 2, 1000, 3_486_722),
}
OLD_NAMES = {"cifar10": "image", "matching": "retrieval"}
TINY = {
  "emb_dim": 8,
  "num_heads": 2,
  "num_layers": 1,
  "qkv_dim": 8,
  "mlp_dim": 8,
}


def presets(file):
  return importlib.import_module(f"configs.lra.{file}").PRESETS


def make(file, arg="nam", length=None, **overrides):
  """A config, and an experiment of it without data."""
  fields = importlib.import_module(f"configs.lra.{file}").get_config(arg)
  fields.update(overrides)
  config = training.from_config_dict(fields, run.LRAConfig)
  ids, classes, full_length, _ = FILES[file]
  is_pair = file == "retrieval"
  task = Task(
    config.task, ids, classes, length or full_length, is_pair, (), (), ()
  )
  return run.for_task(config, task)


def random_batch(experiment):
  task, rows = experiment.task, experiment.config.batch_size
  rng = np.random.default_rng(0)
  shape = (
    (rows, 2, task.max_length) if task.is_pair else (rows, task.max_length)
  )
  return {
    "inputs": rng.integers(0, task.vocab_size, shape, np.int32),
    "mask": np.ones(shape, bool),
    "label": rng.integers(0, task.num_classes, rows, np.int32),
  }


def test_every_file_is_known_here():
  files = {p.stem for p in FOLDER.glob("*.py")} - {"base", *OLD_NAMES}
  assert set(FILES) == files


@pytest.mark.parametrize("old", OLD_NAMES)
def test_old_names_of_files_still_work(old):
  module = importlib.import_module(f"configs.lra.{old}")
  assert module.get_config("nam,cpu").task == OLD_NAMES[old]


@pytest.mark.parametrize("attention", ["softmax", "nam"])
@pytest.mark.parametrize("file", FILES)
def test_preset_lra_has_the_parameters_of_the_benchmark(file, attention):
  experiment = make(file, f"{attention},lra")
  shapes = jax.eval_shape(experiment.init_fn, jax.random.key(0))
  count = training.parameter_count(shapes["params"])
  assert count == FILES[file][3]


@pytest.mark.parametrize(
  ("file", "preset"), [(f, p) for f in FILES for p in presets(f)]
)
def test_every_preset_fits_at_full_size(file, preset):
  experiment = make(file, f"nam,{preset}", batch_size=32)
  loss_fn = classification.make_loss_fn(experiment.model)
  batch = random_batch(experiment)
  abstract_step.take(experiment.config, experiment.init_fn, loss_fn, batch)


@pytest.mark.parametrize("attention", models.KINDS)
def test_every_attention_has_a_config_that_fits(attention):
  experiment = make("text", f"{attention},plain", length=8)
  assert experiment.config.attention == attention
  shapes = jax.eval_shape(experiment.init_fn, jax.random.key(0))
  assert training.parameter_count(shapes["params"]) > 50_000
  modern = make("text", f"{attention},cpu", length=8)
  jax.eval_shape(modern.init_fn, jax.random.key(0))


# With the statistics of a norm; with two documents and a first token.
@pytest.mark.parametrize("arg", ["text:nam,plain", "retrieval:nam,lra"])
def test_shrunk_config_makes_a_real_step(arg):
  file, _, arg = arg.partition(":")
  sizes = presets(file)[arg.partition(",")[2]]["model_kwargs"] | TINY
  experiment = make(
    file, arg, length=8, batch_size=4, warmup_steps=1, model_kwargs=sizes
  )
  config = experiment.config
  optimizer = training.make_optimizer(config)
  state = state_lib.create(experiment.init_fn, optimizer, config.seed)
  before = jax.device_get(state.params)
  loss_fn = classification.make_loss_fn(experiment.model)
  step = training.make_train_step(loss_fn, optimizer, config)
  for _ in range(2):  # the first update of a warm-up changes nothing
    state, metrics = step(state, training.place(random_batch(experiment)))
  total, weight = jax.device_get(metrics["loss"])
  assert weight == 4
  assert 0 < total / weight < 20
  moved = jax.tree.map(
    lambda a, b: np.abs(a - b).max(), before, jax.device_get(state.params)
  )
  assert moved["logits"]["kernel"] > 0
  assert moved["tokens"]["embedding"]["embedding"] > 0


def test_the_papers_image_schedule_follows_from_its_batch_size():
  config = make("image", "nam,paper").config
  assert (config.batch_size, config.num_steps) == (4, 1_125_000)
  assert config.warmup_steps == config.eval_every == 11_250
  config = make("image", "nam,lra").config
  assert (config.num_steps, config.steps_per_cycle) == (35_000, 35_000)


def test_only_the_small_text_model_writes_means():
  config = make("text", "nam,plain").config
  assert config.attention_kwargs == {"mean_writes": True}
  for arg in ("nam,lra", "nam,paper", "nam_erase,cpu", "linear,cpu"):
    assert make("text", arg).config.attention_kwargs == {}


def test_memories_with_decay_mix_neighbouring_bytes():
  for file in ("text", "retrieval"):
    for preset in ("cpu", "s5"):
      config = make(file, f"nam_full,{preset}").config
      assert config.attention_kwargs == {"convolution": 4}
  assert make("image", "nam_full,cpu").config.attention_kwargs == {}
  assert make("text", "nam_full,plain").config.attention_kwargs == {}


def test_presets_are_those_of_the_help():
  known = set(config_lib.NAMES["presets"])
  assert set().union(*map(presets, FILES)) == known
  with pytest.raises(ValueError, match=r"unknown preset 'huge'\. Known: lra"):
    make("text", "nam,huge")
