"""The command line for pictures, with a classifier trained on six of them."""

import pytest

from fewshot import classify
from fewshot import run as fewshot_run
from tests import page_data, project_tree
from tests.data_files import writers

# ml_collections loads config files in a way that Python 3.11 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:the load_module")

CONFIG = project_tree.ROOT / "configs" / "fewshot" / "folder.py"
SHORT = (
  "--config.data_kwargs.image_size=16",
  "--config.backbone=conv",
  "--config.backbone_kwargs.widths=(8, 8)",
  "--config.pad=2",
  "--config.num_episodes=10",
  "--config.num_val_episodes=10",
  "--config.shots=(2,)",
  "--config.stage1.num_steps=20",
  "--config.stage1.warmup_steps=1",
  "--config.stage1.eval_every=20",
  "--config.stage2.num_steps=5",
  "--config.stage2.warmup_steps=1",
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """A folder with the pictures of the recipe, and the classifier of a run."""
  root = tmp_path_factory.mktemp("people")
  page_data.write_images(root / "images")
  page_data.write_zebra(root / "zebra")
  fewshot_run.main(
    [
      *("train_fewshot.py", f"--config={CONFIG}", f"--workdir={root / 'run'}"),
      *(f"--data_dir={root / 'images'}", *SHORT),
    ]
  )
  return root


@pytest.fixture
def ask(trained, capsys, monkeypatch):
  """Runs a command in the folder; returns the lines it prints."""
  monkeypatch.chdir(trained)

  def ask(*words, file="mine.npz"):
    action, *rest = words
    classify.main([action, f"--classifier={file}", *rest])
    return capsys.readouterr().out.splitlines()

  given = "run/classifier.npz"
  ask("add", "--name=zebra", "zebra", "--output=mine.npz", file=given)
  return ask


def test_a_third_class_is_learned_and_forgotten(ask):
  assert ask("list") == ["cat", "dog", "zebra"]
  answers = ask("predict", "images/cat", "images/dog/0.png", "zebra")
  named = [line.partition(": ")[2].partition(" ")[0] for line in answers]
  assert named == ["cat"] * 3 + ["dog"] + ["zebra"] * 3
  assert answers[3].startswith("images/dog/0.png: dog (")
  (two,) = ask("predict", "zebra/0.png", "--top=2")
  assert two.count("%") == 2
  assert ask("rename", "--name=zebra", "--to=horse")
  assert ask("remove", "--name=cat") == ["mine.npz knows 2 classes"]
  assert ask("list") == ["dog", "horse"]


def test_what_is_none_of_the_classes_is_refused(ask):
  (line, _) = ask("calibrate")
  assert line.endswith("from leave-one-out")
  (answer,) = ask("predict", "zebra/0.png")
  assert answer.startswith("zebra/0.png: zebra")
  ask("remove", "--name=zebra")
  (answer,) = ask("predict", "zebra/0.png")
  assert answer == "zebra/0.png: none of these"


@pytest.mark.parametrize(
  ("words", "message"),
  [
    (("add", "--name=", "zebra"), "a name of 1 to 200 printable"),
    (("add", "--name=x"), "the following arguments are required: pictures"),
    (("add", "--name=x", "nowhere"), "nowhere: no such file"),
    (("add", "--name=x", "bad.png"), "bad.png: not a readable image"),
    (("add", "--name=x", "empty"), "empty: no image in this folder"),
    (("remove", "--name=fox"), "no class 'fox'; classes added: cat, dog"),
    (("rename", "--name=cat", "--to=dog"), "there is already a class 'dog'"),
    (("predict", "zebra", "--top=0"), "top must be a positive integer"),
    (
      ("predict", "zebra", "--classifier=zebra/0.png"),
      "not a saved classifier",
    ),
    (("list", "--classifier=no.npz"), "no such file"),
    (("remove", "--name=cat", "--output=no/c.npz"), "cannot save no/c.npz"),
    (("learn",), "invalid choice: 'learn'"),
  ],
)
def test_a_mistake_is_one_line(ask, trained, capsys, words, message):
  writers.write(trained / "bad.png", b"no image")
  (trained / "empty").mkdir(exist_ok=True)
  before = (trained / "mine.npz").read_bytes()
  with pytest.raises(SystemExit) as done:
    ask(*words)
  assert done.value.code == 2
  error = capsys.readouterr().err
  assert message in error
  assert error.startswith("error: ")
  assert error.count("\n") == 1
  assert (trained / "mine.npz").read_bytes() == before


def test_help_shows_every_action(capsys):
  with pytest.raises(SystemExit):
    classify.main(["--help"])
  printed = capsys.readouterr().out
  for action in classify._ACTIONS:
    assert f"python -m fewshot.classify {action}" in printed
