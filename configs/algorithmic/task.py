"""Any registered task, on up to 10 digits, tested on up to 16.

python train_algorithmic.py --config=configs/algorithmic/task.py:copy,nam_tm

`python -m algorithmic.show --help` lists the tasks.
"""

from configs.algorithmic import base


def get_config(arg: str = "copy,nam_tm"):
  """arg: "task", "task,model" or "task,model,preset"."""
  task, _, rest = arg.partition(",")
  return base.get_config(task, rest or "nam_tm", epochs=4)
