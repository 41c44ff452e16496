"""One training engine for every experiment; it knows no model and no task.

`fit` trains a function given by `init_fn` and `loss_fn` on a source of data
and leaves behind checkpoints, metrics and the config. See `loop` for the loop,
`step` for the one compiled update, `data` for what a source is.

Names are imported when they are first used, so that a loss does not need the
packages that read data and write checkpoints.
"""

from etils import epy

with epy.lazy_api_imports(globals()):
  from nam_jax.training.completion import make_loss_fn, make_predict
  from nam_jax.training.config import TrainConfig, from_config_dict
  from nam_jax.training.data import eval_batches, train_batches
  from nam_jax.training.devices import connect, is_main, place
  from nam_jax.training.errors import TrainingDiverged, UserError
  from nam_jax.training.loop import FitResult, fit, load
  from nam_jax.training.losses import (
    masked_cross_entropy,
    sequence_accuracy,
    token_accuracy,
  )
  from nam_jax.training.metrics_log import read_metrics
  from nam_jax.training.run_dir import versions, write_results
  from nam_jax.training.schedules import make_optimizer, make_schedule
  from nam_jax.training.state import (
    TrainState,
    parameter_count,
    parameter_table,
  )
  from nam_jax.training.step import (
    make_eval_step,
    make_train_step,
    mean_metrics,
  )

__all__ = [
  "FitResult",
  "TrainConfig",
  "TrainState",
  "TrainingDiverged",
  "UserError",
  "connect",
  "eval_batches",
  "fit",
  "from_config_dict",
  "is_main",
  "load",
  "make_eval_step",
  "make_loss_fn",
  "make_optimizer",
  "make_predict",
  "make_schedule",
  "make_train_step",
  "masked_cross_entropy",
  "mean_metrics",
  "parameter_count",
  "parameter_table",
  "place",
  "read_metrics",
  "sequence_accuracy",
  "token_accuracy",
  "train_batches",
  "versions",
  "write_results",
]
