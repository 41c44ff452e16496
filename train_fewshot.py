"""Learns new classes from a few images, in addition to known classes.

  python train_fewshot.py
  python train_fewshot.py --config=configs/fewshot/glyphs.py:nam,cosine
  python train_fewshot.py --config=configs/fewshot/omniglot.py --data_dir=DIR
  python train_fewshot.py --config=configs/fewshot/folder.py --data_dir=IMAGES

Stage 1 trains features and a cosine classifier on the base classes; stage 2
trains every head of the config on episodes; then all are tested on the same
episodes with novel classes. The same command continues a stopped run, and
trains heads that are new in the config. The run's folder gets results.json,
pictures, and a folder for stage 1 and for each head, with the head's
classifier.npz for `fewshot.classifier.FewShotClassifier.load`.

A config is file.py:heads,preset; --config.data may name other data.
"""

from command_line import interrupt

if __name__ == "__main__":
  interrupt.install()  # before the imports, which take seconds
  from command_line import script
  from fewshot import run

  script.run(run.main, __doc__)
