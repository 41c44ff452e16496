"""Every config of few-shot learning loads, and both stages make a step."""

import dataclasses
import importlib

import jax
import numpy as np
import pytest

from configs.fewshot import base, glyphs
from fewshot import config as config_lib
from fewshot import run, stage1, stage2
from fewshot.data import glyphs as glyph_data
from fewshot.data.dataset import Dataset, Split
from nam_jax import training
from nam_jax.training import state as state_lib
from tests import project_tree

FOLDER = project_tree.ROOT / "configs" / "fewshot"
FILES = [p.stem for p in sorted(FOLDER.glob("*.py")) if p.stem != "base"]
WITH_PAPER = ("cifar", "mini_imagenet")
CASES = [(file, "all") for file in FILES]
CASES += [(file, "all,paper") for file in WITH_PAPER]


@pytest.fixture
def make(monkeypatch):
  """(file, arg) -> its experiment on small glyphs, or features of them."""

  def make(file, arg):
    module = importlib.import_module(f"configs.fewshot.{file}")
    fields = module.get_config(arg)
    config = training.from_config_dict(fields, config_lib.FewShotConfig)
    data = small_data(config.num_way)
    if file == "features":
      data = as_features(data)
    monkeypatch.setattr(run.registry, "load", lambda *_, **__: data)
    return run.make_experiment(config, "", "")

  return make


def small_data(num_way):
  return glyph_data.load(
    num_base=max(8, num_way + 2),
    num_val=num_way,
    num_novel=num_way,
    num_base_train=10,
    num_novel_images=30,
    image_size=16,
  )


def as_features(data):
  splits = {
    name: Split(
      split.data.reshape(len(split.data), -1)[:, ::8].astype(np.float32),
      split.labels,
      split.names,
    )
    for name, split in data.splits().items()
  }
  return Dataset("features", **splits)


@pytest.mark.parametrize(("file", "arg"), CASES)
def test_config_makes_a_step_of_stage_1(file, arg, make):
  experiment = make(file, arg)
  stage, rows = experiment.config.make_stage1(), experiment.dataset.base_train
  init_fn = stage1.make_init_fn(experiment.network, rows.data)
  pad, flip = experiment.config.pad, experiment.config.flip
  loss_fn = stage1.make_loss_fn(experiment.network, pad, flip)
  optimizer = training.make_optimizer(stage)
  before = state_lib.abstract(init_fn, optimizer, 0)
  step = training.make_train_step(loss_fn, optimizer, stage)
  batch = {"inputs": rows.data[:4], "label": rows.labels[:4]}
  after, metrics = jax.eval_shape(step, before, batch)
  assert jax.tree.map(np.shape, after) == jax.tree.map(np.shape, before)
  assert metrics["loss"][0].shape == ()


HEADS = sorted(base.HEADS | base.EXTENSIONS)


@pytest.mark.parametrize("label", sorted(set(HEADS) - {"cosine"}))
def test_every_head_makes_a_step_of_stage_2(label, make):
  experiment = make("glyphs", label)
  config, base_train = experiment.config, experiment.dataset.base_train
  rng = np.random.default_rng(0)
  features = stage1.Features(
    **{
      name: rng.normal(size=(len(split.data), 6)).astype(np.float32)
      for name, split in experiment.dataset.splits().items()
    },
    base=rng.normal(size=(8, 6)).astype(np.float32),
    scale=np.float32(10),
    step=np.int32(0),
  )
  kind = config.heads[label]["kind"]
  start = stage2.initial_base(kind, features, base_train)
  if kind == "prototypes":
    rows = base_train.rows_by_class()
    means = [features.base_train[r].mean(axis=0) for r in rows]
    np.testing.assert_allclose(start["base"], means, rtol=1e-5)
  else:
    np.testing.assert_array_equal(start["base"], features.base)
  net = stage2.heads.EpisodeNetwork(experiment.heads[label], 8)
  stage = dataclasses.replace(config.make_stage2(label, 2), warmup_steps=0)
  init_fn = stage2.make_init_fn(net, start, 2)
  batch_fn = stage2.make_batch_fn(
    features, base_train, config.train_size(2), 2, 0
  )
  optimizer = training.make_optimizer(stage)
  state = state_lib.create(init_fn, optimizer, 0)
  before = jax.device_get(state.params)
  np.testing.assert_array_equal(before["base"], start["base"])
  step = training.make_train_step(stage2.make_loss_fn(net), optimizer, stage)
  state, metrics = step(state, batch_fn(0))
  assert np.isfinite(metrics["loss"][0])
  after = jax.device_get(state.params)
  moved = jax.tree.map(lambda a, b: (a != b).any(), before, after)
  assert jax.tree.all(moved), moved


@pytest.mark.parametrize(
  ("arg", "heads"),
  [
    ("nam,cosine", {"nam", "cosine"}),
    ("nam,cpu", {"nam"}),
    ("cpu", set(base.HEADS)),
    ("extensions", set(base.EXTENSIONS)),
    ("", set(base.HEADS)),
  ],
)
def test_argument_names_heads_and_a_preset(arg, heads):
  assert set(glyphs.get_config(arg).heads) == heads


def test_unknown_head_or_preset_lists_the_known_ones():
  with pytest.raises(ValueError, match="unknown head 'namm'; known: all"):
    glyphs.get_config("namm")
  with pytest.raises(
    ValueError, match=r"'paper'; known: .*; presets: cpu, claim$"
  ):
    glyphs.get_config("nam,paper")


@pytest.mark.parametrize("file", FILES)
def test_the_default_preset_is_cpu(file):
  module = importlib.import_module(f"configs.fewshot.{file}")
  heads = "nam" if file == "folder" else "all"
  assert module.get_config() == module.get_config(f"{heads},cpu")
