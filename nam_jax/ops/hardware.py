"""What the program runs on, where that decides how it is computed."""

import jax


def on_cpu() -> bool:
  """Whether JAX's default backend is a CPU; asked while tracing."""
  return jax.default_backend() == "cpu"
