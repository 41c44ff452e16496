"""Archives that are published, with the checksums of the true ones."""

import os
from typing import NamedTuple


class Archive(NamedTuple):
  """Where an archive is published, and the checksum of the true one."""

  url: str
  md5: str


IMDB = Archive(
  "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
  "7c2ac02c03563afcf9b574c7e56c153a",
)
CIFAR10_BINARY = Archive(
  "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
  "c32a1d4ab5d03f1284b67883e8d87530",
)
CIFAR10_PYTHON = Archive(
  "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
  "c58f30108f718f92721af3b95e74349a",
)
CIFAR100_BINARY = Archive(
  "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
  "03b5dce01913d631647c71ecec9e9cb8",
)
CIFAR100_PYTHON = Archive(
  "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
  "eb9058c3a382ffc7106e4002c42a8d85",
)
_OMNIGLOT = "https://github.com/brendenlake/omniglot/raw/master/python/"
OMNIGLOT_BACKGROUND = Archive(
  f"{_OMNIGLOT}images_background.zip", "68d2efa1b9178cc56df9314c21c6e718"
)
OMNIGLOT_EVALUATION = Archive(
  f"{_OMNIGLOT}images_evaluation.zip", "6b91aef0f799c5bb55b94e3f2daec811"
)
BY_NAME = {
  os.path.basename(archive.url): archive
  for archive in (
    IMDB,
    CIFAR10_BINARY,
    CIFAR10_PYTHON,
    CIFAR100_BINARY,
    CIFAR100_PYTHON,
    OMNIGLOT_BACKGROUND,
    OMNIGLOT_EVALUATION,
  )
}
