"""The numbers of the paper's Table 2, and others to compare with."""

# Shots -> classifier -> accuracy in percent on mini-ImageNet with ResNetLike
# features: Both, Novel, Base.
ACCURACY = {
  1: {"Cosine": (52.68, 56.00, 79.86), "NAM": (52.88, 56.11, 79.55)},
  5: {"Cosine": (57.86, 70.25, 79.37), "NAM": (60.15, 70.65, 78.87)},
}

# Class-incremental learning, 60 base classes and 8 sessions of 5-way 5-shot,
# with ResNets: accuracy in percent over all classes so far, average of all
# sessions and after the last.
SESSIONS = {
  "mini-imagenet": {
    "TOPIC": (39.64, 24.42),
    "CEC": (57.75, 47.63),
    "FACT": (60.70, 50.49),
    "NC-FSCIL": (67.82, 58.31),
  }
}
