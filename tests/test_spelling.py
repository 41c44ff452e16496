"""The error message for an unknown name."""

from nam_jax import spelling


def test_the_nearest_name_is_suggested():
  found = spelling.unknown("model", "lsm", ["nam_tm", "lsam"])
  assert (
    found == "unknown model 'lsm'; did you mean 'lsam'? Known: nam_tm, lsam"
  )


def test_without_a_similar_name_all_are_listed():
  found = spelling.unknown("head", "svm", {"cosine": 1, "nam": 2})
  assert found == "unknown head 'svm'. Known: cosine, nam"


def test_a_prefix_stands_before_both_names():
  found = spelling.unknown("key", "head", ["heads", "width"], "model_kwargs.")
  assert found == (
    "unknown key 'model_kwargs.head'; did you mean 'model_kwargs.heads'?"
    " Known: heads, width"
  )
