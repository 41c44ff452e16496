"""The old name of retrieval.py."""

from configs.lra.retrieval import get_config as get_config
