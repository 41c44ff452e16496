"""The numbers in the paper's Table 3, to compare with ours."""

# Attention -> task -> accuracy in percent, and the training speed as a
# multiple of softmax attention's.
RESULTS = {
  "softmax": {
    "listops": (29.8, 1.0),
    "text": (57.3, 1.0),
    "image": (40.16, 1.0),
  },
  "linear": {
    "listops": (36.5, 2.59),
    "text": (64.3, 2.35),
    "image": (38.76, 10.02),
  },
  "nam": {
    "listops": (36.1, 2.66),
    "text": (63.5, 2.44),
    "image": (37.18, 10.07),
  },
}
TASKS = tuple(RESULTS["softmax"])
