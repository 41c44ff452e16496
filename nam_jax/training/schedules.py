"""Learning rates as products of named factors, and the optimisers.

A schedule maps the number of updates made so far, t = 0, 1, ..., to the
learning rate of the next one. It is written in the factor language of the
Long Range Arena: names joined by `*`, with w = warmup_steps,

  constant                × learning_rate
  linear_warmup           × min(1, t / w)
  rsqrt_decay             ÷ √max(t, w)
  rsqrt_normalized_decay  × √w ÷ √max(t, w)
  decay_every             × decay_factor^⌊t / steps_per_decay⌋
  cosine_decay            × ½(1 + cos(π (p mod 1))), p = max(0, (t − w) / cycle)
  piecewise               × scales[number of boundaries ≤ t]
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from nam_jax import spelling
from nam_jax.training import config as config_lib
from nam_jax.training.config import TrainConfig
from nam_jax.training.errors import UserError

NAMED_SCHEDULES = {
  "warmup_cosine": "constant * linear_warmup * cosine_decay",
  "exponential": "constant * decay_every",
}


def _constant(t, config):
  return jnp.full_like(t, config.learning_rate)


def _linear_warmup(t, config):
  if not config.warmup_steps:
    return jnp.ones_like(t)
  return jnp.minimum(1.0, t / config.warmup_steps)


def _rsqrt_decay(t, config):
  _require(config, "rsqrt_decay", "warmup_steps")
  return 1 / jnp.sqrt(jnp.maximum(t, config.warmup_steps))


def _rsqrt_normalized_decay(t, config):
  _require(config, "rsqrt_normalized_decay", "warmup_steps")
  return math.sqrt(config.warmup_steps) * _rsqrt_decay(t, config)


def _decay_every(t, config):
  _require(config, "decay_every", "steps_per_decay")
  return config.decay_factor ** jnp.floor(t / config.steps_per_decay)


def _cosine_decay(t, config):
  rest = max(1, config.num_steps - config.warmup_steps)
  cycle = config.steps_per_cycle or rest
  progress = jnp.maximum(0.0, (t - config.warmup_steps) / cycle)
  return jnp.maximum(0.0, 0.5 * (1 + jnp.cos(jnp.pi * (progress % 1.0))))


def _piecewise(t, config):
  pieces = len(config.boundaries) + 1
  if len(config.scales) != pieces:
    raise UserError(
      f"piecewise needs {pieces} scales for {pieces - 1} boundaries, got"
      f" {len(config.scales)}"
    )
  if list(config.boundaries) != sorted(config.boundaries):
    raise UserError(f"boundaries={config.boundaries} must increase")
  boundaries = jnp.asarray(config.boundaries, jnp.float32)
  piece = jnp.searchsorted(boundaries, t, side="right")
  return jnp.asarray(config.scales, jnp.float32)[piece]


# Each factor and the fields that it reads.
FACTORS = {
  "constant": (_constant, ()),
  "linear_warmup": (_linear_warmup, ("warmup_steps",)),
  "rsqrt_decay": (_rsqrt_decay, ("warmup_steps",)),
  "rsqrt_normalized_decay": (_rsqrt_normalized_decay, ("warmup_steps",)),
  "decay_every": (_decay_every, ("decay_factor", "steps_per_decay")),
  "cosine_decay": (_cosine_decay, ("warmup_steps", "steps_per_cycle")),
  "piecewise": (_piecewise, ("boundaries", "scales")),
}

# Each optimiser and the fields that it reads.
OPTIMIZERS = {
  "adam": ("b1", "b2", "eps"),
  "adamw": ("b1", "b2", "eps", "weight_decay"),
  "sgd": ("momentum", "nesterov", "weight_decay"),
}


def make_schedule(config: TrainConfig) -> Callable[..., Float[Array, ""]]:
  """The learning rate as a function of the number of updates made so far."""
  text = NAMED_SCHEDULES.get(config.schedule, config.schedule)
  names = [name.strip() for name in text.split("*")]
  for name in names:
    if name not in FACTORS:
      known = (*FACTORS, *NAMED_SCHEDULES)
      raise UserError(spelling.unknown("schedule factor", name, known))
  config_lib.reject_unread(
    config,
    {field for _, fields in FACTORS.values() for field in fields},
    {field for name in names for field in FACTORS[name][1]},
    f"schedule={config.schedule!r}",
  )

  def schedule(step):
    t = jnp.asarray(step).astype(jnp.float32)
    return math.prod((FACTORS[name][0](t, config) for name in names), start=1.0)

  schedule(0)  # a missing field is reported here, not inside the jitted step
  return schedule


def make_optimizer(config: TrainConfig) -> optax.GradientTransformation:
  """Clipping by global norm, then the optimiser with its schedule."""
  config_lib.reject_unread(
    config,
    {field for fields in OPTIMIZERS.values() for field in fields},
    OPTIMIZERS[config.optimizer],
    f"optimizer={config.optimizer!r}",
  )
  schedule = make_schedule(config)
  adam: dict[str, Any] = {"b1": config.b1, "b2": config.b2, "eps": config.eps}
  if config.optimizer == "adam":
    optimizer = optax.adam(schedule, **adam)
  elif config.optimizer == "adamw":
    optimizer = optax.adamw(schedule, **adam, weight_decay=config.weight_decay)
  else:
    optimizer = optax.chain(
      optax.add_decayed_weights(config.weight_decay),
      optax.sgd(schedule, config.momentum or None, config.nesterov),
    )
  if config.grad_clip:
    clip = optax.clip_by_global_norm(config.grad_clip)
    optimizer = optax.chain(clip, optimizer)

  def update(updates, state, params=None):
    # optax multiplies floats with integer counts, an error in JAX's strict mode
    with jax.numpy_dtype_promotion("standard"):
      return optimizer.update(updates, state, params)

  return optax.GradientTransformation(optimizer.init, update)


def _require(config, factor, field):
  if getattr(config, field) < 1:
    raise UserError(f"schedule factor {factor} needs {field} to be at least 1")
