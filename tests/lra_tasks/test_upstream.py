"""The benchmark's config files: every field arrives, or the user is told."""

import dataclasses
import sys

import jax
import numpy as np
import pytest

from lra_tasks import registry, run, upstream
from lra_tasks.task import Task
from nam_jax import training
from nam_jax.layers import presets
from nam_jax.training import classification
from tests import abstract_step

# What the benchmark's base configs set, by task.
COMMON = {
  "batch_size": 32,
  "eval_frequency": 50,
  "num_train_steps": 5000,
  "num_eval_steps": 99999,
  "learning_rate": 0.05,
  "weight_decay": 0.1,
  "save_checkpoints": True,
  "restore_checkpoints": True,
  "checkpoint_freq": 10000,
  "random_seed": 3,
  "factors": "constant * linear_warmup * rsqrt_decay",
  "warmup": 8000,
  "trial": 0,
}
UNREAD = {
  "max_target_length": 200,
  "max_eval_target_length": 200,
  "sampling_temperature": 0.6,
  "sampling_top_k": 20,
  "max_predict_token_length": 50,
  "prompt": "",
}
SIZES = {
  "emb_dim": 512,
  "num_heads": 8,
  "num_layers": 4,
  "qkv_dim": 512,
  "mlp_dim": 1024,
}
TEXTS = COMMON | UNREAD | SIZES | {"max_length": 2000}
LISTOPS = TEXTS | {"tied_weights": False, "pooling_mode": "CLS"}
TEXT = TEXTS | {"classifier_pool": "CLS"}
MATCHING = TEXTS | {"pooling_mode": "CLS", "tokenizer": "char"}
IMAGE = COMMON | {
  "factors": "constant * linear_warmup * cosine_decay",
  "steps_per_cycle": 35000,
  "grad_clip_norm": None,
  "model": {
    **SIZES,
    "dropout_rate": 0.3,
    "attention_dropout_rate": 0.2,
    "classifier_pool": "CLS",
    "learn_pos_emb": True,
  },
}
# The attentions that the benchmark and its authors' forks do not have.
OURS = {
  *("nam_causal", "nam_erase", "lru"),
  *(set(presets.PRESETS) - {"nam"}),
}


def translate(config, task, **changes):
  fields, notices = upstream.translate(
    {"model_type": "transformer"} | config | changes, task
  )
  return training.from_config_dict(fields, run.LRAConfig), notices


def test_fields_of_the_engine_are_renamed():
  config, _ = translate(TEXT, "imdb_reviews")
  assert (config.task, config.attention) == ("text", "softmax")
  assert (config.num_steps, config.eval_every) == (5000, 50)
  assert (config.checkpoint_every, config.seed) == (10000, 3)
  assert (config.schedule, config.warmup_steps) == (TEXT["factors"], 8000)
  assert (config.optimizer, config.weight_decay) == ("adamw", 0.1)
  assert (config.b1, config.b2, config.eps) == (0.9, 0.98, 1e-9)
  assert config.task_kwargs == {"max_length": 2000}
  assert config.model_kwargs == SIZES | {"classifier_pool": "CLS"}
  assert config.attention_kwargs == {}
  assert not config.compat


def test_what_nobody_reads_is_named_once():
  config, (notice,) = translate(LISTOPS, "basic", warmup=16000)
  assert notice.startswith("these fields have no effect, as in the benchmark:")
  for name in (*UNREAD, "trial", "tied_weights", "pooling_mode", "warmup"):
    assert name in notice
  # The trainer of ListOps has its own schedule.
  assert config.warmup_steps == 1000
  assert "classifier_pool" not in config.model_kwargs


def test_an_image_config_nests_its_sizes():
  config, _ = translate(IMAGE, "cifar10")
  assert config.model_kwargs == IMAGE["model"]
  assert (config.steps_per_cycle, config.grad_clip) == (35000, 0.0)
  config, _ = translate(IMAGE, "pathfinder128_hard", grad_clip_norm=1.0)
  assert config.grad_clip == 1.0
  assert config.task == "pathfinder"
  assert config.task_kwargs == {"resolution": 128, "level": "hard"}


def test_tasks_have_one_name_of_ours():
  names = {upstream.our_task(name)[0] for name in upstream.OUR_NAMES}
  assert names == set(registry.TASKS)
  assert all(upstream.our_task(name) == (name, {}) for name in names)


def test_retrieval_reads_bytes_only():
  config, _ = translate(MATCHING, "aan")
  assert config.model_kwargs["classifier_pool"] == "CLS"
  with pytest.raises(training.UserError, match="tokenizer must be 'char'"):
    translate(MATCHING, "aan", tokenizer="subword")


@pytest.mark.parametrize(
  ("task", "base", "change", "options"),
  [
    (
      "basic",
      LISTOPS,
      {"model_kwargs": {"attention_fn_kwargs": {"nb_features": 2}}},
      {"attention_fn_kwargs": {"nb_features": 2}},
    ),
    ("basic", LISTOPS, {"model": {"block_size": 9}}, {"block_size": 9}),
    ("imdb_reviews", TEXT, {"k": 32, "synthesizer_mode": "dense"}, {}),
    (
      "cifar10",
      IMAGE,
      {"model": IMAGE["model"] | {"block_size": 64}},
      {"block_size": 64},
    ),
  ],
)
def test_options_of_an_attention_arrive_where_the_benchmark_reads_them(
  task, base, change, options
):
  assert translate(base, task, **change)[0].attention_kwargs == options


