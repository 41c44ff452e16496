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

from algorithmic import pictures, run
from command_line import script
from nam_jax import training

CONFIG = "configs/algorithmic/palin.py:nam_tm"


def main(argv: Sequence[str]) -> None:
  """Trains and tests as the flags in argv say."""
  values = script.make_flags(__file__, CONFIG, argv)
  flags.DEFINE_list(
    "sweep",
    [],
    "further lengths to test, for instance 20,40,80",
    flag_values=values,
  )
  config = script.parse(values, argv, __doc__)
  with script.user_errors():
    sweep = [int(digits) for digits in values.sweep]
  training.connect()
  config = training.from_config_dict(config, run.AlgorithmicConfig)
  experiment = run.make_experiment(config, values.workdir)
  if not values.test_only:
    run.train(experiment)
  state = run.load(experiment)
  results = run.measure(experiment, state, sweep)
  training.write_results(experiment.workdir, results)
  if training.is_main():
    pictures.save(experiment, state, results)
    print(run.show(results))


if __name__ == "__main__":
  script.run(main)
