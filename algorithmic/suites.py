"""The tables of results: which models on which tasks, and what a cell shows."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from algorithmic import paper, published
from algorithmic.data import PROTOCOLS
from algorithmic.tasks import groups

Results = Mapping[str, Any]  # the content of results.json
Value = Any  # what a table keeps of them: a number or several

_CONFIGS = Path(__file__).resolve().parents[1] / "configs" / "algorithmic"
# Numbers of pairs that a cell of recall shows.
PAIRS = (4, 8, 16, 32)


class Row(NamedTuple):
  """A model, and flags that change its settings."""

  model: str
  flags: tuple[str, ...] = ()


class Suite(NamedTuple):
  """A table; see `SUITES`."""

  title: str
  tasks: tuple[str, ...]
  rows: Mapping[str, Row]
  config: Callable[[str, str], str]  # task, model -> config file and argument
  value: Callable[[Results], Value]
  number: Callable[[str, Sequence[Value]], str]  # task, values of its runs
  published: Mapping[str, Mapping[str, str]] = {}  # more rows: task -> number
  beside: Callable[[str, str], str] = lambda *_: ""  # the paper's number
  flags: Callable[[str], tuple[str, ...]] = lambda _: ()  # task -> flags
  notes: tuple[str, ...] = ()


def score(results: Results) -> float:
  """Token accuracy, averaged over the lengths that were not trained."""
  protocol = PROTOCOLS[results["protocol"]]
  lengths = [
    digits
    for name, split in protocol.splits.items()
    if name not in ("train", "id")
    for digits in range(split.low, split.high + 1)
  ]
  by_length = results["by_length"]
  return round(
    fmean(by_length[str(digits)]["token_accuracy"] for digits in lengths), 5
  )


def chance(task: str) -> float:
  """The accuracy of guessing in a task of state tracking."""
  if task in ("parity", "even_pairs"):
    return 1 / 2
  if task[0] in "SAZ":
    return 1 / len(groups.elements(task))
  return 1 / 5


def _papers_config(task, model):
  if (_CONFIGS / f"{task}.py").exists():
    return f"{_CONFIGS}/{task}.py:{model}"
  return f"{_CONFIGS}/task.py:{task},{model}"


def _protocol_config(name):
  return lambda task, model: f"{_CONFIGS}/{name}.py:{task},{model}"


def _recall_config(task, model):
  repeated = ",repeated" * task.startswith("repeated")
  return f"{_CONFIGS}/recall.py:{model}{repeated}"


def _recall_flags(task):
  """Tasks of recall have the width in their name: repeated-32."""
  return (f"--config.model_kwargs.emb_dim={task.rpartition('-')[2]}",)


def _splits(results):
  accuracies = [results["splits"][split] for split in paper.SPLITS]
  return [round(a["sequence_accuracy"], 5) for a in accuracies]


def _means(_, values):
  """The three splits of the paper, each the mean over all seeds."""
  return "/".join(percent(fmean(split)) for split in zip(*values, strict=True))


def _papers(task, model):
  accuracies = paper.ACCURACY.get(model, {}).get(task, ())
  return "/".join(percent(number / 100) for number in accuracies)


def _in_percent(_, scores):
  return _best_and_mean([100 * score for score in scores], "{:.1f}")


def _scaled(task, scores):
  guess = chance(task)
  scaled = [max(0, (score - guess) / (1 - guess)) for score in scores]
  return _best_and_mean(scaled, "{:.3f}")


def _by_pairs(results):
  """Accuracy with one pair, two pairs, and so on."""
  by_length = results["by_length"]
  return [
    round(by_length[str(n + 1)]["token_accuracy"], 5)
    for n in range(len(by_length))
  ]


def _some_pairs(_, values):
  return "/".join(f"{100 * fmean(v[n - 1] for v in values):.0f}" for n in PAIRS)


def _best_and_mean(numbers, form):
  best = form.format(max(numbers))
  return (
    best if len(numbers) == 1 else f"{best} ({form.format(fmean(numbers))})"
  )


def percent(share: float) -> str:
  """A share in percent."""
  return "100" if share == 1 else f"{100 * share:.1f}"


def _text(numbers, form):
  return {
    f"{model}, published": {task: form.format(x) for task, x in row.items()}
    for model, row in numbers.items()
  }


_ERASE = "--config.model_kwargs.max_erase="
_DECAY = "--config.model_kwargs.decay=head"
_WRITES = "--config.model_kwargs.num_writes="
_NO_STATE = ("--config.model_kwargs.state_features=0",)
_CELLS = "A cell also has the epochs and minutes of a run, averaged over seeds."

SUITES = {
  "paper": Suite(
    "sequence accuracy in percent on ID/OD-easy/OD-hard",
    paper.TASKS,
    {
      **{model: Row(model) for model in paper.ACCURACY},
      "nam_tm_nostate": Row("nam_tm", _NO_STATE),
      "nam_tm_nojump_nostate": Row("nam_tm_nojump", _NO_STATE),
    },
    _papers_config,
    _splits,
    _means,
    beside=_papers,
    notes=(
      "Several seeds are averaged.",
      _CELLS,
      "The rows `nostate` have no LSTM in the read-out.",
    ),
  ),
  "chomsky": Suite(
    "token accuracy in percent, averaged over the lengths 41 to 500",
    published.CHOMSKY_TASKS,
    {name: Row(name) for name in ("nam_tm", "lsam", "nam")},
    _protocol_config("chomsky"),
    score,
    _in_percent,
    _text(published.CHOMSKY, "{:.1f}"),
    notes=(
      "Of several seeds, the best counts; their mean is in brackets.",
      _CELLS,
      f"Published: {published.CHOMSKY_SOURCE}. Not yet checked against the"
      f" paper: {', '.join(published.CHOMSKY_UNCHECKED)}.",
    ),
  ),
  "state_tracking": Suite(
    "accuracy on 40 to 256 symbols, scaled so that guessing is 0",
    (
      *("parity", "cycle_navigation", "modular_arithmetic"),
      *("bracket_arithmetic", "Z60", "S3", "S5"),
    ),
    {
      "nam": Row("nam"),
      "nam_pe1": Row("nam", (f"{_ERASE}1",)),
      "nam_fading": Row("nam", (_DECAY,)),
      "nam_2writes": Row("nam", (f"{_WRITES}2",)),
      "nam_4writes": Row("nam", (f"{_WRITES}4",)),
      "deltanet": Row("deltanet"),
      "deltanet_pe2": Row("deltanet", (f"{_ERASE}2",)),
      "gated_deltanet": Row("gated_deltanet"),
      "lstm": Row("lstm"),
    },
    _protocol_config("state_tracking"),
    score,
    _scaled,
    _text(published.STATE_TRACKING, "{:.3f}"),
    notes=(
      "`nam` and `deltanet_pe2` erase with p_e up to 2, `nam_pe1` and"
      " `deltanet` up to 1; `nam_fading` also has a decay per head, and others"
      " have several writes per token.",
      "Of several seeds, the best counts; their mean is in brackets.",
      _CELLS,
      f"Published: {published.STATE_TRACKING_SOURCE}.",
    ),
  ),
  "recall": Suite(
    f"accuracy in percent with {'/'.join(map(str, PAIRS))} pairs",
    (
      *(f"recall-{width}" for width in (16, 32, 64)),
      *(f"repeated-{width}" for width in (16, 32, 64)),
    ),
    {
      "softmax": Row("transformer"),
      "linear": Row("linear"),
      "nam_causal": Row("nam_causal"),
      "nam": Row("nam"),
      "gated_deltanet": Row("gated_deltanet"),
    },
    _recall_config,
    _by_pairs,
    _some_pairs,
    flags=_recall_flags,
    notes=(
      "The number after the task is the width of the model; in `repeated`, keys"
      " occur twice on average, and the last value counts. `nam_causal` only"
      " adds to its memory.",
      "Several seeds are averaged.",
      _CELLS,
    ),
  ),
}
