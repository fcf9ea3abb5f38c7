"""All experiments: one row each. Adding one is a row here and an `EXPERIMENTS` in its module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import click

from .experiment import Experiment


@dataclass(frozen=True, slots=True)
class Entry:
    """`module`: below this folder, where the experiment is found by its name. `corpus`: `trilift corpus NAME` prints
    it; `trilift report NAME` writes the page of every entry, and without names of those that are `usual`."""

    name: str
    module: str
    corpus: bool = False
    usual: bool = True


ENTRIES = (
    Entry("operators", "corpora.corpus", corpus=True),
    Entry("packages", "corpora.corpus", corpus=True),
    Entry("strangers", "corpora.corpus", corpus=True),
    Entry("broken", "corpora.expectations", corpus=True, usual=False),
    Entry("sound", "corpora.expectations", corpus=True, usual=False),
    Entry("legacy", "superoptimizer.legacy", corpus=True),
    Entry("mirage", "superoptimizer.mirage", corpus=True),
    Entry("trinity", "superoptimizer.trinity", corpus=True, usual=False),
    Entry("sweep", "corpora.sweep_table", corpus=True),
    Entry("strategies", "corpora.strategy_counts"),
    Entry("certificates", "corpora.certificates", usual=False),  # minutes
    Entry("bench", "bench"),
    Entry("mutants", "mutation.mutants"),
    Entry("fuzz", "fuzz.page"),
    Entry("defects", "defects.defect_page", usual=False),  # takes hours
    Entry("mutation-score", "mutation.mutation_score"),
    Entry("test-suites", "mutation.test_suites"),
    Entry("test-suites-packages", "mutation.test_suites"),
    Entry("sanitizer-comparison", "tool_comparison.sanitizer_comparison"),
    Entry("mugraph-mutants", "mutation.mugraph_mutants"),
    Entry("tile-rules", "superoptimizer.tile_rules"),
    Entry("tiles", "superoptimizer.tiles"),
    Entry("matrix", "matrix", usual=False),  # makes environments
    Entry("faults", "faults", usual=False),  # kills processes and starts a cluster
    Entry("gpu-times", "superoptimizer.gpu_times", usual=False),  # needs a GPU
)
CORPORA = tuple(e.name for e in ENTRIES if e.corpus)
REPORTS = tuple(e.name for e in ENTRIES)
USUAL = tuple(e.name for e in ENTRIES if e.usual)


def find(name: str) -> Experiment:
    """The experiment of this name; imports its module. Raises click.UsageError for a name that is none."""
    entry = next((e for e in ENTRIES if e.name == name), None)
    if entry is None:
        raise click.UsageError(f"no report is called {name}; there are {', '.join(REPORTS)}")
    found: Mapping[str, Experiment] = import_module(f".{entry.module}", __package__).EXPERIMENTS
    return found[name]


def corpus(name: str) -> Experiment:
    """The experiment of a corpus. Raises click.UsageError for a name that is none."""
    if name not in CORPORA:
        raise click.UsageError(f"no corpus is called {name}; there are {', '.join(CORPORA)}")
    return find(name)
