"""Integer conditions as SMT-LIB 2 texts, which any solver can check again.

A text says that the facts hold and the goal does not; `unsat` confirms the condition. Division is SMT-LIB's, which
rounds down for positive divisors; what the project calculates itself (verify.integers.linear) has no part in these
texts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from trilift.lift.errors import Unsupported
from trilift.lift.terms.meanings import Domain
from trilift.lift.terms.term import BOOL, INT, Term

from ..model.verdict import Condition
from .conditions import CORE, interpreted, leaves, question

SOLVED = ("linear", "numbers", "z3")  # what decides integer conditions; others are not about integers alone

STATUS = re.compile(r"\(set-info :status (\w+)\)")  # for the reader: a solver must not know it
QUOTED = re.compile(r"[^ -~]|[|\\]")  # not allowed in a quoted symbol
TAKEN = {"div", "let", "forall", "exists", "assert", "true", "false", "abs", "par", "_"}


@dataclass(frozen=True, slots=True)
class Head:
    """The name of an operation in SMT-LIB. `body`: "" for a function that SMT-LIB defines, else its definition over
    integers a and b, which the text states first. `binary`: the function takes two arguments at a time."""

    name: str
    body: str = ""
    binary: bool = False

    @property
    def definition(self) -> str:
        return f"(define-fun {self.name} ((a Int) (b Int)) Int {self.body})"


SMT = Domain("SMT-LIB", missing="opaque", says="its head in a text of SMT-LIB 2", types=(INT, BOOL, "same"))
SMT.fill({
    "add": Head("+"), "mul": Head("*"), "where": Head("ite"), "and": Head("and"), "or": Head("or"), "not": Head("not"),
    "eq": Head("="), "lt": Head("<"), "le": Head("<="),
    "floordiv": Head("floordiv", "(ite (> b 0) (div a b) (div (- a) (- b)))"),
    "mod": Head("floormod", "(ite (> b 0) (mod a b) (- (mod (- a) (- b))))"),
    "min": Head("minimum", "(ite (<= a b) a b)", binary=True),
    "max": Head("maximum", "(ite (<= a b) b a)", binary=True),
})  # fmt: skip
SMT.derive(("next_power_of_2",), "a number of its own, which _power describes")
SMT.derive(CORE.rows, "the integer core")


@dataclass(frozen=True, slots=True)
class Recheck:
    """A second solver's answer to one file: `status` is "unsat" (confirmed), "sat" or "unknown"."""

    file: str
    expected: str
    status: str
    seconds: float

    @property
    def confirmed(self) -> bool:
        return self.status == self.expected == "unsat"


def smt_text(facts: Iterable[Term], goal: Term, what: str = "", status: str = "unsat") -> str:
    """The question whether the facts imply the goal: `unsat` means that they do. Same question, same text."""
    literals = question(facts, goal)
    names = _names(frozenset().union(*map(leaves, literals)))
    memo: dict[int, str] = {}
    asserted = sorted({_text(t, names, memo) for t in literals})
    used = {s.op for t in literals for s in t.walk() if interpreted(s)}
    powers = {s.id: s for t in literals for s in t.walk() if interpreted(s) and s.op == "next_power_of_2"}
    axioms = sorted(_power(s, names, memo) for s in powers.values())
    declared = sorted(f"(declare-const {n} {'Bool' if t.type == BOOL else 'Int'})" for t, n in names.items())
    return "\n".join([
        *(f"; {line}" for line in what.splitlines()),
        f"(set-logic {'QF_NIA' if any(map(_nonlinear, literals)) else 'QF_LIA'})",
        f"(set-info :status {status})",
        *(h.definition for op, h in SMT.rows.items() if h.body and op in used),
        *declared,
        *sorted(f"(declare-const {_power_name(s, names, memo)} Int)" for s in powers.values()),
        *(f"(assert {a})" for a in (*axioms, *asserted)),
        "(check-sat)",
        "",
    ])  # fmt: skip


