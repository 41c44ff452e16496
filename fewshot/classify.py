"""Teaches a classifier new classes from pictures, and asks it.

  python -m fewshot.classify list --classifier=FILE
  python -m fewshot.classify add --classifier=FILE --name=zebra a.jpg FOLDER
  python -m fewshot.classify predict --classifier=FILE picture.jpg --top=3
  python -m fewshot.classify calibrate --classifier=FILE
  python -m fewshot.classify rename --classifier=FILE --name=zebra --to=horse
  python -m fewshot.classify remove --classifier=FILE --name=zebra

FILE is a classifier.npz from train_fewshot.py. Pictures are files, or folders
of them, of any size. What changes the classifier is saved in FILE, or, with
--output=OTHER, in another file. After calibrate, predict answers "none of
these" to a picture that is like none of the classes.
"""

import argparse
import pathlib

from command_line import tool
from fewshot import preprocess
from fewshot.classifier import FewShotClassifier

_NOBODY = "none of these"
_HELP = {
  "list": "print the names of all classes",
  "add": "learn a class, or more pictures of a class that was added",
  "predict": "print the class of each picture",
  "calibrate": "learn to refuse what is none of the classes",
  "rename": "give a class another name",
  "remove": "forget a class",
}


def main(arguments: list[str] | None = None) -> None:
  """Runs the command line."""
  parser = tool.make_parser(__doc__, "python -m fewshot.classify")
  actions = parser.add_subparsers(
    dest="action", required=True, metavar="ACTION"
  )
  for action, meaning in _HELP.items():
    one = actions.add_parser(
      action,
      help=meaning,
      description=meaning,
      formatter_class=argparse.RawDescriptionHelpFormatter,
      allow_abbrev=False,
    )
    one.add_argument(
      "--classifier", type=pathlib.Path, required=True, help="the file to use"
    )
    if action not in ("list", "predict"):
      one.add_argument("--output", help="where to save, if not in that file")
    if action in ("add", "rename", "remove"):
      one.add_argument("--name", required=True, help="of the class")
    if action == "rename":
      one.add_argument("--to", required=True, help="the new name")
    if action in ("add", "predict"):
      help_text = "files, or folders of them"
      one.add_argument("pictures", nargs="+", help=help_text)
    if action == "predict":
      one.add_argument("--top", type=int, default=1, help="names per picture")
  tool.run(parser, _act, arguments)


def _act(options) -> None:
  classifier = FewShotClassifier.load(options.classifier)
  _ACTIONS[options.action](classifier, options)
  if options.action not in ("list", "predict"):
    file = options.output or options.classifier
    classifier.save(file)
    print(f"{file} knows {len(classifier)} classes")


def _list(classifier, options):
  del options
  for name in classifier.names:
    print(ascii(name)[1:-1])


def _add(classifier, options):
  classifier.add(options.name, options.pictures)


def _predict(classifier, options):
  for path in preprocess.expanded(options.pictures):
    (pairs,) = classifier.predict(path, top=options.top)
    answers = [f"{ascii(name)[1:-1]} ({share:.0%})" for name, share in pairs]
    print(f"{ascii(str(path))[1:-1]}: {', '.join(answers) or _NOBODY}")


def _calibrate(classifier, options):
  del options
  found = classifier.calibrate()
  print(f"threshold {found.threshold:.3f}, from {found.source}")


def _rename(classifier, options):
  classifier.rename(options.name, options.to)


def _remove(classifier, options):
  classifier.remove(options.name)


_ACTIONS = {
  "list": _list,
  "add": _add,
  "predict": _predict,
  "calibrate": _calibrate,
  "rename": _rename,
  "remove": _remove,
}

if __name__ == "__main__":
  main()
