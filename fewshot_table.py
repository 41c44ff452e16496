"""Tables of few-shot learning that need several runs.

  python fewshot_table.py --experiments=sessions --data_dir=DIR
  python fewshot_table.py --experiments=claim --seeds=0,1,2 --data_dir=DIR
  python fewshot_table.py --show --markdown

sessions: classes that arrive five at a time, next to published methods on
mini-ImageNet, and on Omniglot. claim: is NAM ahead of the cosine classifier if
both have the attention generator beneath, as in the paper? Both are selected by
Both and compared in 2,000 episodes with five shots, on every data set.

Finished runs are skipped, stopped ones continued. Other arguments go to
train_fewshot.py; use another --folder for other settings.
"""

import sys

from fewshot import comparisons

if __name__ == "__main__":
  sys.exit(comparisons.main(sys.argv[1:], __doc__))
