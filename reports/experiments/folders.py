"""Where the corpora lie, and where results go."""

from __future__ import annotations

from ..base.fingerprint import ROOT

CORPUS = ROOT / "corpus"
RESULTS = ROOT / "reports" / "results"  # pages and summary.json: part of the repository
SUMMARY = RESULTS / "summary.json"
RAW = ROOT / "build" / "results"  # all data, and emitted kernels: `make results` writes them, git ignores them
GOLDENS = ROOT / "tests" / "goldens" / "corpora"
