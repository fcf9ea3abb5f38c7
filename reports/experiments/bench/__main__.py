"""`python -m trilift.reports.experiments.bench`: measures, prints the tables and writes reports/results/bench.md and
.json."""

from __future__ import annotations

from ...records.options import Options
from .. import pages

if __name__ == "__main__":
    pages.regenerate(["bench"], Options(jobs=2), quiet=False)
    print((pages.RESULTS / "bench.md").read_text())