def write_smt(conditions: Iterable[Condition], directory: str | Path) -> list[Path]:
    """One file for each integer condition that was asked of a solver, named by number and purpose. The expected status
    is `unsat` for those that hold, else `unknown`."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    out: list[Path] = []
    for k, c in enumerate(c for c in conditions if c.by in SOLVED):
        path = folder / f"{k:04d}-{_slug(c.what)}.smt2"
        path.write_text(smt_text(c.facts, c.goal, c.what, "unsat" if c.holds else "unknown"), encoding="utf-8")
        out.append(path)
    return out


def recheck(directory: str | Path, solver: str = "cvc5", timeout: float = 5.0) -> tuple[Recheck, ...]:
    """Another solver's answer to every .smt2 file in the directory, `timeout` seconds for each; Unsupported if it is
    not installed."""
    if solver != "cvc5":
        raise Unsupported(f"no solver {solver}", help="the only supported solver is cvc5")
    return tuple(_ask(path, timeout) for path in sorted(Path(directory).glob("*.smt2")))


def _ask(path: Path, timeout: float) -> Recheck:
    try:
        import cvc5  # type: ignore[import-not-found, import-untyped]
    except ImportError as e:
        raise Unsupported("cvc5 is not installed", help="pip install 'trilift[solvers]'") from e
    start = time.perf_counter()
    text = path.read_text(encoding="utf-8")
    expected = STATUS.search(text)
    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(max(1, int(timeout * 1000))))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, STATUS.sub("", text), path.name)
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += command.invoke(solver, parser.getSymbolManager())
    words = said.split()
    status = words[-1] if words and words[-1] in ("sat", "unsat") else "unknown"
    return Recheck(path.name, expected.group(1) if expected else "", status, time.perf_counter() - start)


# ---- text ------------------------------------------------------------------------------------------------------------


def _names(symbols: Iterable[Term]) -> dict[Term, str]:
    """Sizes, scalars and axes keep their names; of two with one name, and of other symbols, the text in bars."""
    out: dict[Term, str] = {}
    taken = TAKEN | {h.name for h in SMT.rows.values()}
    for t in sorted(symbols, key=lambda t: (repr(t), t.op, t.id)):
        text = repr(t)
        name = text if re.fullmatch(r"[A-Za-z_]\w*", text) else f"|{QUOTED.sub('?', text)[:80]}|"
        plain, k = name.rstrip("|"), 1
        while name in taken:
            k += 1
            name = f"{plain}.{k}" + "|" * plain.startswith("|")
        taken.add(name)
        out[t] = name
    return out


def _text(t: Term, names: dict[Term, str], memo: dict[int, str]) -> str:
    for s in t.walk():
        if s.id not in memo and (s in names or s.op == "const" or interpreted(s)):
            memo[s.id] = _one(s, names, memo)
    return memo[t.id]


def _one(t: Term, names: dict[Term, str], memo: dict[int, str]) -> str:
    if t in names:
        return names[t]
    if t.op == "const":
        return str(t.attr).lower() if t.type == BOOL else str(t.attr) if t.attr >= 0 else f"(- {-t.attr})"
    if t.op == "next_power_of_2":
        return _power_name(t, names, memo)
    args = [_text(a, names, memo) for a in t.args]
    head: Head = SMT.rows[t.op]
    return reduce(lambda a, b: f"({head.name} {a} {b})", args) if head.binary else f"({head.name} {' '.join(args)})"


def _power_name(t: Term, names: dict[Term, str], memo: dict[int, str]) -> str:
    return f"|next_power_of_2 {_text(t.args[0], names, memo).replace('|', '')}|"


def _power(t: Term, names: dict[Term, str], memo: dict[int, str]) -> str:
    """n <= p < 2n, or p = 0 of n <= 0; p is 1 or even; and what a power of two that is large enough is divisible by."""
    n, p = _text(t.args[0], names, memo), _power_name(t, names, memo)
    divisible = " ".join(f"(or (< {p} {1 << k}) (= (mod {p} {1 << k}) 0))" for k in range(1, 7))
    return f"(and (>= {p} 0) (>= {p} {n}) (ite (<= {n} 0) (= {p} 0) (< {p} (* 2 {n}))) {divisible})"


def _nonlinear(t: Term) -> bool:
    return any(
        (s.op == "mul" and sum(a.op != "const" for a in s.args) > 1)
        or (s.op in ("floordiv", "mod") and s.args[1].op != "const")
        for s in t.walk() if interpreted(s)
    )  # fmt: skip


def _slug(what: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", what.lower()).strip("-")[:60] or "condition"


def table(rows: Sequence[Recheck]) -> str:
    """One line for each file."""
    return "\n".join(f"{r.status:8} {r.seconds:7.3f} s  {r.file}" for r in rows)
