"""Every member of the delta-rule family against its step-by-step twin.

The twin is in float64, with JAX's own gradients.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nam_jax
from nam_jax.ops import precision
from tests.agreement import assert_agree, relative
from tests.reference import family

B, H, K, V = 2, 2, 16, 4  # the rows of memories are cut in pieces
FORMS = {"scan": nam_jax.memory_scan, "chunked": nam_jax.memory_chunked}
# Channels of the write gate, the erase gate and the decay; the largest p_e; and
# whether there is an erase key. Zero channels: a plain number.
MEMBERS = {
  "nam": (1, 1, None, 1, False),
  "deltanet, eigenvalues in [-1, 1]": (1, 1, None, 2, False),
  "gated deltanet": (1, 1, 1, 1, False),
  "kda": (1, 1, K, 1, False),
  "gated deltanet 2": (V, K, K, 2, False),
  "comba": (1, 1, 1, 1, True),
  "retnet": (0, 0, 1, 0, False),
  "gla": (0, 0, K, 0, False),
}


def inputs(
  member, s, seed=0, spread=1.0, decays=(-0.1, 0.0), strong=0.0, width=K
):
  """Arrays by the names of arguments; a share of the decays is strong."""
  write, erase, decay, most, own = MEMBERS[member]
  rng = np.random.default_rng(seed)
  centre = (1 - spread) * rng.normal(size=(1, B, 1, H, K))
  vectors = centre + spread * rng.normal(size=(3, B, s, H, K))
  q, k, e = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
  x = {"q": q, "k": k, "v": rng.normal(size=(B, s, H, V))}
  x["p_r"] = rng.random((B, s, H, 1))
  if write:
    x["p_w"] = rng.random((B, s, H, write))
  if erase:
    x["p_e"] = most * rng.random((B, s, H, erase))
  if own:
    # Without decay, keys that erase at random make a memory grow (to 62 here),
    # and the plain step is 1.0e-5 off in float32 itself.
    e = k + 0.3 * e if decays == (0.0, 0.0) else e
    x["erase_key"] = e / np.linalg.norm(e, axis=-1, keepdims=True)
  if decay:
    drawn = rng.uniform(*decays, (B, s, H, decay))
    x["log_decay"] = np.where(rng.random(drawn.shape) < strong, -20.0, drawn)
  arrays = x, rng.normal(size=(B, H, V, K))
  return jax.tree.map(lambda a: a[..., :width], arrays)


def weighted(result):
  """A scalar that depends on every output and on the final memory."""
  outputs, M = map(precision.widen, result)
  return jnp.sum(jnp.sin(outputs)) + jnp.sum(jnp.cos(M))


def twin(x, M, mask, ids, reverse):
  ones = jnp.ones_like(x["p_r"])
  e = x.get("erase_key", x["k"])
  given = {"p_w": ones, "p_e": 0 * ones, "log_decay": 0 * ones} | x
  changed = ids[:, 1:] != ids[:, :-1]
  first = jnp.pad(changed, ((0, 0), (0, 1) if reverse else (1, 0)))
  return family.sequence(given | {"erase_key": e}, M, mask, first, reverse)


def fast(form, x, M, mask, ids, reverse, packed):
  given = {
    name: a[..., 0] if a.shape[-1] == 1 else a
    for name, a in x.items()
    if name not in "qkv"
  }
  given = {"p_e": 0} | given
  options = {"segment_ids": ids} if packed else {}
  return form(
    x["q"],
    x["k"],
    x["v"],
    **given,
    **options,
    initial_memory=M,
    mask=mask,
    reverse=reverse,
  )


@functools.lru_cache
def compiled(form, reverse=False, packed=False):
  """Gradients and results of a form, or of the twin, as numpy arrays."""

  def total(x, M, mask, ids):
    if form == "twin":
      result = twin(x, M, mask, ids, reverse)
    else:
      result = fast(FORMS[form], x, M, mask, ids, reverse, packed)
    return weighted(result), result

  return jax.jit(jax.grad(total, (0, 1), has_aux=True))


def check(member, s, reverse=False, packed=False, dtype=np.float32, **options):
  """Compares both forms with the twin."""
  x, M = inputs(member, s, **options)
  rng = np.random.default_rng(1)
  mask = rng.random((B, s)) < 0.8
  ids = np.cumsum(rng.random((B, s)) < 0.05, axis=1) if packed else 0
  ids = np.broadcast_to(ids, (B, s)).astype(np.int32)
  narrow = jax.tree.map(lambda a: jnp.asarray(a, dtype), x)
  with jax.enable_x64(True):
    wide = jax.tree.map(lambda a: np.asarray(a, np.float64), narrow)
    wide_M = np.asarray(np.float32(M), np.float64)
    expected = jax.device_get(
      compiled("twin", reverse)(wide, wide_M, mask, ids)
    )
  for form in FORMS:
    run = compiled(form, reverse, packed)
    actual = jax.device_get(run(narrow, np.float32(M), mask, ids))
    if dtype == np.float32:
      assert_agree(actual, expected, 1e-5)
    else:
      for a, e in zip(*map(jax.tree.leaves, (actual, expected)), strict=True):
        assert relative(a.astype(np.float64), e) < 2e-2


@pytest.mark.parametrize("member", MEMBERS)
def test_every_member_equals_its_twin(member):
  check(member, 100)
  check(member, 100, spread=0.05, seed=1)  # keys are nearly equal
  if MEMBERS[member][2]:
    check(member, 100, decays=(-20.0, -20.0))
    check(member, 100, decays=(0.0, 0.0))
    # Sums of log decays must not be differences of long sums.
    check(member, 100, decays=(-0.01, -0.01), strong=0.3)


@pytest.mark.parametrize("s", [1, 63, 64, 1000])
def test_every_length_equals_the_twin(s):
  check("gated deltanet 2", s)


@pytest.mark.parametrize("member", ["gated deltanet", "gla"])
def test_rows_that_are_not_cut_in_pieces(member):
  check(member, 40, reverse=True, width=6)


@pytest.mark.parametrize("member", ["gated deltanet", "gated deltanet 2"])
@pytest.mark.parametrize("reverse", [False, True])
def test_packed_rows_in_both_directions(member, reverse):
  check(member, 100, reverse, packed=True)


def test_bfloat16_stays_within_its_rounding():
  check("gated deltanet", 100, dtype=jnp.bfloat16)


def test_second_derivatives_equal_the_twin():
  """With vmap and checkpoint between the two."""
  s = 10
  x, M = jax.tree.map(np.float32, inputs("gated deltanet", s))
  mask, ids = np.ones((B, s), bool), np.zeros((B, s), np.int32)
  rng = np.random.default_rng(4)
  tangent = jax.tree.map(lambda a: np.float32(rng.normal(size=a.shape)), x)

  def second(form, x, M, tangent):
    @jax.checkpoint
    def total(x):
      if form == "twin":
        return weighted(twin(x, M, mask, ids, False))
      return weighted(
        fast(FORMS[form], x, M, jnp.asarray(mask), None, False, False)
      )

    def slope(x):
      products = jax.tree.map(jnp.vdot, jax.grad(total)(x), tangent)
      return sum(jax.tree.leaves(products))

    one = jax.tree.map(lambda a: a[None], x)
    return jax.vmap(jax.grad(slope))(one)

  with jax.enable_x64(True):
    wide = jax.tree.map(np.float64, (x, M, tangent))
    expected = jax.jit(functools.partial(second, "twin"))(*wide)
  for form in FORMS:
    actual = jax.jit(functools.partial(second, form))(x, M, tangent)
    assert_agree(actual, expected, 1e-5)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_no_memory_is_kept_per_token(form):
  b, s, h, k = 2, 1024, 2, 64
  x = jax.ShapeDtypeStruct((b, s, h, k), jnp.float32)

  def total(q, k, v, log_decay):
    return weighted(form(q, k, v, log_decay=log_decay))

  gradient = jax.jit(jax.grad(total, range(4))).lower(x, x, x, x).compile()
  temporary = gradient.memory_analysis().temp_size_in_bytes
  assert temporary < s * b * h * k * k * 4 / 2


def test_twenty_thousand_tokens_with_decays_of_channels():
  x, M = inputs("gated deltanet 2", 20_000, decays=(-0.01, 0.0))
  run = [
    jax.jit(
      functools.partial(fast, form, reverse=False, packed=False, ids=None)
    )
    for form in FORMS.values()
  ]
  narrow = jax.tree.map(np.float32, (x, M))
  mask = np.ones((B, 20_000), bool)
  scan, chunked = (jax.device_get(f(*narrow, mask=mask)) for f in run)
  assert_agree(chunked, scan, 1e-5)


@pytest.mark.parametrize("form", [*FORMS.values(), nam_jax.memory])
@pytest.mark.parametrize("shape", [(0, 5, 2), (2, 0, 2), (2, 5, 0)])
def test_empty_inputs(form, shape):
  x, values = jnp.ones((*shape, K)), jnp.ones((*shape, V))

  def total(x, v, log_decay):
    outputs, M = form(x, x, v, log_decay=log_decay)
    return jnp.sum(outputs) + jnp.sum(M)

  for decay in (-jnp.ones(shape), -jnp.ones((*shape, K))):
    grads = jax.grad(total, (0, 1, 2))(x, values, decay)
    assert jax.tree.map(jnp.shape, grads) == (
      x.shape,
      values.shape,
      decay.shape,
    )


@pytest.mark.parametrize("form", [*FORMS.values(), nam_jax.memory])
def test_padding_may_hold_anything(form):
  x, M = inputs("gated deltanet 2", 20)
  x = jax.tree.map(np.float32, x)
  mask = np.random.default_rng(3).random((B, 20)) < 0.6

  def run(x, M):
    result = fast(form, x, M, jnp.asarray(mask), None, False, False)
    return weighted(result), result

  run = jax.jit(jax.grad(run, (0, 1), has_aux=True))
  clean = jax.tree.map(lambda a: np.where(mask[..., None, None], a, 0), x)
  expected = jax.device_get(run(clean, np.float32(M)))
  for rubbish in (np.nan, np.inf):
    dirty = jax.tree.map(
      lambda a, r=rubbish: np.where(mask[..., None, None], a, r), x
    )
    actual = jax.device_get(run(dirty, np.float32(M)))
    jax.tree.map(np.testing.assert_array_equal, actual, expected)
