"""Cases examined once, with their sizes, for tests of what is written from them."""

from functools import cache
from pathlib import Path

from trilift.lift import lift
from trilift.lift.capture.case_files import load
from trilift.lift.cases.declaration import Case
from trilift.verify import examine
from trilift.verify.model.verdict import Proof
from trilift.verify.properties.records import Sizes
from trilift.verify.properties.sizes import sizes

KERNELS = str(Path(__file__).parents[1] / "kernels" / "kernels_sizes.py")


@cache
def sized(name: str, file: str = KERNELS) -> tuple[Case, tuple[Proof, ...], Sizes]:
    """The case, its proofs, its sizes."""
    [case] = load(file, [name])
    e = examine(case, lifted=lift(case, 0))
    return case, e.proofs, sizes(case, e.proofs, e.provings, 0, e.goal)
