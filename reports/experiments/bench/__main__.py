"""`python -m trilift.reports.experiments.bench`: measures, prints the tables and writes reports/results/bench.md."""

from __future__ import annotations

from ...records.options import Options
from .. import pages
from ..folders import RESULTS

if __name__ == "__main__":
    pages.regenerate(["bench"], Options(jobs=2), quiet=False)
    print((RESULTS / "bench.md").read_text())