def test_a_misspelt_number_of_heads_is_understood():
  model = IMAGE["model"] | {"num_head": 4}
  config, notices = translate(IMAGE, "cifar10", model=model)
  assert config.model_kwargs["num_heads"] == 4
  assert "num_head" not in config.attention_kwargs
  assert any("num_head is read as num_heads" in text for text in notices)


def test_our_own_fields_can_be_added():
  config, _ = translate(TEXT, "imdb_reviews", compat=True, eval_batch_size=8)
  assert (config.compat, config.eval_batch_size) == (True, 8)


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"model_type": "gpt"}, "unknown model_type 'gpt'; known: transformer,"),
    ({"restore_checkpoints": False}, "restore_checkpoints=False is not"),
    ({"learning_rat": 1.0}, "unknown config key 'learning_rat'; did you mean"),
  ],
)
def test_what_cannot_be_is_refused(change, message):
  with pytest.raises(training.UserError, match=message):
    translate(TEXT, "imdb_reviews", **change)


def test_every_model_of_the_benchmark_has_its_attention():
  attentions = set(upstream.MODEL_TYPES.values())
  assert attentions == set(run.models.KINDS) - OURS


@pytest.mark.parametrize("attention", sorted(OURS))
def test_every_task_of_the_benchmark_takes_our_attentions(attention):
  one_layer = {"num_layers": 1, "emb_dim": 8, "qkv_dim": 8, "mlp_dim": 8}
  image = {**IMAGE["model"], **one_layer, "num_heads": 1}  # as for sinkhorn
  for task, base, sizes in (
    ("basic", LISTOPS, one_layer),
    ("imdb_reviews", TEXT, one_layer),
    ("aan", MATCHING, one_layer),
    ("cifar10", IMAGE, {"model": image}),
    ("pathfinder32_hard", IMAGE, {"model": image | {"num_heads": 4}}),
  ):
    config, _ = translate(base, task, **sizes)
    config = dataclasses.replace(config, attention=attention)
    is_pair = config.task == "retrieval"
    data = Task(config.task, 20, 3, 16, is_pair, (), (), ())
    experiment = run.for_task(config, data)
    shape = (config.batch_size, *([2] if is_pair else []), 16)
    batch = {
      "inputs": jax.ShapeDtypeStruct(shape, np.int32),
      "mask": jax.ShapeDtypeStruct(shape, bool),
      "label": jax.ShapeDtypeStruct(shape[:1], np.int32),
    }
    loss_fn = classification.make_loss_fn(experiment.model)
    if is_pair:
      abstract_step.take(config, experiment.init_fn, loss_fn, batch)
    else:
      shapes = jax.eval_shape(experiment.init_fn, jax.random.key(0))
      assert set(shapes["params"]) == {"tokens", "mlp", "logits"}


@pytest.mark.parametrize(
  ("folder", "task"),
  [
    ("listops/configs", "basic"),
    ("text_classification/configs", "imdb_reviews"),
    ("matching/configs", "aan"),
    ("image/configs/cifar10", "cifar10"),
    ("image/configs/pathfinder64", "pathfinder64_hard"),
  ],
)
def test_a_checkout_is_found_and_names_the_task(
  tmp_path, monkeypatch, folder, task
):
  monkeypatch.setattr(sys, "path", list(sys.path))
  file = tmp_path / "lra_benchmarks" / folder / "transformer_base.py"
  upstream.make_importable(str(file))
  upstream.make_importable(str(file))
  assert sys.path.count(str(tmp_path)) == 1
  assert upstream.task_of(str(file)) == task


def test_other_files_change_no_path_and_name_no_task(tmp_path, monkeypatch):
  monkeypatch.setattr(sys, "path", list(sys.path))
  before = list(sys.path)
  upstream.make_importable(str(tmp_path / "mine.py"))
  assert sys.path == before
  with pytest.raises(training.UserError, match=r"mine\.py names no task"):
    upstream.task_of(str(tmp_path / "mine.py"))


@pytest.mark.parametrize(
  ("config", "task", "written_for"),
  [
    (LISTOPS, "imdb_reviews", "listops"),
    (LISTOPS, "retrieval", "listops"),
    (TEXT, "pathfinder", "text"),
    (MATCHING, "listops", "retrieval"),
    (IMAGE, "basic", "image"),
  ],
)
def test_a_config_for_another_task_is_refused(config, task, written_for):
  message = (
    f"a.py is a config for the task {written_for}, not for {task}: use"
    f" --task_name={written_for}, or a config for {task}"
  )
  with pytest.raises(training.UserError, match=message):
    upstream.check_task("a.py", config, task)


def test_a_config_suits_all_tasks_of_its_trainer_and_those_of_users():
  for config, task in (
    (LISTOPS, "listops"),
    (TEXT, "imdb_reviews"),
    (MATCHING, "aan"),
    (IMAGE, "image"),
    (IMAGE, "pathfinder64_easy"),
    (TEXT, "mine"),
  ):
    upstream.check_task("a.py", config, task)


def test_a_folder_says_more_than_the_name_of_all_its_kind():
  file = "lra_benchmarks/image/configs/pathfinder64/transformer_base.py"
  assert upstream.task_of(file, "pathfinder") == "pathfinder64_hard"
  assert upstream.task_of(file, "pathfinder32_easy") == "pathfinder32_easy"
  assert upstream.task_of("mine.py", "pathfinder") == "pathfinder"
