"""Inputs, augmentation, features."""

import functools

import jax
import numpy as np
import pytest

from fewshot import backbones, network


@pytest.fixture(scope="module")
def images():
  rng = np.random.default_rng(0)
  return rng.integers(0, 256, (7, 12, 10, 3)).astype(np.uint8)


def test_shifts_stay_inside_the_padding(images):
  shifted = np.asarray(network.augment(jax.random.key(0), images, 2, False))
  padded = np.pad(images, ((0, 0), (2, 2), (2, 2), (0, 0)))
  seen = set()
  for image, large in zip(shifted, padded, strict=True):
    corners = [
      (y, x)
      for y in range(5)
      for x in range(5)
      if (large[y : y + 12, x : x + 10] == image).all()
    ]
    assert len(corners) == 1
    seen.update(corners)
  assert len(seen) > 2


def test_reflections_touch_some_images(images):
  images = np.tile(images, (4, 1, 1, 1))
  found = np.asarray(network.augment(jax.random.key(0), images, 0, True))
  mirrored = [
    (a == b[:, ::-1]).all() for a, b in zip(found, images, strict=True)
  ]
  same = [(a == b).all() for a, b in zip(found, images, strict=True)]
  assert all(m != s for m, s in zip(mirrored, same, strict=True))
  assert 4 < sum(mirrored) < 24


def test_no_augmentation_changes_nothing(images):
  found = network.augment(jax.random.key(0), images, 0, False)
  np.testing.assert_array_equal(found, images)


@functools.cache
def compiled(name, **fields):
  """A base network, its init and its apply."""
  net = network.BaseNetwork(backbones.make_backbone(name, **fields), 4)
  return net, jax.jit(net.init), jax.jit(net.apply)


def make(data, name="conv", **fields):
  """A base network's apply with variables for the data."""
  _, init, apply = compiled(name, **fields)
  variables = init(jax.random.key(0), data[:1])
  variables = network.with_input_stats(variables, data)
  return variables, functools.partial(apply, variables)


def test_inputs_are_centred_and_scaled(images):
  variables, apply = make(images, widths=(4,))
  x = images.astype(np.float32)
  mean, std = x.mean((0, 1, 2)), x.std((0, 1, 2))
  expected = jax.jit(backbones.make_backbone("conv", widths=(4,)).apply)(
    {name: variables[name]["backbone"] for name in ("params", "batch_stats")},
    (x - mean) / std,
  )
  features, logits = apply(images)
  np.testing.assert_allclose(features, expected, rtol=1e-3, atol=1e-3)
  assert (np.abs(logits) <= network.SCALE + 1e-4).all()


@pytest.mark.parametrize("rows", [2, 7, 50])
def test_extracted_features_do_not_depend_on_the_portions(images, rows):
  variables, apply = make(images, widths=(4,))
  net, _, _ = compiled("conv", widths=(4,))
  found = network.make_extract(net, rows)(variables, images)
  np.testing.assert_allclose(found, apply(images)[0], atol=1e-5)


def test_mirrored_features_are_the_same_for_a_mirror_image(images):
  variables, apply = make(images, widths=(4,))
  net, _, _ = compiled("conv", widths=(4,))
  extract = network.make_extract(net, mirror=True)
  found, mirrored = extract(variables, images), images[:, :, ::-1]
  expected = (apply(images)[0] + apply(mirrored)[0]) / 2
  np.testing.assert_allclose(found, expected, atol=1e-5)
  np.testing.assert_allclose(extract(variables, mirrored), found, atol=1e-5)
  assert np.abs(found - apply(images)[0]).max() > 1e-3


def test_features_pass_through_the_identity():
  data = np.random.default_rng(0).normal(2, 3, (20, 5)).astype(np.float32)
  _, apply = make(data, "identity")
  features = np.asarray(apply(data)[0])
  np.testing.assert_allclose(features.mean(0), np.zeros(5), atol=1e-4)
  np.testing.assert_allclose(features.std(0), np.ones(5), atol=1e-4)
