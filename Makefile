# `make help` lists the targets. On a fresh machine with Python 3.11 and pip, `make demo` and `make test` need nothing else.

PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
JOBS ?= 2
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test smoke lint types corpus packages sweep results mutants hostile \
  test-all durations fuzz defects mugraph-mutants mutation-score test-suites sanitizer-comparison matrix tiles gpu written bench goldens goldens-check \
  docs docs-outputs picture clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

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

demo: $(VENV)/.liger ## lift and prove kernels of liger-kernel from PyPI, in under 5 minutes
	$(BIN)/trilift lift --jobs $(JOBS) \
	  $(foreach c,rms_norm rms_norm_backward layer_norm softmax swiglu swiglu_backward geglu cross_entropy,corpus/packages/liger.py::$(c))
	$(BIN)/trilift prove --jobs $(JOBS) \
	  $(foreach c,rms_norm layer_norm softmax swiglu cross_entropy,corpus/packages/liger.py::$(c))

test: $(VENV)/.dev $(VENV)/.liger ## run the tests but for the slow ones, in under 15 minutes
	$(BIN)/python -m pytest -q -rs -n $(JOBS) --dist loadfile --max-worker-restart=0 -m "not slow" --durations=20 $(PYTEST_ARGS)

test-all: $(VENV)/.dev $(VENV)/.liger ## run all tests
	$(BIN)/python -m pytest -q -rs -n $(JOBS) --dist loadfile --max-worker-restart=0 --durations=20 $(PYTEST_ARGS)

durations: $(VENV)/.dev $(VENV)/.liger ## run all tests, record in tests/durations.json what each takes
	$(BIN)/python -m pytest -q -rs -n $(JOBS) --dist loadfile --max-worker-restart=0 --record-durations $(PYTEST_ARGS)

smoke: $(VENV)/.dev ## run the fast tests, under 30 seconds
	$(BIN)/python -m pytest -q -rs -n $(JOBS) -m smoke $(PYTEST_ARGS)

lint: $(VENV)/.dev ## run ruff: lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## run mypy
	$(BIN)/mypy

corpus: $(VENV)/.core ## prove the operators and print their table
	$(BIN)/trilift corpus operators --jobs $(JOBS)

packages: $(VENV)/.packages ## install the packages of the corpus, prove their cases, print the table
	$(BIN)/trilift corpus packages --jobs $(JOBS)

sweep: $(VENV)/.packages ## read every kernel of those packages and print what is missing
	$(BIN)/trilift corpus sweep --jobs $(JOBS)

mutants: $(VENV)/.packages ## change kernels: no change may be proved that an execution tells
	$(BIN)/python -m trilift.reports.experiments.mutation.mutants corpus/operators corpus/packages --jobs $(JOBS)

hostile: $(VENV)/.dev ## try 2,000 malformed files of each kind: IR, launch descriptions, formulas, specifications
	HOSTILE=2000 $(BIN)/python -m pytest -q -rs -n $(JOBS) tests/lift/test_hostile_texts.py

N ?= 100
SEED ?= 0
fuzz: $(VENV)/.core ## try N random programs and mutants of them with SEED: no verdict may be contradicted
	$(BIN)/python -m trilift.reports.experiments.fuzz --count $(N) --seed $(SEED) --jobs $(JOBS) --regressions tests/regressions

defects: $(VENV)/.dev $(VENV)/.liger ## plant defects in the prover and see which of them the tests notice, in hours
	$(BIN)/python -m trilift.reports.experiments.defects --seed $(SEED)

mugraph-mutants: $(VENV)/.core ## change µGraphs and emitted files: none may be accepted that differs
	$(BIN)/python -m trilift.reports.experiments.mutation.mugraph_mutants --jobs $(JOBS)

mutation-score: $(VENV)/.core ## print the mutation score of the written tests, and of the usual ones
	$(BIN)/python -m trilift.reports.experiments.mutation.mutation_score corpus/operators --jobs $(JOBS)

test-suites: $(VENV)/.dev ## write the tests of each operator and run them, one process for each
	$(BIN)/python -m trilift.reports.experiments.mutation.test_suites corpus/operators --jobs $(JOBS)

tiles: $(VENV)/.core ## emit kernels of Trinity's programs into build/results/kernels, 40 minutes
	$(BIN)/trilift report tiles --jobs $(JOBS)

gpu: $(VENV)/.core ## time what `trilift report mirage legacy` emitted on a GPU, within ten minutes; make the page
	$(BIN)/trilift report gpu-times

results: $(VENV)/.packages ## run all experiments: pages, summary.json, data in build/results
	$(BIN)/trilift report --jobs $(JOBS) --keep build/results/kept

written: $(VENV)/.dev ## write tests of all operators with `trilift write` and run them
	$(BIN)/trilift write corpus/operators -o build/written/
	cd build/written && $(abspath $(BIN))/python -m pytest -q -rs -n $(JOBS)

# triton-viz needs an older Triton, and so an environment of its own.
$(VENV)/.sanitizer: $(VENV)/.core
	$(PYTHON) -m venv $(VENV)/sanitizer
	$(VENV)/sanitizer/bin/python -m pip --disable-pip-version-check -q install "$(TORCH)" -e ".[sanitizer]"
	@touch $@

sanitizer-comparison: $(VENV)/.sanitizer ## audit broken and sound kernels, by triton-viz too
	PATH="$$PATH:$(abspath $(VENV))/sanitizer/bin" $(BIN)/trilift report sanitizer-comparison --jobs $(JOBS)

# Which build of PyTorch uv takes; empty: that of its indexes.
TORCH_BACKEND ?= cpu
matrix: $(VENV)/.dev ## prove the operators with Python 3.11 to 3.13 and Triton 3.6 to 3.9, an environment for each
	$(PIP) install uv
	$(if $(TORCH_BACKEND),UV_TORCH_BACKEND=$(TORCH_BACKEND)) $(BIN)/trilift report matrix --jobs $(JOBS)

bench: $(VENV)/.core ## measure time per stage, growth with blocks and tiles, ablations
	$(BIN)/python -m trilift.reports.experiments.bench

$(VENV)/.docs: $(VENV)/.core
	$(PIP) install -e ".[docs]"
	@touch $@

docs: $(VENV)/.docs ## build the documentation into build/site and check every link
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python docs/tools/links.py build/site README.md CONTRIBUTING.md BUGS_FOUND.md CHANGELOG.md

docs-outputs: $(VENV)/.dev ## run the commands that the README and docs show, and write what they print now
	$(BIN)/python docs/tools/update.py

picture: $(VENV)/.core ## draw docs/pictures from a run made now
	$(BIN)/python docs/tools/picture.py
	$(BIN)/python docs/tools/layers.py

goldens: $(VENV)/.dev ## rewrite the golden texts of the tests from what is printed now
	$(BIN)/python -m pytest -q --update-golden $(PYTEST_ARGS)

# Formula, verdict, contract and findings of every case. After a change of the code that should change no result, this
# prints nothing but the names of the corpora.
GOLDENS ?= $(basename $(notdir $(wildcard tests/goldens/corpora/*.txt)))
goldens-check: $(VENV)/.packages ## compare what every case says now with tests/goldens/corpora
	@code=0; for name in $(GOLDENS); do $(BIN)/trilift corpus $$name --check --no-cache -q --jobs $(JOBS) || code=1; done; exit $$code

clean: ## remove the environment and caches
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
