# Needs GNU make and Python 3.11 or newer; everything else goes into $(VENV).
PYTHON ?= python3
EXTRAS ?= test
WORKERS ?= 2
ARGS ?=
VENV := .venv

PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed-$(EXTRAS)
REQUIRED = -e '.[$(EXTRAS)]' -c constraints.txt
# One device for each of two cores: XLA runs most small operations on one.
TWO := 'from command_line import machine; print(min(2, len(machine.cores())))'
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup train report bench accelerators chaos pages site notebooks \
  test coverage lint format lock clean
.SILENT:

help: ## show this list
	echo "nam-jax: Neural Attention Memory for JAX"
	sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22
	echo "Variables: PYTHON=python3.12  ARGS=\"...\"  EXTRAS=test,cuda12"

setup: $(INSTALLED) ## create .venv and install (the others do it when needed)

train: $(INSTALLED) ## train a small NAM Turing machine (ARGS="..." is passed on)
	export JAX_NUM_CPU_DEVICES=$${JAX_NUM_CPU_DEVICES:-$$($(PY) -c $(TWO))}; \
	  $(PY) train_algorithmic.py $(ARGS)

report: $(INSTALLED) ## show all runs beside the paper's in runs/report.html
	$(PY) -m report runs $(ARGS)

bench: $(INSTALLED) ## time the library, in minutes (ARGS=--check: goals)
	$(PY) -m benchmarks $(ARGS)

accelerators: ## compile for GPUs and a TPU, without having them (6 GB)
	$(MAKE) -s setup VENV=.venv-accelerators EXTRAS=train,cuda12,tpu
	.venv-accelerators/bin/python -m benchmarks.accelerators $(ARGS)

chaos: $(INSTALLED) ## kill runs, damage files, in minutes; nothing must break
	$(PY) -m chaos $(ARGS)

pages: $(INSTALLED) ## update the tables of README and docs from docs/results.json
	$(PY) -m docs.tables

site: export NO_MKDOCS_2_WARNING := 1
site: $(INSTALLED) ## build the documentation site in build/site
	$(PY) -m mkdocs build --quiet --strict
	echo "written to build/site"

notebooks: $(INSTALLED) ## run all notebooks again, in minutes (ARGS="FILE.py")
	$(PY) -m notebooks.run $(ARGS)

test: export JAX_PLATFORMS ?= cpu
test: lint ## lint, then run the tests (ARGS="-k foo" selects)
	$(PY) -m pytest -q $(or $(ARGS),-n $(WORKERS) --dist worksteal)

coverage: export JAX_PLATFORMS ?= cpu
coverage: $(INSTALLED) ## run the tests and list the lines they miss
	$(PY) -m pytest -q --cov --cov-report=term-missing:skip-covered \
	  $(or $(ARGS),-n $(WORKERS) --dist worksteal)

lint: $(INSTALLED) ## check style, formatting and types
	$(PY) -m ruff check --quiet --output-format concise .
	$(PY) -m ty check --quiet
	$(PY) -m ruff format --check --quiet . || \
	  { echo "Formatting differs: run 'make format'." >&2; exit 1; }

format: $(INSTALLED) ## fix style and formatting in place
	$(PY) -m ruff check --quiet --fix .
	$(PY) -m ruff format .

lock: $(INSTALLED) ## update constraints.txt for all supported Pythons
	$(PY) -m uv pip compile setup.cfg --extra test \
	  --universal --python-version 3.11 --upgrade --no-annotate --quiet \
	  --custom-compile-command "make lock" --output-file constraints.txt

clean: ## remove .venv, builds and caches; runs/ stays
	rm -rf $(VENV) .venv-accelerators build dist *.egg-info
	rm -rf .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): setup.cfg pyproject.toml constraints.txt | $(VENV)/bin/pip
	echo "Installing nam-jax[$(EXTRAS)] into $(VENV); the first time takes a minute."
	{ $(PY) -m pip install -qq uv && $(PY) -m uv pip install -q $(REQUIRED); } \
	  || $(PY) -m pip install -qq $(REQUIRED)
	touch $@

# bin/pip is what venv writes last, so an interrupted creation is repeated.
$(VENV)/bin/pip:
	$(if $(call python_says_ok,import sys; assert sys.version_info >= (3, 11)),,\
	  $(error nam-jax needs Python 3.11 or newer, and $(PYTHON) is \
	  '$(shell { $(PYTHON) --version || true; } 2>&1)': try make PYTHON=python3.12))
	$(if $(call python_says_ok,import ensurepip; import venv),,\
	  $(error $(PYTHON) lacks the venv module: install it (python3-venv on Debian)))
	$(PYTHON) -m venv $(VENV)

python_says_ok = $(shell $(PYTHON) -c '$(1)' 2>/dev/null && echo ok)
