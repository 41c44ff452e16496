"""What is left out where commands of the pages run: it takes long.

All of it has tests of its own. These are the pictures of a run; our models and
attentions, instead of which small ones are trained (tests/test_configs*.py
train all of them); and few-shot learning after its data are read and its
networks built, but for one's own images.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest
from flax import linen as nn

from fewshot import pictures as fewshot_pictures
from fewshot import run as fewshot_run
from nam_jax.models import attentions, registry

# Ours, before a page adds its own.
CORES, KINDS = dict(registry.CORES), tuple(attentions.KINDS)
MAKE_CLASSIFIER = attentions.make_classifier
MAKE_EXPERIMENT = fewshot_run.make_experiment


@contextlib.contextmanager
def used():
  """Leaves out what takes long, as the module's docstring says."""
  with pytest.MonkeyPatch.context() as patch:
    for module in (algorithmic_pictures, fewshot_pictures):
      patch.setattr(module, "save", lambda *_: None)
    for name, core in CORES.items():
      patch.setitem(registry.CORES, name, stand_in(core))
    patch.setattr(attentions, "make_classifier", make_classifier)
    patch.setattr(fewshot_run, "make_experiment", make_experiment)
    yield


def make_experiment(config, workdir, data_dir, make=MAKE_EXPERIMENT):
  """The few-shot experiment, if it is one to train."""
  experiment = make(config, workdir, data_dir)
  if config.data != "folder":
    raise SystemExit(0)
  return experiment


def make_classifier(attention, options, make=MAKE_CLASSIFIER, **sizes):
  """A stand-in for the classifiers whose attention is ours."""
  model = make(attention, options, **sizes)
  return Mean(sizes["num_classes"]) if attention in KINDS else model


class Mean(nn.Module):
  """A classifier that looks at the mean of the tokens' ids."""

  num_classes: int

  @nn.compact
  def __call__(self, inputs, mask, *, train=False):
    x = jnp.where(mask, inputs, 0).astype(jnp.float32).reshape(len(inputs), -1)
    return nn.Dense(self.num_classes)(jnp.mean(x, axis=1, keepdims=True))


class _Machine(nn.Module):
  """Heads [b s 2 h n] that do not move."""

  @nn.compact
  def __call__(self, x):
    heads = jnp.zeros((*x.shape[:2], 2, 1, 8)).at[..., 0].set(1)
    self.sow("intermediates", "heads", heads)
    return x


class StandIn(nn.Module):
  """A core that looks at each token by itself."""

  @nn.compact
  def __call__(self, x, *, mask, train):
    return jnp.where(mask[..., None], _Machine(name="machine")(x), 0.0)


def stand_in(core: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
  """Takes the arguments of the core, and no others."""

  @functools.wraps(core)
  def make(**fields: Any) -> nn.Module:
    core(**fields)
    return StandIn()

  return make
