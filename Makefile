# Every command sets up .venv first. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The pip cache is used as it is; byte code makes imports several times faster.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow lint type docs bench figures experiments clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## make .venv with the package, its tests and its tools

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed; set PYTHON=..., for example make PYTHON=python3.12 setup"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test,dev,docs]'
	@touch $(STAMP)

demo: $(STAMP) ## synthesize the embedded demo table into demo/
	$(BIN)/pointillist demo --out demo --force

test: lint type docs ## lint, types, documentation and the tests
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

test-slow: $(STAMP) ## statistical and accuracy tests (minutes)
	$(BIN)/python -m pytest -q -m slow

lint: $(STAMP) ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(STAMP) ## mypy
	$(BIN)/mypy

docs: $(STAMP) ## build the documentation into site/
	$(BIN)/sphinx-build -q -W -b html docs site

bench: $(STAMP) ## benchmarks of speed and scaling
	$(BIN)/python -m benchmarks

figures: $(STAMP) ## draw the figures and write the tables of accuracy from the committed results
	$(BIN)/python -m experiments figures
	$(BIN)/python -m experiments report

WORKERS ?= 2
experiments: $(STAMP) ## make the missing runs of the experiments (hours; WORKERS=2)
	$(BIN)/python -m experiments run all --workers $(WORKERS)

clean: ## remove what the commands made
	rm -rf $(VENV) demo release site build dist
