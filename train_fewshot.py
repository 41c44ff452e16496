"""Learns new classes from a few images, beside the classes it knows.

  python train_fewshot.py
  python train_fewshot.py --config=configs/fewshot/omniglot.py --data_dir=DIR
  python train_fewshot.py --config=configs/fewshot/folder.py --data_dir=IMAGES

Stage 1 trains features and a cosine classifier on the base classes; stage 2
trains every head of the config on episodes; then all are tested on the same
episodes with novel classes. The same command continues a run that was stopped,
and trains the heads that are new in the config. In the end the folder holds
results.json, pictures, a folder for stage 1 and for each head, and in the
latter classifier.npz for `run.classifier.FewShotClassifier.load`.
"""

import dataclasses
from collections.abc import Sequence

from command_line import script
from fewshot import pictures, run, stage1
from nam_jax import training
from nam_jax.training import whole_files

CONFIG = "configs/fewshot/glyphs.py"


def main(argv: Sequence[str], usage: str = __doc__) -> None:
  """Trains and tests as the flags in argv say."""
  more = {"data_dir": "folder of the data; glyphs need none"}
  values, config = script.read(argv, usage, CONFIG, {}, more)
  training.connect()
  config = training.from_config_dict(config, config.FewShotConfig)
  experiment = config.make_experiment(config, values.workdir, values.data_dir)
  if not values.test_only:
    stage1.train(experiment)
  results = run.run_heads(experiment, train=not values.test_only)
  training.write_results(experiment.workdir, results)
  if training.is_main():
    whole_files.write_json(
      experiment.workdir / "config.json", dataclasses.asdict(config)
    )
    pictures.save(experiment.workdir, results)
    print(run.show(results))


if __name__ == "__main__":
  script.run(main, __doc__)
