"""Files in which the fuzzer found a wrong verdict. Their first lines say what must hold now:

# not PROVED: the class of the defect           every case of the file is wrong
# a value clause: the class of the defect       the same, and may be PROVED under a clause that excludes the bad values
# a shape clause: the class of the defect       the same of sizes
# not TESTED: the class of the defect           of no case an execution says anything
# REFUTED: what was tested by mistake            an input shows that every case of the file is wrong
# PROVED: what was refuted by mistake           every case of the file is right
# no crash: what was raised                     every case of the file has a verdict

A second line "# open" says that the defect is not mended yet.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trilift import verify
from trilift.lift.capture.case_files import load
from trilift.verify.model.verdict import Verdict

WORDS = (
    "# not PROVED: ",
    "# not TESTED: ",
    "# REFUTED: ",
    "# PROVED: ",
    "# no crash: ",
    "# a value clause: ",
    "# a shape clause: ",
)
FILES = sorted(p for p in Path(__file__).parent.glob("*.py") if p.name != Path(__file__).name)


def cases(path: Path) -> list[object]:
    """The cases of a file, marked where it says that the defect is open."""
    lines = path.read_text().splitlines()
    known = pytest.mark.xfail(strict=True, reason=lines[0].lstrip("# "))
    return [pytest.param(path, id=path.stem, marks=known if lines[1].startswith("# open") else ())]


@pytest.mark.parametrize("path", [c for p in FILES for c in cases(p)])
def test_the_verdict_is_right(path: Path) -> None:
    head = path.read_text()
    proofs = [p for case in load(str(path)) for p in verify.prove(case)]
    assert proofs and head.startswith(WORDS)
    for proof in proofs:
        proved = proof.verdict is Verdict.PROVED
        if head.startswith(("# a value clause", "# a shape clause")):
            assert not proved or any(c.kind == head.split()[2] for c in proof.contract), proof.claim
        elif head.startswith("# not TESTED"):
            assert proof.verdict in (Verdict.UNKNOWN, Verdict.REFUTED), (proof.claim, proof.reason)
        elif head.startswith("# REFUTED"):
            assert proof.verdict is Verdict.REFUTED, (proof.claim, proof.reason)
        elif not head.startswith("# no crash"):
            assert proved == head.startswith("# PROVED"), (proof.claim, proof.reason)
