"""State tracking: 3 to 40 symbols, tested on 40 to 256.

python train_algorithmic.py \\
  --config=configs/algorithmic/state_tracking.py:parity,nam

The protocol of Grazzi et al. 2024 (arXiv 2411.12537). The task is `parity`,
`cycle_navigation`, `modular_arithmetic`, `bracket_arithmetic`, or a group, such
as S3, S5, A5 or Z60, whose product so far is asked for at every element. Runs
do not end once a task is solved: a rotation must be exact to hold for long.
"""

from configs.algorithmic import base

# Fields of the tasks; lengths count all symbols of an expression.
FIELDS = {
  "modular_arithmetic": {"published": True},
  "bracket_arithmetic": {"products": True},
}
# Epochs; short expressions come first, as long ones teach nothing at the start.
EPOCHS, EPOCHS_OF_ARITHMETIC = 15, 30


def get_config(arg: str = "parity,nam"):
  """arg: "task", "task,model" or "task,model,preset"."""
  task, _, rest = arg.partition(",")
  fields = FIELDS.get(task, {})
  is_arithmetic = task in FIELDS
  if task[:1] in ("S", "A", "Z"):
    task, fields = "group", {"group": task, "every": True}
  config = base.get_config(
    task,
    rest or "nam",
    epochs=EPOCHS_OF_ARITHMETIC if is_arithmetic else EPOCHS,
    curriculum_start=3 if is_arithmetic else None,
    protocol="state_tracking",
  )
  if config.preset == "cpu":
    config.patience = 0
    config.curriculum_full_at = 1 / 2
  config.task_kwargs = fields
  config.eval_batch_size = 128
  base.lengthen_tapes(config, 512)
  if "max_len" in config.model_kwargs:
    config.model_kwargs.max_len = 320
  return config
