"""Trains a model on an algorithmic task and tests it on longer inputs.

  python train_algorithmic.py
  python train_algorithmic.py --config=configs/algorithmic/fib.py:lsam
  python train_algorithmic.py --config=configs/algorithmic/palin.py:dnc,paper
  python train_algorithmic.py --config=configs/algorithmic/task.py:dyck,ut \\
    --config.learning_rate=1e-3 --workdir=runs/dyck

The same command continues a run that was stopped. In the end the folder holds
results.json, pictures, metrics.jsonl and checkpoints.
"""

from collections.abc import Sequence

from absl import flags

from experiments import algorithmic, algorithmic_pictures
from nam_jax import training
from nam_jax.training import command

CONFIG = "configs/algorithmic/palin.py:nam_tm"


def main(argv: Sequence[str]) -> None:
  """Trains and tests as the flags in argv say."""
  values = command.make_flags(__file__, CONFIG, argv)
  flags.DEFINE_list(
    "sweep",
    [],
    "further lengths to test, for instance 20,40,80",
    flag_values=values,
  )
  config = command.parse(values, argv, __doc__)
  with command.user_errors():
    sweep = [int(digits) for digits in values.sweep]
  training.connect()
  config = training.from_config_dict(config, algorithmic.AlgorithmicConfig)
  experiment = algorithmic.make_experiment(config, values.workdir)
  if not values.test_only:
    algorithmic.train(experiment)
  state = algorithmic.load(experiment)
  results = algorithmic.measure(experiment, state, sweep)
  training.write_results(experiment.workdir, results)
  if training.is_main():
    algorithmic_pictures.save(experiment, state, results)
    print(algorithmic.show(results))


if __name__ == "__main__":
  command.run(main)
