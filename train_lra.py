"""Trains a classifier on a task of the Long Range Arena and tests it.

  python train_lra.py --config=configs/lra/listops.py:nam,cpu
  python train_lra.py --config=configs/lra/text.py:nam --data_dir=DIR
  python train_lra.py --config=CHECKOUT/lra_benchmarks/image/configs/cifar10/\\
transformer_base.py --task_name=cifar10 --data_dir=DIR --attention=nam

The config is one of ours, "file:attention,preset" with preset lra (the
benchmark's sizes, the default), paper or cpu, or one of the benchmark's own
files, unchanged. The same command continues a run that was stopped. In the end
the folder holds results.json, metrics.jsonl, summary/ and checkpoints.
"""

from collections.abc import Sequence

from absl import flags

from command_line import script
from lra_tasks import run, upstream
from nam_jax import training
from nam_jax.models import lra as models

CONFIG = "configs/lra/listops.py:nam,cpu"


def make_flags(argv: Sequence[str]) -> flags.FlagValues:
  """The flags of this script; reads the config file that argv names."""
  values = script.make_flags(__file__, CONFIG, argv, folder="model_dir")
  for name, text in {
    "task_name": "basic, imdb_reviews, aan, cifar10 or pathfinder{32,64,128,"
    "256}_{easy,inter,hard} (default: what the config is for)",
    "data_dir": "folder of the data; without it, basic generates its own",
    "attention": "instead of the config's: " + ", ".join(models.KINDS),
  }.items():
    flags.DEFINE_string(name, "", text, flag_values=values)
  return values


def read_config(values: flags.FlagValues, argv: Sequence[str]) -> run.LRAConfig:
  """Our config, also from one of the benchmark's; prints what to know."""
  fields = script.parse(values, argv, __doc__).to_dict()
  task, notices = values.task_name, []
  if upstream.is_upstream(fields):
    task = task or upstream.task_of(script.config_file(argv, CONFIG))
    fields, notices = upstream.translate(fields, task)
  fields["task"] = task or fields["task"]
  if values.attention and values.attention != fields["attention"]:
    fields["attention"] = values.attention
    if fields.get("attention_kwargs"):
      notices.append(f"--attention drops {fields['attention_kwargs']}")
    fields["attention_kwargs"] = {}
  if training.is_main():
    for notice in notices:
      print(f"notice: {notice}")
  return training.from_config_dict(fields, run.LRAConfig)


def main(argv: Sequence[str]) -> None:
  """Trains and tests as the flags in argv say."""
  upstream.make_importable(script.config_file(argv, CONFIG))
  values = make_flags(argv)
  training.connect()
  config = read_config(values, argv)
  experiment = run.make_experiment(config, values.model_dir, values.data_dir)
  if not values.test_only:
    run.train(experiment)
  results = run.measure(experiment)
  training.write_results(experiment.workdir, results)
  if training.is_main():
    print(run.show(results))


if __name__ == "__main__":
  script.run(main)
