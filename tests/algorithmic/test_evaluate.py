"""Accuracies of perfect, broken and arbitrary predictors."""

import json

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from algorithmic import data, evaluate
from algorithmic.tasks import registry

PALIN = registry.make_task("palin")


@pytest.fixture(scope="module")
def split():
  return data.take(data.validation_set(PALIN, "od_easy"), np.arange(100))


def reverse(inputs, tokens):
  """Solves palin from the inputs alone."""
  out = inputs.copy()
  for row, real in zip(out, tokens, strict=True):
    columns = np.flatnonzero(real)
    digits = (len(columns) - 3) // 2
    row[columns[-1 - digits : -1]] = row[columns[1 : 1 + digits]][::-1]
  return out


def test_perfect_predictor_is_perfect(split):
  result = evaluate.evaluate(reverse, split, batch_size=32)
  assert result["sequence_accuracy"] == 1.0
  assert result["token_accuracy"] == 1.0
  assert result["samples"] == 100
  assert list(result["by_digits"]) == [11, 12, 13]
  for by in result["by_digits"].values():
    assert by["sequence_accuracy"] == by["token_accuracy"] == 1.0


def test_echo_of_the_inputs_is_always_wrong(split):
  result = evaluate.evaluate(lambda inputs, _: inputs, split, batch_size=32)
  assert result["sequence_accuracy"] == 0.0
  assert result["token_accuracy"] == 0.0


def test_unmasked_positions_do_not_count(split):
  def careless(inputs, tokens):
    return np.where(inputs == 14, reverse(inputs, tokens), 15)

  result = evaluate.evaluate(careless, split, batch_size=32)
  assert result["sequence_accuracy"] == 1.0


def test_one_wrong_token_spoils_its_sequence_only(split):
  def slip(inputs, tokens):
    out = reverse(inputs, tokens)
    long = tokens.sum(axis=1) == PALIN.sequence_length(13)
    first = (inputs == 14).argmax(axis=1)
    out[long, first[long]] = 15
    return out

  result = evaluate.evaluate(slip, split, batch_size=32)
  # Rows cycle through 11, 12, 13 digits: 34, 33 and 33 of them.
  assert result["sequence_accuracy"] == pytest.approx(67 / 100)
  tokens = 34 * 11 + 33 * 12 + 33 * 13
  assert result["token_accuracy"] == pytest.approx((tokens - 33) / tokens)
  assert result["by_digits"][11]["sequence_accuracy"] == 1.0
  assert result["by_digits"][13] == {
    "sequence_accuracy": 0.0,
    "token_accuracy": pytest.approx(12 / 13),
    "samples": 33,
  }


@pytest.mark.parametrize("batch_size", [1, 32, 50, 100, 1000])
def test_batch_size_changes_nothing_and_calls_have_one_shape(split, batch_size):
  shapes = set()

  def recorded(inputs, tokens):
    shapes.add((inputs.shape, tokens.shape))
    out = reverse(inputs, tokens)
    return np.where(tokens.sum(axis=1)[:, None] > 27, 0, out)

  result = evaluate.evaluate(recorded, split, batch_size)
  shape = (batch_size, split.inputs.shape[1])
  assert shapes == {(shape, shape)}
  assert result["sequence_accuracy"] == 0.67
  assert result["samples"] == 100


@hypothesis.settings(deadline=None, database=None, max_examples=30)
@hypothesis.given(strategies.integers(0, 2**32 - 1), strategies.integers(1, 40))
def test_equals_a_count_by_hand(seed, batch_size):
  rng = np.random.default_rng(seed)
  batch = PALIN.sample(rng, rng.integers(1, 4, 25))
  guess = np.where(rng.random(batch.targets.shape) < 0.8, batch.targets, 0)
  answers = {
    row.tobytes(): answer
    for row, answer in zip(batch.inputs, guess, strict=True)
  }

  def lookup(inputs, tokens):
    return np.stack([answers[row.tobytes()] for row in inputs])

  # Equal questions get equal guesses, in the manual count too.
  predicted = lookup(batch.inputs, batch.mask)
  sequences = tokens = masked = 0
  for row in range(25):
    wrong = 0
    for column in range(batch.inputs.shape[1]):
      if batch.loss_mask[row, column]:
        masked += 1
        hit = predicted[row, column] == batch.targets[row, column]
        tokens += int(hit)
        wrong += not hit
    sequences += wrong == 0
  result = evaluate.evaluate(lookup, batch, batch_size)
  assert result["sequence_accuracy"] == pytest.approx(sequences / 25)
  assert result["token_accuracy"] == pytest.approx(tokens / masked)
  by_digits = result["by_digits"].values()
  assert sum(by["samples"] for by in by_digits) == 25


def test_result_can_be_written_as_json(split):
  result = evaluate.evaluate(reverse, split, batch_size=64)
  assert json.loads(json.dumps(result))["by_digits"]["12"]["samples"] == 33


def test_logits_instead_of_tokens_are_refused(split):
  with pytest.raises(ValueError, match=r"shape \(32, 33\), got .*33, 16"):
    evaluate.evaluate(
      lambda inputs, _: np.zeros((*inputs.shape, 16)), split, batch_size=32
    )


def test_batch_size_of_zero_is_refused(split):
  with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
    evaluate.evaluate(reverse, split, batch_size=0)
