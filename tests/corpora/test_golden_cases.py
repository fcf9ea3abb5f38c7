"""Each case of the corpora whose results are kept gives them again, in this process: `make goldens-check` by cases.

That one proves in other processes, where a defect that is planted in this one is absent.
"""

from __future__ import annotations

from typing import Any

import pytest

from trilift.lift.capture.case_files import load
from trilift.lift.runtime.session import Session
from trilift.reports.experiments import golden
from trilift.reports.experiments.folders import GOLDENS, ROOT
from trilift.reports.records.options import Options, Proving
from trilift.reports.records.record import record

CORPORA = ("broken", "sound", "operators")


def kept() -> list[Any]:
    """(corpus, name of the case, the lines of its golden)."""
    known = [(c, *case) for c in CORPORA for case in golden.cases((GOLDENS / f"{c}.txt").read_text()).items()]
    return [pytest.param(c, name, lines, id=name.removeprefix("corpus/")) for c, name, lines in known if "::" in name]


@pytest.mark.slow
@pytest.mark.parametrize(("corpus", "name", "lines"), kept())
def test_the_results_of_a_case(corpus: str, name: str, lines: list[str]) -> None:
    file, _, case = name.partition("::")
    (found,) = (c for c in load(str(ROOT / file)) if c.name == case)
    with Session():
        made = record(found, Options(proving=Proving(), audit=corpus != "operators"), lambda e: None, str(ROOT / file))
    assert golden.cases(golden.text({"title": corpus, "cases": [made]})) == {name: lines}
