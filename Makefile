# `make help` lists the targets. On a fresh machine with Python 3.11 and pip, `make demo` and `make test` need nothing else.

PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
JOBS ?= 2
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-all durations smoke lint types corpus packages sweep mutants mugraph-mutants kills gpu written bench audit golden clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# torch is exact so that pip takes the CPU build where one is at hand; any torch that is already there is kept.
$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -c "import torch" 2>/dev/null || $(PIP) install "$(TORCH)"
	$(PIP) install -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) install -e ".[dev]"
	@touch $@

$(VENV)/.liger: $(VENV)/.core
	$(PIP) install --no-deps liger-kernel==0.8.5
	@touch $@

$(VENV)/.packages: $(VENV)/.core corpus/packages/requirements.txt corpus/packages/imports.txt
	$(PIP) install -r corpus/packages/imports.txt
	$(PIP) install --no-deps -r corpus/packages/requirements.txt
	@touch $@

demo: $(VENV)/.liger ## formulas of kernels of liger-kernel, installed from PyPI, and proofs of five, in under 5 minutes
	$(BIN)/trilift lift --jobs $(JOBS) \
	  $(foreach c,rms_norm rms_norm_backward layer_norm softmax swiglu swiglu_backward geglu cross_entropy,corpus/packages/liger.py::$(c))
	$(BIN)/trilift prove --jobs $(JOBS) \
	  $(foreach c,rms_norm layer_norm softmax swiglu cross_entropy,corpus/packages/liger.py::$(c))

test: $(VENV)/.dev $(VENV)/.liger ## the tests but for the slow ones, in under 15 minutes
	$(BIN)/python -m pytest -q -n $(JOBS) -m "not slow" --durations=20 $(PYTEST_ARGS)

test-all: $(VENV)/.dev $(VENV)/.liger ## all tests
	$(BIN)/python -m pytest -q -n $(JOBS) --durations=20 $(PYTEST_ARGS)

durations: $(VENV)/.dev $(VENV)/.liger ## run all tests and record in tests/durations.json what each takes
	$(BIN)/python -m pytest -q -n $(JOBS) --record-durations $(PYTEST_ARGS)

smoke: $(VENV)/.dev ## the fast tests, under 30 seconds
	$(BIN)/python -m pytest -q -m smoke $(PYTEST_ARGS)

lint: $(VENV)/.dev ## ruff: lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy on lift, verify and reports
	$(BIN)/mypy

corpus: $(VENV)/.core ## lift the operators and print their table
	$(BIN)/trilift corpus operators --jobs $(JOBS)

packages: $(VENV)/.packages ## install the packages of the corpus, lift their cases and print the table
	$(BIN)/trilift corpus packages --jobs $(JOBS)

sweep: $(VENV)/.packages ## read every kernel of those packages' modules and print what is missing
	$(BIN)/trilift corpus sweep --jobs $(JOBS)

mutants: $(VENV)/.packages ## mutants of the corpus's kernels: none may be proved that an execution tells from the original
	$(BIN)/python -m trilift.reports.experiments.mutants corpus/operators corpus/packages --jobs $(JOBS)

mugraph-mutants: $(VENV)/.core ## changed µGraphs and emitted files of Mirage's programs: none may be accepted that differs
	$(BIN)/python -m trilift.reports.experiments.mugraph_mutants --jobs $(JOBS)

kills: $(VENV)/.core ## mutants of the operators against the tests that are written for them, and against the usual ones
	$(BIN)/python -m trilift.reports.experiments.mutation_score corpus/operators --jobs $(JOBS)

gpu: $(VENV)/.core ## time the emitted kernels on this machine's GPU, within ten minutes; trilift report timed makes the page
	$(BIN)/python -m trilift.reports.experiments.gpu_times

written: $(VENV)/.dev ## tests of all operators, written by `trilift write` and run
	$(BIN)/trilift write corpus/operators -o build/written/
	cd build/written && $(abspath $(BIN))/python -m pytest -q -n $(JOBS)

# triton-viz needs an older Triton, and so an environment of its own.
$(VENV)/.sanitizer: $(VENV)/.core
	$(PYTHON) -m venv $(VENV)/sanitizer
	$(VENV)/sanitizer/bin/python -m pip --disable-pip-version-check -q install "$(TORCH)" -e ".[sanitizer]"
	@touch $@

audit: $(VENV)/.sanitizer ## audit the broken and the sound kernels of the corpus, beside triton-viz's sanitizer
	PATH="$$PATH:$(abspath $(VENV))/sanitizer/bin" $(BIN)/trilift report audit --jobs $(JOBS)

bench: $(VENV)/.core ## time per stage, growth with block size and tile count, ablations
	$(BIN)/python -m trilift.reports.experiments.bench

golden: $(VENV)/.dev ## rewrite the golden texts under tests/goldens from what is printed now
	$(BIN)/python -m pytest -q --update-golden $(PYTEST_ARGS)

clean: ## remove the environment and caches
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
