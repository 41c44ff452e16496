"""Flax linen layers over `nam_jax.ops`, one family per file."""
