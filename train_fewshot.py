"""Learns new classes from a few images, beside the classes it knows.

  python train_fewshot.py
  python train_fewshot.py --config=configs/fewshot/glyphs.py:nam,cosine
  python train_fewshot.py --config=configs/fewshot/omniglot.py --data_dir=DIR
  python train_fewshot.py --config=configs/fewshot/folder.py --data_dir=IMAGES

Stage 1 trains features and a cosine classifier on the base classes; stage 2
trains every head of the config on episodes; then all are tested on the same
episodes with novel classes. The same command continues a run that was stopped,
and trains the heads that are new in the config. In the end the folder holds
results.json, pictures, and a folder for stage 1 and for each head, with the
head's classifier.npz for `fewshot.classifier.FewShotClassifier.load`.

A config is file.py:heads,preset; --config.data may name other data.
"""

from collections.abc import Sequence

from command_line import script
from configs.fewshot import base
from fewshot import run, table
from fewshot.data import registry
from nam_jax import training

CONFIG = "configs/fewshot/glyphs.py"


def main(argv: Sequence[str], usage: str = __doc__) -> None:
  """Trains and tests as the flags in argv say."""
  names = {
    "heads": base.CHOICES,
    "presets": ("cpu (default)", "paper (of cifar.py and mini_imagenet.py)"),
    "data": registry.SOURCES,
  }
  more = {"data_dir": "folder of the data; glyphs need none"}
  values, config = script.read(argv, usage, CONFIG, names, more)
  training.connect()
  config = training.from_config_dict(config, run.FewShotConfig)
  experiment = run.make_experiment(config, values.workdir, values.data_dir)
  results = run.run(experiment, train=not values.test_only)
  if training.is_main():
    print(table.show(results))


if __name__ == "__main__":
  script.run(main, __doc__)
