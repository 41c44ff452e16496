"""Every config of few-shot learning: it loads, and both stages make a step."""

import dataclasses
import importlib
import itertools

import jax
import numpy as np
import pytest

from fewshot import config, stage1, stage2
from fewshot.data import glyphs
from nam_jax import training
from nam_jax.training import state as state_lib
from tests import project_tree

FOLDER = project_tree.ROOT / "configs" / "fewshot"
ARGUMENTS = {
  p.stem: ["all", "extensions"]
  for p in sorted(FOLDER.glob("*.py"))
  if p.stem != "base"
}
ARGUMENTS["mini_imagenet"] += ["all,cpu"]
CASES = [(file, arg) for file in ARGUMENTS for arg in ARGUMENTS[file]]


def make(file, arg, monkeypatch):
  """The experiment of a config on small glyphs, or on features of them."""
  module = importlib.import_module(f"configs.fewshot.{file}")
  config = training.from_config_dict(
    module.get_config(arg), config.FewShotConfig
  )
  data = glyphs.load(
    num_base=max(8, config.num_way + 2),
    num_val=config.num_way,
    num_novel=config.num_way,
    num_base_train=10,
    num_novel_images=30,
    image_size=16,
  )
  if file == "features":
    data = as_features(data)
  monkeypatch.setattr(config.registry, "load", lambda *args, **kwargs: data)
  return config.make_experiment(config, "", "")


def as_features(data):
  splits = {
    name: type(split)(
      split.data.reshape(len(split.data), -1)[:, ::8].astype(np.float32),
      split.labels,
      split.names,
    )
    for name, split in data.splits().items()
  }
  return type(data)("features", **splits)


def step(config, init_fn, loss_fn, batch):
  """Parameters before and after a step, and its loss."""
  config = dataclasses.replace(config, warmup_steps=0)
  optimizer = training.make_optimizer(config)
  state = state_lib.create(init_fn, optimizer, config.seed)
  before = jax.device_get(state.params)
  train_step = training.make_train_step(loss_fn, optimizer, config)
  state, metrics = train_step(state, batch)
  return before, jax.device_get(state.params), float(metrics["loss"][0])


@pytest.mark.parametrize(("file", "arg"), CASES)
def test_config_makes_a_step_of_stage_1(file, arg, monkeypatch):
  experiment = make(file, arg, monkeypatch)
  if arg == "extensions":  # heads apart, the same
    return
  rows = experiment.dataset.base_train
  *_, loss = step(
    experiment.stage1(),
    stage1.make_init_fn(experiment),
    stage1.make_loss_fn(experiment),
    {"inputs": rows.data[:4], "label": rows.labels[:4]},
  )
  assert np.isfinite(loss)


HEADS = sorted(
  itertools.chain.from_iterable(
    importlib.import_module("configs.fewshot.glyphs").get_config(arg).heads
    for arg in ("all", "extensions")
  )
)


@pytest.mark.parametrize("label", sorted(set(HEADS) - {"cosine"}))
def test_every_head_makes_a_step_of_stage_2(label, monkeypatch):
  experiment = make("glyphs", label, monkeypatch)
  rng = np.random.default_rng(0)
  features = stage1.Features(
    **{
      name: rng.normal(size=(len(split.data), 12)).astype(np.float32)
      for name, split in experiment.dataset.splits().items()
    },
    base=rng.normal(size=(8, 12)).astype(np.float32),
    scale=np.float32(10),
    step=np.int32(0),
  )
  run = stage2.HeadRun(experiment, features, {}, label, 5)
  init_fn, loss_fn, batch_fn = run.functions()
  before, after, loss = step(run.config, init_fn, loss_fn, batch_fn(0))
  if label == "prototypes":
    rows = experiment.dataset.base_train.rows_by_class()
    means = [features.base_train[r].mean(axis=0) for r in rows]
    np.testing.assert_allclose(before["base"], means, rtol=1e-5)
  else:
    np.testing.assert_array_equal(before["base"], features.base)
  assert np.isfinite(loss)
  moved = jax.tree.map(lambda a, b: (a != b).any(), before, after)
  assert jax.tree.all(moved), moved


def test_heads_can_be_chosen_by_name():
  module = importlib.import_module("configs.fewshot.glyphs")
  assert set(module.get_config("nam,cosine").heads) == {"nam", "cosine"}
  with pytest.raises(ValueError, match="unknown head 'namm'; known: all"):
    module.get_config("namm")
