"""The numbers in the paper's Table 1, to compare with ours."""

SPLITS = ("id", "od_easy", "od_hard")

# Model -> task -> sequence accuracy in percent on the three splits.
ACCURACY = {
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
TASKS = tuple(ACCURACY["nam_tm"])

# In millions of parameters.
PARAMETERS = {
  "nam_tm": 23.3,
  "nam_tm_nojump": 22.2,
  "lsam": 25.8,
  "dnc": 40.2,
  "ut": 26.0,
  "lstm": 31.5,
  "transformer": 28.7,
}
