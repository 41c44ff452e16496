"""The script from its arguments to its files, on a few tiny glyphs."""

import json
import os
import shutil
import zipfile

import jax
import numpy as np
import pytest

from fewshot import run as fewshot_run
from fewshot import stage1
from fewshot.classifier import FewShotClassifier
from fewshot.config import FewShotConfig
from fewshot.data import glyphs
from nam_jax import training
from nam_jax.training import run_dir
from tests import project_tree

# ml_collections loads config files in a way that Python 3.11 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:the load_module")

CONFIGS = project_tree.ROOT / "configs" / "fewshot"
STAGE = ("num_steps=4", "eval_every=2", "log_every=2", "warmup_steps=0")
TINY = (
  "--config.backbone_kwargs.widths=(4, 4)",
  "--config.data_kwargs.num_base=8",
  "--config.data_kwargs.num_val=3",
  "--config.data_kwargs.num_novel=4",
  "--config.data_kwargs.num_base_train=6",
  "--config.data_kwargs.num_novel_images=9",
  "--config.num_way=3",
  "--config.num_query=5",
  "--config.num_base_query=10",
  "--config.num_episodes=20",
  "--config.num_val_episodes=20",
  "--config.curve_shots=(1, 3)",
  "--config.shots=(1, 2)",
  *(f"--config.{s}.{v}" for s in ("stage1", "stage2") for v in STAGE),
)


def run(workdir, *arguments, heads="cosine,cosine_tuned,nam"):
  config = f"--config={CONFIGS / 'glyphs.py'}:{heads}"
  command = ("train_fewshot.py", config, f"--workdir={workdir}")
  fewshot_run.main([*command, *TINY, *arguments])
  return json.loads((workdir / "results.json").read_text())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  """The folder of a run, and its results."""
  workdir = tmp_path_factory.mktemp("fewshot") / "run"
  return workdir, run(workdir)


def test_a_run_leaves_results_for_every_head_and_number_of_shots(finished):
  workdir, results = finished
  for shot in ("1", "2"):
    assert set(results["shots"][shot]) == {"cosine", "cosine_tuned", "nam"}
    for tested in results["shots"][shot].values():
      both = tested["accuracy"]["both"]
      assert 0 <= both["mean"] <= 1
      assert both["ci95"] >= 0
  nam = results["shots"]["1"]["nam"]
  assert nam["compared_with"] == "cosine_tuned"
  assert list(results["curve"]) == ["1", "3"]
  steps = [row["step"] for row in results["stage1"]["validation"]]
  assert steps == [2, 4]
  for name in ("answers_1shot.png", "accuracy_by_shots.png", "config.json"):
    assert (workdir / name).stat().st_size > 0
  json.loads((workdir / "config.json").read_text())


def test_one_shot_novel_accuracy_of_nam_is_the_cosine_classifiers(finished):
  _, results = finished
  tested = results["shots"]["1"]
  novel = tested["nam"]["accuracy"]["novel"]
  assert novel == tested["cosine"]["accuracy"]["novel"]


def test_only_testing_gives_the_same_results(finished):
  workdir, results = finished
  (workdir / "features.npz").write_bytes(b"damaged")
  assert run(workdir, "--test_only") == results


def test_other_data_under_the_same_name_are_refused(finished, monkeypatch):
  workdir, results = finished
  stage = json.loads((workdir / "stage1" / "config.json").read_text())
  for found in (json.loads((workdir / "config.json").read_text()), stage):
    assert found["fingerprint"] == results["fingerprint"]
  monkeypatch.setattr(glyphs, "_NOISE", 0.2)
  for arguments in ((), ("--test_only",)):
    with pytest.raises(training.UserError, match="base_train has 48 other row"):
      run(workdir, *arguments)


def test_a_second_run_in_the_folder_is_refused(finished):
  workdir, _ = finished
  with (
    run_dir.owned(workdir),
    pytest.raises(training.UserError, match="is in use by process"),
  ):
    run(workdir)


@pytest.mark.parametrize("kind", ["header", "version", "pipe"])
def test_features_that_cannot_be_read_are_made_again(tmp_path, kind):
  path = tmp_path / "features.npz"
  with zipfile.ZipFile(path, "w") as archive:
    archive.writestr("base.npy", b"\x93NUMPY\x01\x00\x04\x00{'(\n")
  if kind == "version":
    whole = path.read_bytes()
    at = whole.rfind(b"PK\1\2")
    path.write_bytes(whole[: at + 6] + b"\xff" + whole[at + 7 :])
  elif kind == "pipe":
    path.unlink()
    os.mkfifo(path)
  assert stage1._read(path) is None


def test_a_new_head_joins_without_repeating_stage_1(finished, tmp_path):
  workdir, results = finished
  copy = shutil.copytree(workdir, tmp_path / "copy")
  metrics = (copy / "stage1" / "metrics.jsonl").read_bytes()
  more = run(copy, heads="cosine,cosine_tuned,nam,nam_calibrated")
  assert (copy / "stage1" / "metrics.jsonl").read_bytes() == metrics
  assert more["shots"]["1"]["nam"] == results["shots"]["1"]["nam"]
  assert "nam_calibrated" in more["shots"]["2"]


