"""The smallest program that is still wrong: stages left out, expressions replaced by what is below them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from .grammar import FLOATS, Expr, Program, Schedule, Stage
from .judge import Judged
from .mutate import Mutant
from .random_programs import pruned
from .reference import source

Wrong = Callable[[Program, Program], bool]  # (right, wrong)
PLAIN = Schedule()


def shrunk(right: Program, wrong: Program, fails: Wrong, tries: int = 60) -> tuple[Program, Program]:
    """A smaller pair of programs that `fails` still holds of, after at most `tries` questions. Both are changed at the
    same places, which keeps the difference between them."""
    changed = True
    while changed and tries > 0:
        changed = False
        for smaller in candidates(right, wrong):
            tries -= 1
            if tries < 0:
                break
            if fails(*smaller):
                right, wrong, changed = *smaller, True
                break
    return right, wrong


def candidates(right: Program, wrong: Program) -> Iterator[tuple[Program, Program]]:
    """Smaller pairs, the smallest first."""
    for k in range(len(right.stages)):
        yield from _both(right, wrong, lambda p, k=k: without(p, k))  # type: ignore[misc]
    for change in (lambda p: replace(p, branch=None), lambda p: replace(p, every=False)):
        yield from _both(right, wrong, change)
    for k, s in enumerate(right.stages):
        same = {f: v for f, v in _plain(s).items() if getattr(s.schedule, f) != v}
        for f, v in same.items():
            yield from _both(right, wrong, lambda p, k=k, f=f, v=v: _scheduled(p, k, f, v))  # type: ignore[misc]
        for number, top in enumerate(s.exprs()):
            if s.kind == "dot" and number == 0:
                continue
            for path in top.paths():
                for new in smaller(top.at(path)):
                    yield from _both(
                        right,
                        wrong,
                        lambda p, k=k, n=number, path=path, new=new: _put(p, k, n, path, new),  # type: ignore[misc]
                    )


def _both(right: Program, wrong: Program, change: Callable[[Program], Program]) -> Iterator[tuple[Program, Program]]:
    try:
        a, b = pruned(change(right)), pruned(change(wrong))
    except (IndexError, ValueError):
        return
    if a.stages and a != right and (a != b or right == wrong):
        inputs = {i.name for i in (*a.inputs, *b.inputs)}
        scalars = {n for n, _ in (*a.scalars, *b.scalars)}
        kept = tuple(i for i in right.inputs if i.name in inputs), tuple(s for s in right.scalars if s[0] in scalars)
        yield tuple(replace(p, inputs=kept[0], scalars=kept[1]) for p in (a, b))  # type: ignore[misc]


def without(p: Program, k: int) -> Program:
    """The program without a stage; what read it reads an input of the same name."""
    from .grammar import Input

    s = p.stages[k]
    if len(p.stages) == 1:
        raise ValueError("the only stage")
    rest = (*p.stages[:k], *p.stages[k + 1 :])
    return replace(p, stages=rest, inputs=(*p.inputs, Input(s.output, s.dtype, s.dims)))


def _plain(s: Stage) -> dict[str, object]:
    """The plainest values of the fields that say how a right stage runs."""
    return {"grid": "cdiv", "other": "", "block": 16, **({"width": "const"} if s.kind == "map" else {})}


def _scheduled(p: Program, k: int, name: str, value: object) -> Program:
    s = p.stages[k]
    return p.put(k, replace(s, schedule=replace(s.schedule, **{name: value})))  # type: ignore[arg-type]


def _put(p: Program, k: int, number: int, path: tuple[int, ...], new: Expr) -> Program:
    """The program with one expression replaced; where a mutant has no such place it stays."""
    s = p.stages[k]
    return p.put(k, s.with_expr(number, s.exprs()[number].put(path, new)))


def smaller(e: Expr) -> Iterator[Expr]:
    """Expressions of the same dtype below this one, or a number."""
    for a in e.args:
        if a.dtype == e.dtype and a.op not in ("const", "size", "scalar"):
            yield a
    below = [x for a in e.args for x in a.walk() if x.dtype == e.dtype and x.op in ("load", "reduced")]
    yield from dict.fromkeys(x for x in below if x not in e.args)
    if e.op in ("size", "scalar"):
        yield Expr("const", e.dtype, (), 2.0 if e.dtype in FLOATS else 2)


# ---- regressions -----------------------------------------------------------------------------------------------------


HEADS = {
    "wrong PROVED": "# not PROVED: ",
    "wrong TESTED": "# not PROVED: ",
    "wrong REFUTED": "# PROVED: ",
    "crash": "# no crash: ",
}  # of the files in tests/regressions, which say what they mean


def stored(j: Judged, folder: Path, again: Callable[[Program, Mutant | None], str], tries: int = 40) -> Path:
    """Writes the smallest case of which `again` tells the same outcome to a file in the folder, as a test that fails
    until the defect is mended."""

    def fails(right: Program, wrong: Program) -> bool:
        return again(right, replace(j.mutant, program=wrong) if j.mutant else None) == j.outcome

    right, wrong = shrunk(j.program, j.mutant.program if j.mutant else j.program, fails, tries)
    what = f"{j.mutant.kind}, {j.mutant.text}" if j.mutant else "a program"
    detail = " ".join((j.detail or j.told.reason).split())[:90]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{j.program.name}{'_' + j.mutant.kind.replace(' ', '_') if j.mutant else ''}.py"
    head = f"{HEADS[j.outcome]}{what}; {detail}\n# open\n\n"
    path.write_text(head + source(right, wrong if j.mutant else None))
    return path
