"""Numbers that others published for the full tasks, to compare with ours."""

SOURCE = "LION, arXiv 2502.16249, Tables 5 and 7"

# Model -> task -> test accuracy in percent.
_TASKS = ("listops", "text", "retrieval", "image", "pathfinder")
RESULTS = {
  model: dict(zip(_TASKS, accuracies, strict=True))
  for model, accuracies in {
    "Transformer": (36.37, 64.27, 57.46, 42.44, 71.40),
    "Linear Transformer": (16.13, 65.90, 53.09, 42.34, 75.30),
    "LION without decay": (16.78, 65.21, 54.0, 43.29, 72.78),
    "LION with selective decay from HiPPO time scales": (
      *(62.25, 88.10, 90.35, 86.14, 91.30),
    ),
    "S5": (62.15, 89.31, 91.40, 88.00, 95.33),
    "Mega": (63.14, 90.43, 91.25, 90.44, 96.01),
  }.items()
}
