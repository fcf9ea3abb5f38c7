"""Which defects are planted: a seeded choice, by the size of the folders that a proof rests on, operators in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from ...base.fingerprint import ROOT
from .sites import OPERATORS, Site, sites

TRUSTED = (
    "verify/normal_form/**/*.py",
    "verify/memory/*.py",
    "verify/loops/*.py",
    "verify/integers/*.py",
    "verify/execution/*.py",
    "verify/configurations/*.py",
    "verify/proof/*.py",
    "lift/interpreter/**/*.py",
    "lift/ttir/*.py",
    "lift/pytorch/*.py",
    "lift/pytorch/host/*.py",
    "lift/terms/*.py",
)
UNTRUSTED = {
    "verify/proof/smt_baseline.py",  # a way of proving that is only compared with
    "lift/pytorch/preload.py",
    "lift/terms/skeleton.py",  # guesses of formulas
    "verify/integers/model_search.py",  # numbers for counterexamples
    "verify/integers/model_cache.py",
    "verify/normal_form/numeric_refuter.py",  # refuses only
}


def drawn(count: int, seed: int, root: Path = ROOT) -> list[Site]:
    """`count` defects. A larger count begins with those of a smaller one."""
    groups = [(size, _in_turn(found, seed)) for size, found in (group(p, root) for p in TRUSTED) if found]
    whole = sum(size for size, _ in groups)
    ranked = ((((k + 0.5) * whole / size), g, s) for g, (size, ss) in enumerate(groups) for k, s in enumerate(ss))
    return [s for _, _, s in sorted(ranked, key=lambda r: r[:2])][:count]


@cache
def group(pattern: str, root: Path) -> tuple[int, list[Site]]:
    """The lines of the files of a pattern, and their sites."""
    files = [p for p in sorted(root.glob(pattern)) if str(p.relative_to(root)) not in UNTRUSTED]
    texts = [(str(p.relative_to(root)), p.read_text()) for p in files]
    return sum(t.count("\n") for _, t in texts), [s for f, t in texts for s in sites(f, t)]


def _in_turn(found: Sequence[Site], seed: int) -> list[Site]:
    """The sites in a seeded order, the operators in turn; of the lines of one statement one site."""
    order = sorted(found, key=lambda s: sha256(f"{seed} {s.key}".encode()).digest())
    queues = [[s for s in order if s.operator == o] for o in OPERATORS]
    taken: set[tuple[str, int]] = set()
    out = []
    for s in (s for row in zip_longest(*queues) for s in row if s is not None):
        if (s.file, s.line) not in taken:
            taken.add((s.file, s.line))
            out.append(s)
    return out


def by_file(found: Sequence[Site]) -> Iterator[tuple[str, list[tuple[int, Site]]]]:
    """The numbered defects of each file."""
    for file in dict.fromkeys(s.file for s in found):
        yield file, [(k, s) for k, s in enumerate(found) if s.file == file]
