"""For tests that start the same program several times: compile it once."""

import contextlib

import jax
from jax.experimental.compilation_cache import compilation_cache


@contextlib.contextmanager
def within(folder):
  """Keeps compiled programs in the folder, and reuses them."""
  settings = {
    "jax_compilation_cache_dir": str(folder),
    "jax_persistent_cache_min_compile_time_secs": 0.2,
  }
  before = {name: getattr(jax.config, name) for name in settings}
  _set(settings)
  try:
    yield
  finally:
    _set(before)


def _set(settings):
  for name, value in settings.items():
    jax.config.update(name, value)
  compilation_cache.reset_cache()
