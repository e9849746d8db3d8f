# Two commands on a fresh machine: `make reproduce` and `make test`. `make setup` does the set-up alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# One thread for each process: tests run side by side, and small matrices gain nothing from more. A file is
# run by one process, so that what its tests share is made once; tests/conftest.py puts the files in order.
# Tests that need a database or a browser find them where `make services` has written that it started them.
SERVICES := .services
PYTEST := { [ ! -f $(SERVICES) ] || . ./$(SERVICES); }; OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest
SPREAD := -n auto --dist loadfile --no-loadscope-reorder

.PHONY: help setup services services-stop reproduce check test soak lint types contract near quick pytest kernels kernel bench compare docs pin clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Python 3.11 or newer is needed, {v.major}.{v.minor} was found: try make PYTHON=python3.11")'
	@echo "setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# One stamp a set of requirements, so that reproducing a figure does not wait for the developers' tools.
# The build backend comes first, from the same pinned file, so that no build reaches for an unpinned one.
$(VENV)/%.stamp: requirements/%.txt pyproject.toml | $(BIN)/python
	@echo "installing requirements/$*.txt"
	@$(PIP) --require-hashes -r requirements/build.txt
	@$(PIP) --require-hashes -r $<
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(VENV)/dev.stamp  ## set up .venv with everything a developer needs

services:  ## install and start what some tests need: PostgreSQL, Chromium and its driver
	@deploy/services.sh start $(SERVICES)

services-stop:  ## stop the database that make services started, and remove it
	@deploy/services.sh stop $(SERVICES)

reproduce: $(VENV)/lab.stamp  ## run the default experiments, print their tables, draw their figures
	@$(BIN)/unfog reproduce

check: lint types contract near  ## the fast loop: lint, types, imports contract, quick tests beside what changed and of the maths

test: lint contract  ## everything that must hold: lint, types, imports contract, tests
	@$(MAKE) --no-print-directory --jobs=2 types pytest

soak: setup  ## what takes long, and how long each took: CONTRIBUTING.md lists it
	@$(PYTEST) -m soak --durations=0 --durations-min=1

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup
	@$(BIN)/mypy

contract: setup
	@$(BIN)/lint-imports

near: setup
	@$(PYTEST) $(SPREAD) -m "not slow and not soak" $$($(BIN)/python tests/near.py)

quick: setup  ## all quick tests
	@$(PYTEST) $(SPREAD) -m "not slow and not soak"

pytest: setup
	@$(PYTEST) $(SPREAD)

# Sums are rounded otherwise on another processor: see tests/kernels.py for those that this one can play.
KERNELS := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python tests/kernels.py

kernels: setup  ## quick tests of the numeric rooms as on other processors, one after another
	@$(KERNELS) tests/agents tests/maths tests/simulation tests/live tests/lab tests/paper

kernel: setup  ## those of agents, maths and simulation as on one of them
	@$(KERNELS) --only haswell-no-avx512 tests/agents tests/maths tests/simulation

bench: $(VENV)/lab.stamp  ## rounds a second of every agent, against a plain loop; learners and agents against Algorithm 1
	@$(BIN)/python benchmarks/rounds.py
	@$(BIN)/python benchmarks/logistic.py
	@$(BIN)/python benchmarks/agents.py

compare: setup  ## engines and other libraries in one run, then docs/notebook/benchmarks.md and its picture
	@$(BIN)/python benchmarks/compare.py
	@$(BIN)/python benchmarks/page.py

docs: setup  ## build the site into docs/_build/html; a warning is an error
	@OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -W --keep-going --quiet -d docs/_build/doctrees docs docs/_build/html
	@echo "open docs/_build/html/index.html"

pin: $(VENV)/dev.stamp  ## make the pinned, hashed requirements files anew
	@$(PIP) uv
	@for part in build core lab serve dev; do \
	  case $$part in core) extra= ;; serve) extra="--extra serve --extra postgres" ;; *) extra="--extra $$part" ;; esac; \
	  $(BIN)/uv pip compile --quiet pyproject.toml $$extra --generate-hashes --universal \
	    --python-version 3.11 --no-header --no-annotate --output-file requirements/$$part.txt; \
	done

clean:  ## remove what the other commands made, except runs/ and figures/
	@rm -rf docs/_build docs/examples docs/reference/generated
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
