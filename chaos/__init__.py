"""Trials that try to spoil runs and data; see `python -m chaos --help`."""