def test_mirrored_features_have_their_own_file_heads_and_classifier(
  finished, tmp_path
):
  workdir, _ = finished
  shutil.copytree(workdir / "stage1", tmp_path / "stage1")
  run(tmp_path, "--config.mirror=True", heads="cosine_tuned")
  assert (tmp_path / "features_mirror.npz").exists()
  assert not (tmp_path / "features.npz").exists()
  with pytest.raises(training.UserError, match="'mirror': True"):
    run(tmp_path, heads="cosine_tuned")
  data = glyphs.load(num_base=1, num_val=1, num_novel=1, seed=5).test.data[:5]
  for folder, same in ((tmp_path, True), (workdir, False)):
    file = folder / "cosine_tuned-1shot" / "classifier.npz"
    classifier = FewShotClassifier.load(file)
    found = [classifier.predict(x, top=8) for x in (data, data[:, :, ::-1])]
    probabilities = [[dict(row) for row in rows] for rows in found]
    apart = max(
      abs(one[name] - other[name])
      for one, other in zip(*probabilities, strict=True)
      for name in one
    )
    assert (apart < 1e-4) == same


def test_stage_2_leaves_features_and_stage_1_alone(finished):
  """Backbone and batch statistics are bit-equal before and after."""
  workdir, _ = finished
  settings = json.loads((workdir / "config.json").read_text())
  config = training.from_config_dict(settings, FewShotConfig)
  experiment = fewshot_run.make_experiment(config, str(workdir), "")
  drawn = fewshot_run.draw(experiment, "val")
  state = stage1.run(experiment, drawn, train=False).best
  classifiers = {
    name: dict(np.load(workdir / f"{name}-2shot" / "classifier.npz"))
    for name in ("cosine", "nam")
  }
  for name in classifiers["cosine"]:
    if name.startswith("base/"):
      np.testing.assert_array_equal(*(c[name] for c in classifiers.values()))
  kernel = state.params["backbone"]["Conv_0"]["kernel"]
  saved = classifiers["nam"]["base/params/backbone/Conv_0/kernel"]
  np.testing.assert_array_equal(jax.device_get(kernel), saved)


def test_the_best_state_by_validation_is_the_one_that_is_used(finished):
  workdir, results = finished
  rows = results["stage1"]["validation"]
  best = max(rows, key=lambda row: (row["novel"], row["step"]))
  with np.load(workdir / "features.npz") as features:
    assert int(features["step"]) == best["step"]


def test_the_classifier_of_a_run_learns_a_class(finished):
  workdir, _ = finished
  data = glyphs.load(num_base=1, num_val=1, num_novel=1, seed=5)
  classifier = FewShotClassifier.load(workdir / "nam-2shot" / "classifier.npz")
  assert len(classifier.names) == 8
  classifier.add("new", data.test.data[:5])
  assert classifier.predict(data.test.data[:5]).count("new") >= 3


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    (("--config.data=glyps",), "glyphs"),
    (("--config.backbone=vgg",), "unknown backbone 'vgg'. Known: conv32"),
    (("--config.shots=(1, 8)",), "has 9 images; an episode of 8 shots"),
    (("--config.shots=()",), "shots=() and curve_shots=(1, 3) must be"),
    (("--config.num_way=8",), "8"),
    (("--config.heads.nam.kind=max",), "heads.nam: unknown head 'max'"),
    (("--config.heads.nam.depth=3",), "heads.nam: "),
    (("--config.stage1.seed=3",), "stage1.seed cannot be set"),
    (("--config.heads.nam.hiden=3",), "'hiden'; did you mean 'hidden'?"),
    (
      ("--config.backbone_kwargs.width=3",),
      "did you mean 'backbone_kwargs.widths'? Known: widths",
    ),
    (("--config.stage1.steps=3",), "unknown config key 'stage1.steps'"),
    (("--config.data_kwargs.size=3",), "size"),
    (("--config.pads=3",), "did you mean 'pad'"),
  ],
)
def test_a_mistake_is_named_before_anything_is_written(
  tmp_path, arguments, message
):
  with pytest.raises(training.UserError) as caught:
    run(tmp_path / "run", *arguments)
  assert message in str(caught.value)
  assert "\n" not in str(caught.value)
  assert not (tmp_path / "run").exists()


def test_missing_data_says_what_to_fetch():
  with pytest.raises(training.UserError, match="mini"):
    fewshot_run.main(
      ["train_fewshot.py", f"--config={CONFIGS / 'mini_imagenet.py'}"]
    )


def test_help_lists_flags_data_heads_and_presets(capsys):
  with pytest.raises(SystemExit) as done:
    fewshot_run.main(["train_fewshot.py", "--help"])
  assert done.value.code == 0
  printed = capsys.readouterr().out
  for text in ("--data_dir", "--config", "test_only", "Stage 1"):
    assert text in printed
  assert "config file, a Python program that is run" in printed
  for text in ("mini-imagenet", "nam_projection", "presets: cpu"):
    assert text in printed
