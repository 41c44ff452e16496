"""Compiled programs are shared by the runs of these tests."""

import jax
import pytest

_SETTINGS = {
  "jax_persistent_cache_min_compile_time_secs": 0,
  "jax_persistent_cache_min_entry_size_bytes": -1,
}


@pytest.fixture(scope="session", autouse=True)
def compilation_cache(tmp_path_factory):
  settings = _SETTINGS | {
    "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("cache"))
  }
  before = {name: getattr(jax.config, name) for name in settings}
  with pytest.MonkeyPatch.context() as patch:
    for name, value in settings.items():
      jax.config.update(name, value)
      patch.setenv(name.upper(), str(value))  # for subprocesses
    yield
  for name, value in before.items():
    jax.config.update(name, value)
