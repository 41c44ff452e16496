"""Trimmed batches: all rows, less padding, and the same loss."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from lra_tasks import rows, run, trimming
from lra_tasks.config import LRAConfig
from lra_tasks.task import Task
from nam_jax import training
from nam_jax.training import classification, data

MAX_LENGTH = 14
SIZES = {
  "emb_dim": 8,
  "num_heads": 2,
  "num_layers": 1,
  "qkv_dim": 8,
  "mlp_dim": 8,
  "dropout_rate": 0.0,
  "classifier_pool": "MEAN",
}


def token_rows(count=21):
  """Rows of 1 to 16 tokens, of which 14 are kept; the first is the row's."""
  rng = np.random.default_rng(0)
  lengths = rng.integers(1, 17, count)
  texts = [
    bytes([i, *rng.integers(0, 30, length - 1)])
    for i, length in enumerate(lengths)
  ]
  labels = rng.integers(0, 2, count)
  tokens, offsets = rows.end_to_end(texts)
  return rows.TokenRows(tokens, offsets, labels, MAX_LENGTH, first_id=1)


def pair_rows():
  tokens, offsets = rows.end_to_end([bytes([i] * i) for i in range(1, 13)])
  documents = rows.Sequences(tokens, offsets, MAX_LENGTH, first_id=1)
  pairs = np.array([[0, 9], [9, 1], [2, 2], [1, 0]])
  return rows.PairRows(documents, pairs, np.array([0, 1, 1, 0]))


def task(some):
  return Task("text", 257, 2, MAX_LENGTH, False, some, some, some)


def numbers(batch):
  return batch["inputs"][:, 0] - 1


def test_every_row_comes_once_an_epoch_and_none_loses_a_token():
  some = token_rows()
  read = trimming.batch_fn(some, MAX_LENGTH, 4, seed=0, trim=4)
  batches = [read(step) for step in range(21)]
  seen = np.concatenate([numbers(batch) for batch in batches]).reshape(4, 21)
  assert (np.sort(seen, axis=1) == np.arange(21)).all()
  lengths = [batch["inputs"].shape[1] for batch in batches]
  assert set(lengths) <= {4, 8, 12, MAX_LENGTH}
  assert len(set(lengths)) > 1
  for batch in batches:
    whole = data.stack(some, numbers(batch))
    length = batch["mask"].shape[1]
    for name, array in batch.items():
      wanted = whole[name]
      if name != "label":
        assert not wanted[:, length:].any()
        assert wanted[:, length - 4 :].any()
        wanted = wanted[:, :length]
      np.testing.assert_array_equal(array, wanted)


def test_starting_late_equals_skipping():
  read = trimming.batch_fn(token_rows(), MAX_LENGTH, 4, seed=0, trim=4)

  def take(start, end):
    batches = training.train_batches(read, 4, 0, start)
    return list(itertools.islice(batches, end - start))

  for a, b in zip(take(0, 9)[5:], take(5, 9), strict=True):
    np.testing.assert_array_equal(a["inputs"], b["inputs"])


@pytest.mark.parametrize("index", [0, 1])
def test_processes_cut_where_the_whole_batch_ends(index, monkeypatch):
  some = token_rows()
  read = trimming.batch_fn(some, MAX_LENGTH, 4, seed=0, trim=2)

  def batches():
    trained = itertools.islice(training.train_batches(read, 4, 0, 0), 6)
    return [*trained, *trimming.eval_batches(some, MAX_LENGTH, 4, 2)]

  whole = batches()
  monkeypatch.setattr(jax, "process_count", lambda: 2)
  monkeypatch.setattr(jax, "process_index", lambda: index)
  mine = slice(2 * index, 2 * index + 2)
  for a, b in zip(whole, batches(), strict=True):
    for name in a:
      np.testing.assert_array_equal(a[name][mine], b[name])


def test_the_longer_of_two_documents_decides():
  read = trimming.batch_fn(pair_rows(), MAX_LENGTH, 2, seed=0, trim=3)
  shapes = [read(step)["inputs"].shape for step in range(2)]
  assert sorted(shapes) == [(2, 2, 3), (2, 2, 12)]
  batches = list(trimming.eval_batches(pair_rows(), MAX_LENGTH, 3, 3))
  assert [b["mask"].shape for b in batches] == [(3, 2, 12), (3, 2, 12)]
  assert [b["row_mask"].tolist() for b in batches] == [
    [True] * 3,
    [True, False, False],
  ]


def test_evaluation_goes_from_short_to_long_rows():
  some = token_rows()
  batches = list(trimming.eval_batches(some, MAX_LENGTH, 4, 4))
  lengths = [batch["inputs"].shape[1] for batch in batches]
  assert lengths == sorted(lengths)
  assert (lengths[0], lengths[-1]) == (4, MAX_LENGTH)
  seen = np.concatenate([numbers(b) for b in batches])
  real = np.concatenate([b["row_mask"] for b in batches])
  assert sorted(seen[real]) == list(range(21))
  tokens = np.concatenate([b["mask"].sum(axis=1) for b in batches])
  whole = np.minimum(some.lengths, MAX_LENGTH)
  assert tokens.tolist() == whole[seen].tolist()


def test_trimming_changes_neither_the_loss_nor_its_gradient():
  some = token_rows()
  experiment = run.for_task(LRAConfig(model_kwargs=SIZES), task(some))
  loss_fn = classification.make_loss_fn(experiment.model)
  read = trimming.batch_fn(some, MAX_LENGTH, 4, seed=0, trim=4)
  trimmed = next(b for b in map(read, range(21)) if b["mask"].shape[1] == 8)
  whole = data.stack(some, numbers(trimmed))
  key = jax.random.key(0)
  params = experiment.init_fn(key)["params"]

  @jax.jit
  @jax.value_and_grad
  def learn(params, batch):
    return loss_fn(params, {}, batch, key)[0][0]

  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
    learn(params, trimmed),
    learn(params, whole),
  )


def test_a_trimmed_run_is_tested_as_without_trimming(tmp_path):
  config = LRAConfig(
    model_kwargs=SIZES,
    num_steps=3,
    batch_size=4,
    num_eval_batches=2,
    trim=7,
    tensorboard=False,
  )
  experiment = run.for_task(config, task(token_rows()), str(tmp_path))
  fitted = run.train(experiment)
  whole = experiment._replace(config=dataclasses.replace(config, trim=0))
  tested, expected = (run.measure(e, fitted) for e in (experiment, whole))
  for name in ("loss", "accuracy"):
    assert tested[name] == pytest.approx(expected[name], rel=1e-5)


@pytest.mark.parametrize(
  ("fields", "message"),
  [
    ({"trim": -1}, "trim=-1 must not be negative"),
    ({"trim": 8, "compat": True}, "trim=8 needs compat=False"),
    (
      {"trim": 8, "model_kwargs": {"classifier_pool": "FLATTEN"}},
      "trim=8 needs another classifier_pool than FLATTEN",
    ),
    ({"trim": 8, "model_kwargs": {"pool_norm": True}}, "without batch norm"),
    ({"trim": 8, "model_kwargs": {"norm": "batch"}}, "without batch norm"),
  ],
)
def test_settings_that_need_padding_are_refused(fields, message):
  with pytest.raises(training.UserError, match=message):
    LRAConfig(**fields)


def test_a_run_of_an_older_version_was_not_trimmed():
  assert LRAConfig().upgraded({"task": "listops"})["trim"] == 0
