"""Flax linen layers over `nam_jax.ops`, one family a file."""
