"""Cases examined once, with their sizes, for tests of what is written from them."""

from functools import cache
from pathlib import Path

from lift import lift
from lift.load import load
from verify import examine
from verify.sizes import sizes

KERNELS = str(Path(__file__).parent / "kernels_sizes.py")


@cache
def sized(name, file=KERNELS):
    """The case, its proofs, its sizes."""
    [case] = load(file, [name])
    e = examine(case, lifted=lift(case, 0))
    return case, e.proofs, sizes(case, e.proofs, e.provings, 0, e.goal)
