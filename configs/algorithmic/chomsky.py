"""A task of the Chomsky suite: up to 40 symbols, tested on 41 to 500.

python train_algorithmic.py --config=configs/algorithmic/chomsky.py:parity,nam

Delétang et al. 2022 (arXiv 2207.02098). The number to compare is the token
accuracy, averaged over the lengths 41 to 500. The published models made a
million updates; these make 4,000. Questions and answers are those of the
published code.
"""

from configs.algorithmic import base

# In the order of the paper's table: regular, context-free, context-sensitive.
TASKS = (
  *("even_pairs", "modular_arithmetic", "parity", "cycle_navigation"),
  *("stack_manipulation", "reverse_string", "bracket_arithmetic"),
  *("solve_equation", "duplicate_string", "missing_duplicate", "odds_first"),
  *("binary_addition", "binary_multiplication", "square_root", "bucket_sort"),
)
# Those with a reading of their own; see their docstrings.
PUBLISHED = (
  *("even_pairs", "modular_arithmetic", "stack_manipulation"),
  *("solve_equation", "missing_duplicate", "odds_first"),
  *("binary_addition", "binary_multiplication"),
)


def get_config(arg: str = "reverse_string,nam_tm"):
  """arg: "task", "task,model" or "task,model,preset"."""
  task, _, rest = arg.partition(",")
  config = base.get_config(
    task, rest or "nam_tm", epochs=10, curriculum_start=8, protocol="chomsky"
  )
  if config.preset == "cpu":
    config.curriculum_full_at = 1 / 3
  if task in PUBLISHED:
    config.task_kwargs = {"published": True}
  # The longest tests have 1,500 tokens.
  config.eval_batch_size = 20
  base.lengthen_tapes(config, 1024)
  if config.model == "dnc":
    config.test_kwargs = {"num_slots": 512}
  if "max_len" in config.model_kwargs:
    config.model_kwargs.max_len = 1536
  return config
