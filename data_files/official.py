"""Published archives and their MD5 checksums."""

import os
from typing import NamedTuple


class Archive(NamedTuple):
  """Where an archive is published, and its checksum."""

  url: str
  md5: str


IMDB = Archive(
  "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
  "7c2ac02c03563afcf9b574c7e56c153a",
)
CIFAR10 = Archive(
  "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
  "c32a1d4ab5d03f1284b67883e8d87530",
)
CIFAR100 = Archive(
  "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
  "03b5dce01913d631647c71ecec9e9cb8",
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
    CIFAR10,
    CIFAR100,
    OMNIGLOT_BACKGROUND,
    OMNIGLOT_EVALUATION,
  )
}
