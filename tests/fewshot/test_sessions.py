"""Sessions: metrics by hand, the same rounds for every head, a short run."""

import jax
import numpy as np
import pytest

from data_files.errors import DataError
from fewshot import heads, sessions, stage2, table
from fewshot.config import SessionConfig
from fewshot.data.dataset import Split
from fewshot.stage1 import Features
from nam_jax import training
from tests.fewshot import miniature, test_run

CONFIG = SessionConfig(num_sessions=3, num_way=2, num_shot=2, num_rounds=2)


def test_metrics_by_hand():
  # After each session: accuracy of 4 base classes and of 2 sessions of 2.
  right = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.6, 0.4, 0.2]])
  found = sessions._metrics(right, 4, 2)
  everything = [1.0, (4 * 0.8 + 2 * 0.6) / 6, (4 * 0.6 + 2 * 0.4 + 2 * 0.2) / 8]
  np.testing.assert_allclose(found["all"], everything)
  np.testing.assert_allclose(found["new"], [0, 0.6, 0.3])
  np.testing.assert_allclose(found["average"], np.mean(everything))
  # Of base classes 0.4 is lost, of the first session 0.2.
  np.testing.assert_allclose(found["forgetting"], (4 * 0.4 + 2 * 0.2) / 6)


@pytest.fixture(scope="module")
def setting():
  """Three base and seven new classes, each around its own centre."""
  rng = np.random.default_rng(0)
  centres = rng.normal(size=(10, 12))

  def split(first, classes, count):
    labels = np.repeat(np.arange(classes, dtype=np.int32), count)
    rows = centres[first + labels] + 0.3 * rng.normal(size=(len(labels), 12))
    names = tuple(f"{first + n}" for n in range(classes))
    return Split(rows.astype(np.float32), labels, names)

  base, novel = split(0, 3, 5), split(3, 7, 6)
  weights = centres[:3].astype(np.float32)
  scale = np.float32(10)
  features = Features(
    *[base.data] * 3, novel.data, novel.data, weights, scale, np.int32(0)
  )
  return features, base, novel


def trained(features, kind):
  net = heads.EpisodeNetwork(heads.make_head(kind), 3)
  start = {"base": features.base, "scale": features.scale}
  params = stage2.make_init_fn(net, start, 2)(jax.random.key(0))["params"]
  return stage2.TrainedHead(net, params, 0.0, 0.0)


def test_every_head_gets_the_same_rounds(setting):
  features, base, novel = setting
  rounds = sessions.draw(CONFIG, novel, seed=0)
  again = sessions.draw(CONFIG, novel, seed=0)
  np.testing.assert_array_equal(rounds[1].support, again[1].support)
  assert (rounds[0].support != rounds[1].support).any()
  for one in rounds:
    assert one.support.shape == (6, 2)
    assert one.query.shape == (6, 4)
    assert not set(one.support.flat) & set(one.query.flat)
  found = {
    kind: sessions.measure(
      CONFIG, trained(features, kind), features, base, rounds
    )
    for kind in ("cosine", "nam")
  }
  assert found["cosine"]["all"].shape == (2, 4)
  assert found["cosine"]["average"].min() > 0.8
  kept = sessions.results(CONFIG, found, "cosine")
  assert kept["heads"]["cosine"]["difference"] == {}
  assert set(kept["heads"]["nam"]["difference"]) == {
    *("average", "last", "forgetting")
  }
  rows = table.session_rows(kept, "mini-imagenet")
  assert len({len(row) for row in rows}) == 1
  assert rows[0][1:5] == ["after 0", "after 1", "after 2", "after 3"]
  assert rows[-1][:6] == ["NC-FSCIL, ResNet", "", "", "", "58.31", "67.82"]


def test_a_class_counts_only_once_it_has_arrived(setting):
  """A head that always answers with the first new class is never right."""
  features, base, novel = setting
  rounds = sessions.draw(CONFIG, novel, seed=1)
  head = trained(features, "cosine")._replace(novel_bias=100.0)
  found = sessions.measure(CONFIG, head, features, base, rounds)
  assert (found["base"][:, 0] > 0.9).all()
  assert (found["base"][:, 1:] == 0).all()


def test_too_few_classes_are_said_with_numbers(setting):
  _, _, novel = setting
  config = SessionConfig(num_sessions=4, num_way=2)
  message = "need 8 classes of 6 images, but there are 7 of 6"
  with pytest.raises(DataError, match=message):
    sessions.check(config, novel)
  with pytest.raises(training.UserError, match="num_way=0 must be"):
    SessionConfig(num_way=0)


@pytest.mark.filterwarnings("ignore:the load_module")
def test_a_run_has_sessions(tmp_path):
  results = test_run.run(
    tmp_path / "run",
    "--config.sessions.num_sessions=2",
    "--config.sessions.num_way=2",
    "--config.sessions.num_shot=2",
    "--config.sessions.num_rounds=2",
    "--config.shots=(2,)",
    heads="cosine,cosine_tuned",
  )
  found = results["sessions"]["heads"]
  assert list(found) == ["cosine", "cosine_tuned"]
  assert found["cosine"]["compared_with"] == "cosine_tuned"
  assert len(found["cosine"]["all"]) == 3
  assert "after 2" in table.show(results)


def test_mini_imagenet_is_divided_for_sessions(tmp_path, monkeypatch):
  monkeypatch.setattr("fewshot.data.mini_imagenet._BASE_OF_SESSIONS", 2)
  miniature.write_blob(tmp_path)
  data = miniature.mini_imagenet.load(
    tmp_path, **miniature.SETTINGS, sessions=True
  )
  assert len(data.base_train.names) == 2
  assert len(data.test.names) == len(miniature.CLASSES) - 2
  assert data.val.names[0] == f"{data.base_train.names[0]}, turned 90"
  assert len(data.val.data) == len(data.base_val.data)
