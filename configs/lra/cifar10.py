"""The old name of image.py."""

from configs.lra.image import get_config as get_config
