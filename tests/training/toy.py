"""A small problem for the engine: is the sum of eight numbers positive?

As a script, `python toy.py workdir '{"num_steps": 20}'` runs one training; the
environment variable TOY_SIGNAL="15@7" sends signal 15 while batch 7 is made,
and TOY_PAUSE="0.1" makes every batch take that many seconds.
"""

import hashlib
import json
import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from command_line import script
from nam_jax import training

DEFAULTS = {
  "num_steps": 20,
  "batch_size": 16,
  "learning_rate": 0.05,
  "schedule": "warmup_cosine",
  "warmup_steps": 4,
  "log_every": 4,
  "eval_every": 5,
  "checkpoint_every": 5,
  "selection_metric": "accuracy",
  "selection_mode": "max",
  "tensorboard": False,
}


def make_config(**overrides):
  return training.from_config_dict(DEFAULTS | overrides)


def make_rows(rng, count):
  """Rows, about a third of which do not count."""
  inputs = rng.normal(size=(count, 8)).astype(np.float32)
  return {
    "inputs": inputs,
    "labels": (inputs.sum(axis=1) > 0).astype(np.int32),
    "mask": rng.random(count) > 0.3,
  }


class Rows:
  """Random access to fixed rows."""

  def __init__(self, seed, count):
    self._rows = make_rows(np.random.default_rng(seed), count)
    self._count = count

  def __len__(self):
    return self._count

  def __getitem__(self, i):
    return {name: rows[i] for name, rows in self._rows.items()}


def init_fn(key):
  first, second = jax.random.split(key)
  return {
    "params": {
      "hidden": {"kernel": jax.random.normal(first, (8, 16)) / 3},
      "out": {"kernel": jax.random.normal(second, (16, 2)) / 4},
    },
    "stats": {"mean": jnp.zeros((8,))},
  }


def logits_of(params, inputs):
  return (
    jax.nn.relu(inputs @ params["hidden"]["kernel"]) @ params["out"]["kernel"]
  )


def loss_fn(params, extra, batch, key, dropout=0.1):
  inputs, labels, mask = batch["inputs"], batch["labels"], batch["mask"]
  kept = jax.random.bernoulli(key, 1 - dropout, inputs.shape)
  logits = logits_of(params, jnp.where(kept, inputs, 0))
  mean = 0.9 * extra["stats"]["mean"] + 0.1 * inputs.mean(axis=0)
  metrics = {"accuracy": training.token_accuracy(logits, labels, mask)}
  loss = training.masked_cross_entropy(logits, labels, mask)
  return loss, (metrics, {"stats": {"mean": mean}})


def metric_fn(params, extra, batch):
  del extra
  mask = batch["mask"] & batch["row_mask"]
  logits = logits_of(params, batch["inputs"])
  return {
    "loss": training.masked_cross_entropy(logits, batch["labels"], mask),
    "accuracy": training.token_accuracy(logits, batch["labels"], mask),
  }


def make_batch_fn(config):
  number, _, at = os.environ.get("TOY_SIGNAL", "0@-1").partition("@")
  pause = float(os.environ.get("TOY_PAUSE", "0"))

  def batch_fn(step):
    time.sleep(pause)
    if step == int(at):
      os.kill(os.getpid(), int(number))
    return make_rows(
      np.random.default_rng((config.seed, step)), config.batch_size
    )

  return batch_fn


def make_evaluate(config):
  eval_step = training.make_eval_step(metric_fn, config)
  rows = Rows(seed=1, count=50)

  def evaluate(state):
    batches = training.eval_batches(rows, config.batch_size)
    return training.mean_metrics(eval_step, state, map(training.place, batches))

  return evaluate


def notices(caplog):
  """What the engine, not a package that it uses, has logged."""
  records = [r for r in caplog.records if r.name.startswith("nam_jax")]
  return [record.getMessage() for record in records]


def digest(state):
  """One number for all bits of a state."""
  leaves = jax.tree.leaves(jax.device_get(state))
  return hashlib.sha256(b"".join(x.tobytes() for x in leaves)).hexdigest()


def run(workdir, config, loss=loss_fn, source=None):
  """A whole run as a script would do it: train, then report the best."""
  source = source or make_batch_fn(config)
  evaluate = make_evaluate(config)
  result = training.fit(config, workdir, init_fn, loss, source, evaluate)
  training.write_results(
    workdir,
    {
      "best_step": int(result.best.step),
      "best": evaluate(result.best),
      "digest": digest(result.state),
    },
  )
  return result


def main(argv, _):
  training.connect()
  run(Path(argv[1]), make_config(**json.loads(argv[2])))


if __name__ == "__main__":
  script.run(main, "")
