"""The version of nam-jax, readable without importing anything else."""

__version__ = "0.2.0"
