"""The folders that commands on the pages name, with tiny data in them.

DIR holds all data sets in their official formats, IMAGES a folder per class,
ZEBRA images of another class, CHECKOUT a config file of the Long Range Arena.
"""

import pathlib
import re

import numpy as np
import pytest

from lra_tasks import pathfinder_generator
from tests.data_files import writers
from tests.fewshot import miniature
from tests.lra_tasks import test_retrieval

# A word in capitals, alone or as the first folder of a path.
PLACEHOLDER = re.compile(r"(?<![\w.])(DIR|IMAGES|ZEBRA|CHECKOUT)(?![\w.])")

BASE = """
import ml_collections

def get_config():
  config = ml_collections.ConfigDict()
  config.batch_size = 2
  config.eval_frequency = 1
  config.num_train_steps = 1
  config.num_eval_steps = -1
  config.learning_rate = 0.001
  config.weight_decay = 0.0
  config.save_checkpoints = True
  config.restore_checkpoints = True
  config.checkpoint_freq = 10
  config.random_seed = 0
  config.factors = "constant * linear_warmup * cosine_decay"
  config.warmup = 1
  config.steps_per_cycle = 10
  config.grad_clip_norm = None
  config.model = {
    "emb_dim": 8, "num_heads": 2, "num_layers": 1, "qkv_dim": 8, "mlp_dim": 8,
    "classifier_pool": "CLS", "learn_pos_emb": True,
  }
  return config
"""
MODEL = """
from lra_benchmarks.image.configs.cifar10 import base_cifar10_config

def get_config():
  config = base_cifar10_config.get_config()
  config.model_type = "transformer"
  return config
"""


def fill(word: str, root: pathlib.Path) -> str:
  """The word with folders below root for its placeholders, made if needed."""

  def folder(match):
    path = root / match[1].lower()
    if not path.exists():
      path.mkdir()
      WRITERS[match[1]](path)
    return str(path)

  return PLACEHOLDER.sub(folder, word)


def write_data(folder: pathlib.Path) -> None:
  """DIR."""
  writers.write_archive(folder / "aclImdb_v1.tar.gz", writers.imdb_contents())
  batches = {
    f"cifar-10-batches-bin/{name}.bin": writers.cifar_binary(
      *writers.cifar_images(4, seed)
    )
    for seed, name in enumerate(writers.CIFAR_BATCHES)
  }
  writers.write_archive(folder / "cifar-10-binary.tar.gz", batches)
  test_retrieval.write_aan(folder)
  pathfinder_generator.write(folder, resolution=32, level="hard", count=12)
  writers.write_archive(
    folder / "cifar-100-binary.tar.gz",
    {
      "cifar-100-binary/train.bin": cifar100(3),
      "cifar-100-binary/test.bin": cifar100(2),
    },
  )
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(miniature, "PER_CLASS", 102)  # 100 are held out by default
    miniature.write_blob(folder)
  drawings = np.random.default_rng(0).integers(0, 2, (6, 8, 28, 28), np.uint8)
  characters = {}
  for part in ("background", "evaluation"):
    names = [f"{part}/character{n:02}" for n in range(6)]
    characters[f"images_{part}_28"] = 255 * drawings
    characters[f"images_{part}_names"] = np.array(names)
  np.savez(folder / "omniglot.npz", **characters)
  np.savez(
    folder / "features.npz",
    features=np.random.default_rng(0).normal(size=(60, 4)),
    labels=np.repeat(np.arange(6), 10),
    split=np.array(["base"] * 3 + ["val"] + ["novel"] * 2),
  )


def cifar100(per_class: int) -> bytes:
  """Records of CIFAR-100: a label of 20, a label of 100, three planes."""
  fine = np.repeat(np.arange(100, dtype=np.uint8), per_class)[:, None]
  planes = np.tile(fine, 3072)
  return np.concatenate([fine // 5, fine, planes], axis=1).tobytes()


def write_images(folder: pathlib.Path) -> None:
  """IMAGES: two classes of three images, which have their own colours."""
  for name, color in {"cat": (200, 60, 40), "dog": (40, 60, 200)}.items():
    write_pictures(folder / name, color)


def write_zebra(folder: pathlib.Path) -> None:
  """ZEBRA: three images of a third class."""
  write_pictures(folder, (60, 200, 60))


def write_pictures(folder: pathlib.Path, color: tuple[int, int, int]) -> None:
  """Three images of one color, with noise."""
  rng = np.random.default_rng(color)
  for number in range(3):
    pixels = color + rng.integers(0, 50, (40, 60, 3))
    picture = writers.png(pixels.astype(np.uint8))
    writers.write(folder / f"{number}.png", picture)


def write_checkout(folder: pathlib.Path) -> None:
  """CHECKOUT: a model's config, and the base that it imports."""
  package = folder / "lra_benchmarks"
  configs = package / "image" / "configs" / "cifar10"
  writers.write(package / "__init__.py", "")
  writers.write(configs / "base_cifar10_config.py", BASE)
  writers.write(configs / "transformer_base.py", MODEL)


WRITERS = {
  "DIR": write_data,
  "IMAGES": write_images,
  "ZEBRA": write_zebra,
  "CHECKOUT": write_checkout,
}
