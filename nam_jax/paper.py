"""The numbers of the paper's tables, to set ours beside them."""

SPLITS = ("id", "od_easy", "od_hard")

# Table 1, model -> task -> sequence accuracy in percent on the three splits.
ALGORITHMIC = {
  "nam_tm": {
    "palin": (100.0, 100.0, 100.0),
    "fib": (97.4, 89.7, 71.5),
    "reduce": (100.0, 100.0, 100.0),
  },
  "nam_tm_nojump": {
    "palin": (100.0, 100.0, 100.0),
    "fib": (40.4, 19.8, 1.1),
    "reduce": (100.0, 100.0, 100.0),
  },
  "lsam": {
    "palin": (100.0, 100.0, 100.0),
    "fib": (100.0, 39.9, 2.9),
    "reduce": (99.9, 96.8, 77.6),
  },
  "dnc": {
    "palin": (100.0, 100.0, 100.0),
    "fib": (46.9, 1.8, 0.0),
    "reduce": (100.0, 95.7, 60.1),
  },
  "ut": {
    "palin": (100.0, 99.2, 5.2),
    "fib": (99.1, 21.3, 0.1),
    "reduce": (98.7, 15.7, 0.0),
  },
  "lstm": {
    "palin": (100.0, 100.0, 100.0),
    "fib": (46.2, 8.3, 0.0),
    "reduce": (99.5, 91.5, 63.6),
  },
  "transformer": {
    "palin": (100.0, 65.6, 19.0),
    "fib": (98.9, 0.4, 0.0),
    "reduce": (99.6, 0.2, 0.0),
  },
}
ALGORITHMIC_TASKS = tuple(ALGORITHMIC["nam_tm"])

# Table 1, in millions of parameters.
PARAMETERS = {
  "nam_tm": 23.3,
  "nam_tm_nojump": 22.2,
  "lsam": 25.8,
  "dnc": 40.2,
  "ut": 26.0,
  "lstm": 31.5,
  "transformer": 28.7,
}

# Table 2, shots -> classifier -> accuracy in percent on mini-ImageNet with
# ResNetLike features: Both, Novel, Base.
FEWSHOT = {
  1: {"Cosine": (52.68, 56.00, 79.86), "NAM": (52.88, 56.11, 79.55)},
  5: {"Cosine": (57.86, 70.25, 79.37), "NAM": (60.15, 70.65, 78.87)},
}

# Table 3, attention -> task -> accuracy in percent, and the speed of training
# as a multiple of softmax attention's.
LRA = {
  "softmax": {
    "listops": (29.8, 1.0),
    "text": (57.3, 1.0),
    "cifar10": (40.16, 1.0),
  },
  "linear": {
    "listops": (36.5, 2.59),
    "text": (64.3, 2.35),
    "cifar10": (38.76, 10.02),
  },
  "nam": {
    "listops": (36.1, 2.66),
    "text": (63.5, 2.44),
    "cifar10": (37.18, 10.07),
  },
}
LRA_TASKS = tuple(LRA["softmax"])
