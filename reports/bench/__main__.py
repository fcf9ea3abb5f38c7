"""`python -m reports.bench`: measures, prints the tables and writes reports/results/bench.md and .json."""

from __future__ import annotations

from reports import results, runner

if __name__ == "__main__":
    results.regenerate(["bench"], runner.Options(jobs=2), quiet=False)
    print((results.RESULTS / "bench.md").read_text())
