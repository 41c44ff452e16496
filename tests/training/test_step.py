"""One update: global means, accumulation, compute type, randomness, extra."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax import training
from nam_jax.training import state as state_lib
from tests.training import toy


def _first_step(config, batch=None, loss_fn=toy.loss_fn):
  """State and metrics after one update from the seed."""
  optimizer = training.make_optimizer(config)
  state = state_lib.create(toy.init_fn, optimizer, config.seed)
  if batch is None:
    batch = toy.make_rows(np.random.default_rng(3), config.batch_size)
  train_step = training.make_train_step(loss_fn, optimizer, config)
  return train_step(state, training.place(batch))


def _sgd(**settings):
  base = {"optimizer": "sgd", "learning_rate": 1.0, "batch_size": 16}
  return training.TrainConfig(**base | settings)


NO_DROPOUT = functools.partial(toy.loss_fn, dropout=0.0)


def test_gradient_is_that_of_the_masked_mean():
  config = _sgd()
  batch = toy.make_rows(np.random.default_rng(3), 16)
  new, metrics = _first_step(config, batch, NO_DROPOUT)
  old = state_lib.create(
    toy.init_fn, training.make_optimizer(config), config.seed
  ).params

  def mean_loss(params):
    log_p = jax.nn.log_softmax(toy.logits_of(params, batch["inputs"]))
    rows = np.flatnonzero(batch["mask"])
    return -sum(log_p[i, batch["labels"][i]] for i in rows) / float(len(rows))

  loss, gradient = jax.jit(jax.value_and_grad(mean_loss))(old)
  total, weight = metrics["loss"]
  assert float(weight) == batch["mask"].sum()
  np.testing.assert_allclose(total / weight, loss, rtol=1e-5)
  for a, b, g in zip(
    *map(jax.tree.leaves, (old, new.params, gradient)), strict=True
  ):
    np.testing.assert_allclose(a - b, g, rtol=1e-4, atol=1e-6)
  norm = np.sqrt(sum((g**2).sum() for g in jax.tree.leaves(gradient)))
  np.testing.assert_allclose(metrics["grad_norm"][0], norm, rtol=1e-5)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_accumulated_parts_equal_the_big_batch(optimizer):
  """The parts have different numbers of rows that count."""
  config = {"optimizer": optimizer, "grad_clip": 0.3}
  batch = toy.make_rows(np.random.default_rng(3), 16)
  batch["mask"] = np.arange(16) % 4 < np.arange(16) // 4
  whole, whole_metrics = _first_step(_sgd(**config), batch, NO_DROPOUT)
  parts, parts_metrics = _first_step(
    _sgd(accumulate_steps=4, **config), batch, NO_DROPOUT
  )
  for a, b in zip(
    *map(jax.tree.leaves, (whole.params, parts.params)), strict=True
  ):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
  for name, pair in whole_metrics.items():
    np.testing.assert_allclose(pair, parts_metrics[name], rtol=1e-5)


def test_one_part_needs_no_loop_in_the_compiled_program():
  def loss_fn(params, extra, batch, key):
    del key
    logits = toy.logits_of(params, batch["inputs"])
    return (logits.sum(), jnp.ones(())), ({}, extra)

  def loops(parts):
    config = _sgd(accumulate_steps=parts)
    optimizer = training.make_optimizer(config)
    shapes = state_lib.abstract(toy.init_fn, optimizer, 0)
    batch = training.place(toy.make_rows(np.random.default_rng(0), 16))
    step = training.make_train_step(loss_fn, optimizer, config)
    return step.lower(shapes, batch).compile().as_text().count(" while(")

  assert loops(parts=1) == 0
  assert loops(parts=2) > 0


def test_batch_without_a_counted_row_changes_nothing():
  batch = toy.make_rows(np.random.default_rng(3), 16)
  batch["mask"][:] = False
  config = _sgd()
  state, metrics = _first_step(config, batch)
  old = state_lib.create(toy.init_fn, training.make_optimizer(config), 0)
  assert metrics["loss"] == (0, 0)
  for a, b in zip(
    *map(jax.tree.leaves, (old.params, state.params)), strict=True
  ):
    np.testing.assert_array_equal(a, b)


def test_bfloat16_reaches_the_model_and_not_the_parameters():
  seen = set()

  def loss_fn(params, extra, batch, key):
    del key
    seen.update(x.dtype.name for x in jax.tree.leaves((params, batch)))
    logits = toy.logits_of(params, batch["inputs"])
    loss = training.masked_cross_entropy(logits, batch["labels"], batch["mask"])
    return loss, ({}, extra)

  full, _ = _first_step(_sgd(), loss_fn=loss_fn)
  assert seen == {"float32", "int32", "bool"}
  seen.clear()
  half, _ = _first_step(_sgd(compute_dtype="bfloat16"), loss_fn=loss_fn)
  assert seen == {"bfloat16", "int32", "bool"}
  for a, b in zip(
    *map(jax.tree.leaves, (full.params, half.params)), strict=True
  ):
    assert b.dtype == jnp.float32
    np.testing.assert_allclose(a, b, atol=0.02)
    assert (a != b).any()


def test_each_step_has_its_own_key_and_the_seed_decides_it():
  def loss_fn(params, extra, batch, key):
    total = jax.random.uniform(key) + 0 * params["out"]["kernel"].sum()
    return (total, jnp.ones(())), ({}, extra)

  def draws(seed):
    config = training.TrainConfig(seed=seed, batch_size=1)
    optimizer = training.make_optimizer(config)
    state = state_lib.create(toy.init_fn, optimizer, seed)
    train_step = training.make_train_step(loss_fn, optimizer, config)
    values = []
    for _ in range(3):
      batch = training.place({"x": np.zeros(1)})
      state, metrics = train_step(state, batch)
      values.append(float(metrics["loss"][0]))
    return values

  first, again, other = draws(0), draws(0), draws(1)
  assert first == again
  assert len({*first, *other}) == 6


def test_extra_variables_are_carried_through_steps_and_parts():
  batch = toy.make_rows(np.random.default_rng(3), 16)
  state, _ = _first_step(_sgd(accumulate_steps=2), batch)
  mean = np.zeros(8)
  for part in (batch["inputs"][::2], batch["inputs"][1::2]):
    mean = 0.9 * mean + 0.1 * part.mean(axis=0)
  np.testing.assert_allclose(state.extra["stats"]["mean"], mean, rtol=1e-5)


def test_state_memory_is_donated():
  config = _sgd()
  optimizer = training.make_optimizer(config)
  state = state_lib.create(toy.init_fn, optimizer, 0)
  batch = training.place(toy.make_rows(np.random.default_rng(0), 16))
  training.make_train_step(toy.loss_fn, optimizer, config)(state, batch)
  assert state.params["out"]["kernel"].is_deleted()


def test_mean_metrics_divides_once_over_all_batches():
  def metric_fn(params, extra, batch):
    del params, extra
    counted = jnp.where(batch["row_mask"], batch["x"], 0.0)
    by_half = jnp.stack([counted[:2].sum(), jnp.zeros(())])
    weights = jnp.stack([batch["row_mask"][:2].sum(dtype=float), jnp.zeros(())])
    rows = batch["row_mask"].sum(dtype=float)
    return {"mean": (counted.sum(), rows), "by_half": (by_half, weights)}

  class Numbers:
    def __len__(self):
      return 6

    def __getitem__(self, i):
      return {"x": np.float32(i)}

  config = training.TrainConfig()
  optimizer = training.make_optimizer(config)
  state = state_lib.create(toy.init_fn, optimizer, 0)
  eval_step = training.make_eval_step(metric_fn, config)
  batches = map(training.place, training.eval_batches(Numbers(), 4))
  means = training.mean_metrics(eval_step, state, batches)
  assert means["mean"] == 2.5  # not 2.75, the mean over two batches
  assert means["by_half"][0] == (0 + 1 + 4 + 5) / 4
  assert np.isnan(means["by_half"][1])
  with pytest.raises(ValueError, match="no batch"):
    training.mean_metrics(eval_step, state, [])


def test_parameter_table_lists_shapes_and_total():
  optimizer = training.make_optimizer(training.TrainConfig())
  shapes = state_lib.abstract(toy.init_fn, optimizer, 0)
  assert training.parameter_count(shapes.params) == 8 * 16 + 16 * 2
  table = training.parameter_table(shapes.params).splitlines()
  assert table[0].split() == ["hidden/kernel", "(8,", "16)", "float32", "128"]
  assert table[-1].split() == ["total", "160"]


def test_abstract_state_describes_the_created_one():
  optimizer = training.make_optimizer(training.TrainConfig())
  shapes = state_lib.abstract(toy.init_fn, optimizer, 0)
  state = state_lib.create(toy.init_fn, optimizer, 0)
  described = jax.tree.map(lambda x: (x.shape, x.dtype, x.sharding), shapes)
  actual = jax.tree.map(lambda x: (x.shape, x.dtype, x.sharding), state)
  assert described == actual
