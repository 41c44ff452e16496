"""Runs end when they no longer get better, wherever they were stopped."""

import pytest

from nam_jax import training
from nam_jax.training import patience
from tests.training import toy


def history(*values, name="accuracy"):
  """Evaluations after 5, 10, ... updates, with a row of training between."""
  rows = []
  for i, value in enumerate(values, 1):
    rows.append({"step": 5 * i - 1, "kind": "train", name: 0.0})
    rows.append({"step": 5 * i, "kind": "eval", name: value})
  return rows


@pytest.mark.parametrize(
  ("values", "expected"),
  [
    ((), False),
    ((0.5,), False),
    ((0.5, 0.5), False),
    ((0.5, 0.5, 0.5), True),  # a tie is no new best
    ((0.5, 0.4, 0.6, 0.5), False),
    ((0.5, 0.4, 0.6, 0.5, 0.6), True),
    ((0.1, 0.2, 0.3, 0.4), False),
    ((0.5, None, None), True),  # not finite
    ((None, None, 0.1), False),
  ],
)
def test_two_evaluations_without_a_new_best_are_enough(values, expected):
  config = toy.make_config(patience=2)
  assert patience.is_over(config, history(*values)) == expected
  assert not patience.is_over(toy.make_config(), history(*values))


def test_the_metric_the_direction_and_the_start_can_be_chosen():
  falls = history(0.5, 0.4, 0.3, name="loss")
  assert patience.is_over(
    toy.make_config(patience=2, patience_metric="loss"), falls
  )
  assert not patience.is_over(
    toy.make_config(patience=2, selection_metric="loss", selection_mode="min"),
    falls,
  )
  # Of 15 updates, those before the tenth do not count.
  flat = history(0.5, 0.5, 0.5)
  assert not patience.is_over(
    toy.make_config(patience=2, patience_from=6), flat
  )


@pytest.mark.parametrize(
  ("values", "mode", "expected"),
  [
    ((0.5, 0.5, 0.5, 0.5), "max", False),
    ((0.5, 0.9, 0.9, 0.9), "max", True),
    ((0.5, 0.9, 0.8, 0.9, 0.9), "max", True),
    ((0.5, 0.9, None, 0.9), "max", False),
    ((0.9, 0.91, 0.92, 0.93), "max", False),
    ((2.0, 2.0, 0.9, 0.9), "min", False),
    ((2.0, 0.9, 0.9, 0.9), "min", True),
  ],
)
def test_evaluations_that_are_not_good_enough_do_not_count(
  values, mode, expected
):
  config = toy.make_config(
    patience=2,
    patience_metric="accuracy",
    patience_at=0.9,
    selection_mode=mode,
  )
  assert patience.is_over(config, history(*values)) == expected


def test_a_run_that_stands_still_ends_and_stays_ended(tmp_path):
  settings = {"learning_rate": 0.0, "num_steps": 40, "patience": 2}
  result = toy.run(tmp_path / "run", toy.make_config(**settings))
  steps = [row["step"] for row in result.history if row["kind"] == "eval"]
  assert steps == [5, 10, 15]
  assert result.state.step == result.best.step == 15
  again = toy.run(tmp_path / "run", toy.make_config(**settings))
  assert again.history == result.history
  assert toy.digest(again.state) == toy.digest(result.state)
  loaded = training.load(
    toy.make_config(**settings), tmp_path / "run", toy.init_fn
  )
  assert loaded.state.step == 15


def test_a_metric_that_is_not_evaluated_is_named(tmp_path):
  config = toy.make_config(patience=2, patience_metric="acuracy")
  with pytest.raises(
    training.UserError, match="patience_metric='acuracy' is not one of"
  ):
    toy.run(tmp_path / "run", config)
  with pytest.raises(training.UserError, match="patience=-1 must not be neg"):
    toy.make_config(patience=-1)


def test_runs_of_older_versions_had_no_patience():
  fields = training.TrainConfig().upgraded({"seed": 3})
  assert fields["seed"] == 3
  assert fields["patience"] == fields["patience_from"] == 0
  assert training.TrainConfig().upgraded({"patience": 7})["patience"] == 7
