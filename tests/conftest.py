"""Strictness for every test: no silent promotion, no silent warning.

Most of the time goes into compiling programs that run once, so LLVM compiles
them without optimising, even in processes that tests start. Test workers share
the cores, so a program runs in one thread.
"""

import os

import jax
import pytest

from command_line import interrupt
from tests import linen_tools

# JAX reads this later, when it first looks for devices.
os.environ["XLA_FLAGS"] = " ".join(
  (
    os.environ.get("XLA_FLAGS", ""),
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_multi_thread_eigen=false",
  )
).strip()
# Scripts that a test calls must not change its process's signal handlers.
interrupt.install = lambda: None
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_collection_modifyitems(items):
  """Whole programs first: at the end, workers share what is quick."""
  items.sort(key=lambda item: item.path.parent.name != "tests")


@pytest.fixture
def key() -> jax.Array:
  """A fixed random key; split it for more."""
  return jax.random.key(0)


@pytest.fixture(scope="module")
def inputs(request):
  """Normal numbers [B S D], with the sizes set in the test's module."""
  module = request.module
  return linen_tools.normal(module.B, module.S, module.D)
