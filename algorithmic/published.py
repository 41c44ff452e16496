"""Numbers that others published for other protocols than the paper's."""

# Delétang et al. 2022: token accuracy in percent, averaged over the lengths 41
# to 500, the best of ten seeds and of all settings.
CHOMSKY_SOURCE = "Delétang et al., arXiv 2207.02098, best of 10 seeds"
_CHOMSKY_MODELS = ("RNN", "Stack-RNN", "Tape-RNN", "Transformer", "LSTM")
_CHOMSKY = {
  "even_pairs": (100, 100, 100, 96.4, 100),
  "modular_arithmetic": (100, 100, 100, 24.2, 100),
  "parity": (100, 100, 100, 52.0, 100),
  "cycle_navigation": (100, 100, 100, 61.9, 100),
  "stack_manipulation": (56.0, 100, 100, 57.5, 59.1),
  "reverse_string": (62.0, 100, 100, 62.3, 60.9),
  "bracket_arithmetic": (41.3, 96.1, 95.4, 32.5, 59.2),
  "solve_equation": (51.0, 56.2, 64.4, 25.7, 67.8),
  "duplicate_string": (50.3, 52.8, 100, 52.8, 57.6),
  "missing_duplicate": (52.3, 55.2, 100, 56.4, 54.3),
  "odds_first": (51.0, 51.9, 100, 52.8, 55.6),
  "binary_addition": (50.3, 52.7, 100, 54.3, 55.5),
  "binary_multiplication": (50.0, 52.7, 58.5, 52.2, 53.1),
  "square_root": (54.3, 56.5, 57.8, 52.4, 57.5),
  "bucket_sort": (27.9, 78.1, 70.7, 91.9, 99.3),
}
CHOMSKY_TASKS = tuple(_CHOMSKY)
# Quoted from memory, and still to be checked against the paper.
CHOMSKY_UNCHECKED = (
  *("even_pairs", "cycle_navigation", "bracket_arithmetic", "solve_equation"),
  *("missing_duplicate", "binary_addition", "binary_multiplication"),
  *("square_root", "bucket_sort"),
)
# Model -> task -> number.
CHOMSKY = {
  model: {task: numbers[i] for task, numbers in _CHOMSKY.items()}
  for i, model in enumerate(_CHOMSKY_MODELS)
}

# Grazzi et al. 2024: accuracy on 40 to 256 tokens, scaled so that guessing is
# 0, the best of three seeds. In brackets, the eigenvalues: with [-1, 1], p_e
# (their beta) is up to 2.
STATE_TRACKING_SOURCE = (
  "Grazzi et al., arXiv 2411.12537, Table 3, best of 3 seeds"
)
_STATE_TRACKING_TASKS = ("parity", "modular_arithmetic", "bracket_arithmetic")
STATE_TRACKING = {
  model: dict(zip(_STATE_TRACKING_TASKS, numbers, strict=True))
  for model, numbers in {
    "Transformer": (0.022, 0.031, 0.067),
    "mLSTM": (0.087, 0.040, 0.114),
    "sLSTM": (1.000, 0.787, 0.178),
    "Mamba [0, 1]": (0.000, 0.095, 0.123),
    "Mamba [-1, 1]": (1.000, 0.241, 0.116),
    "DeltaNet [0, 1]": (0.017, 0.314, 0.194),
    "DeltaNet [-1, 1]": (1.000, 0.971, 0.260),
  }.items()
}
