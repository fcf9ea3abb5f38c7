"""Where the corpora lie, and where results go."""

from __future__ import annotations

from ..base.fingerprint import ROOT

CORPUS = ROOT / "corpus"
RESULTS = ROOT / "reports" / "results"  # pages and summary.json: part of the repository
SUMMARY = RESULTS / "summary.json"
KERNELS = RESULTS / "kernels"  # emitted for Mirage's programs and legacy code: part of the repository
RAW = ROOT / "build" / "results"  # all data, and what is too long to keep: `make results` writes it, git ignores it
GOLDENS = ROOT / "tests" / "goldens" / "corpora"
