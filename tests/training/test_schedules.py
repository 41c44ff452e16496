"""Learning rates against hand-computed values, optimisers against formulas."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.training import (
  TrainConfig,
  UserError,
  make_optimizer,
  make_schedule,
)

FACTORS = "constant * linear_warmup * rsqrt_decay"


@pytest.mark.parametrize(
  ("settings", "expected"),
  [
    ({}, {0: 0.05, 7: 0.05}),
    (
      {"schedule": "warmup_cosine", "warmup_steps": 4, "num_steps": 12},
      # cosine over the 8 steps after the warm-up: ½(1 + cos(π · 2/8)) at 6
      {0: 0.0, 1: 0.0125, 4: 0.05, 6: 0.0426777, 8: 0.025, 12: 0.05},
    ),
    (
      {"schedule": "exponential", "decay_factor": 0.98, "steps_per_decay": 200},
      {0: 0.05, 199: 0.05, 200: 0.049, 399: 0.049, 400: 0.04802},
    ),
    # LRA listops: 1.58e-3 at step 1000, 7.07e-4 at step 5000
    (
      {"schedule": FACTORS, "warmup_steps": 1000},
      {0: 0.0, 500: 7.905694e-4, 1000: 1.581139e-3, 5000: 7.071068e-4},
    ),
    # LRA retrieval ends at 5000 of 8000 steps of warm-up
    ({"schedule": FACTORS, "warmup_steps": 8000}, {5000: 3.493856e-4}),
    (
      {
        "schedule": "constant*rsqrt_normalized_decay",
        "warmup_steps": 100,
      },
      {0: 0.05, 100: 0.05, 400: 0.025},
    ),
    (
      {"schedule": "decay_every", "steps_per_decay": 3},
      {0: 1.0, 2: 1.0, 3: 0.5, 6: 0.25, 8: 0.25},
    ),
    # a second cosine period starts at full height
    (
      {
        "schedule": "cosine_decay",
        "warmup_steps": 2,
        "steps_per_cycle": 4,
      },
      {0: 1.0, 2: 1.0, 4: 0.5, 5: 0.1464466, 6: 1.0, 8: 0.5},
    ),
    (
      {
        "schedule": "constant * piecewise",
        "boundaries": (20, 40),
        "scales": (2.0, 0.12, 0.02),
      },
      {0: 0.1, 19: 0.1, 20: 0.006, 39: 0.006, 40: 0.001, 99: 0.001},
    ),
  ],
)
def test_schedule_values(settings, expected):
  schedule = make_schedule(TrainConfig(learning_rate=0.05, **settings))
  got = {t: float(jax.jit(schedule)(t)) for t in expected}
  assert got == pytest.approx(expected, rel=2e-6, abs=1e-9)
  got = {t: float(schedule(jnp.int32(t))) for t in expected}
  assert got == pytest.approx(expected, rel=2e-6, abs=1e-9)


@pytest.mark.parametrize(
  ("settings", "message"),
  [
    ({"schedule": "constant * warmup"}, "unknown schedule factor 'warmup'"),
    ({"schedule": "rsqrt_decay"}, "rsqrt_decay needs warmup_steps"),
    ({"schedule": "exponential"}, "decay_every needs steps_per_decay"),
    ({"schedule": "piecewise", "scales": (1.0, 2.0)}, "needs 1 scales"),
    ({"warmup_steps": 5}, "warmup_steps=5 has no effect: schedule='constant'"),
    ({"weight_decay": 0.1}, "weight_decay=0.1 has no effect: optimizer='adam'"),
    ({"momentum": 0.9}, "momentum=0.9 has no effect"),
    ({"optimizer": "sgd", "b2": 0.98}, "b2=0.98 has no effect"),
  ],
)
def test_settings_that_mean_nothing_are_errors(settings, message):
  with pytest.raises(UserError, match=message):
    make_optimizer(TrainConfig(**settings))


def _update(gradients, params, **settings):
  """The parameter after the gradients, one update each."""
  optimizer = make_optimizer(TrainConfig(**settings))
  params = jnp.asarray(params)
  state = optimizer.init(params)
  for gradient in gradients:
    update, state = optimizer.update(jnp.asarray(gradient), state, params)
    params = params + update
  return np.asarray(params)


def test_adam_first_step_is_the_learning_rate():
  got = _update([[0.3, -2.0]], [1.0, 1.0], learning_rate=0.01)
  np.testing.assert_allclose(got, [0.99, 1.01], rtol=1e-6)


def test_adamw_decays_every_parameter_by_rate_times_decay():
  settings = {"b1": 0.9, "b2": 0.98, "eps": 1e-9, "weight_decay": 0.1}
  got = _update(
    [[3.0]], [2.0], optimizer="adamw", learning_rate=0.5, **settings
  )
  np.testing.assert_allclose(got, [2 - 0.5 * 1 - 0.5 * 0.1 * 2], rtol=1e-6)


def test_sgd_adds_decay_to_the_gradient_and_keeps_momentum():
  # g = 1 + 0.5·2 = 2, p = 1.8; then g = 1.9, velocity 0.9·2 + 1.9, p = 1.43
  got = _update(
    [[1.0], [1.0]],
    [2.0],
    optimizer="sgd",
    learning_rate=0.1,
    momentum=0.9,
    weight_decay=0.5,
  )
  np.testing.assert_allclose(got, [1.43], rtol=1e-6)


def test_clipping_scales_to_the_global_norm():
  settings = {"optimizer": "sgd", "learning_rate": 1.0, "grad_clip": 0.5}
  got = _update([[3.0, 4.0]], [0.0, 0.0], **settings)
  np.testing.assert_allclose(got, [-0.3, -0.4], rtol=1e-6)
  got = _update([[0.03, 0.04]], [0.0, 0.0], **settings)
  np.testing.assert_allclose(got, [-0.03, -0.04], rtol=1e-6)
  assert math.hypot(0.03, 0.04) < 0.5
