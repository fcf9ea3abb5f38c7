"""The integers that tests may draw for tensors without limits: of as many bits as leave everything within its type that
the contract keeps there.

    x ^ 3                                       all of i32
    -2^31 <= 1664525 * x[n] < 2^31              10 bits beside the sign
    0.5 * x[n]                                  24 bits: a float has no more digits
    x[n] is an index, or how often a loop runs  none but small ones
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from trilift.lift.cases.declaration import Case, Spec
from trilift.lift.pytorch.machine_integers import Fits
from trilift.lift.replay.rounding import FORMATS
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.machine_ranges import MachineRanges, dtype_limits
from trilift.lift.terms.ranges import Facts, Interval
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Module, Value

from ..memory.safety import SIZES
from ..model.verdict import Clause, Proof, Verdict
from ..normal_form.algebra import Undecided
from ..normal_form.enclosure import Enclosure
from ..proof.launch import Launched
from ..proof.prover import Proving
from .records import Output, Sizes, Whole
from .tolerance import narrowest

SMALL_BITS = 3  # of what is drawn anyway
EXPONENTIAL_BITS = 6  # exp and powers of larger ones are no numbers in single precision
EXPONENTIALS = {"exp", "exp2", "expm1", "pow", "sinh", "cosh", "prod"}
SCALARS = (-8, 1234)  # what tests pass where a scalar has no limits
LOADS = {"tt.load", "tt.descriptor_load", "tt.gather", "tt.atomic_rmw", "tt.atomic_cas"}
QUOTIENTS = {"floordiv", "truncdiv", "mod", "truncmod"}
DATA = ("assume", "assert", "hint", "clamp", "value")  # kinds of clauses that may be about elements


def whole(
    case: Case,
    outputs: Sequence[Output],
    proofs: Sequence[Proof],
    provings: Sequence[Proving],
    owed: Sequence[Fits],
    modules: Sequence[Module],
    sizes: Sizes,
) -> Mapping[str, Whole]:
    """By tensor the integers that tests may draw beside small ones; those of which only small ones are known to be
    within the contract are left out, unless they must not be 0. `owed`: what the reference rests on."""
    names = free(case)
    clauses = [c for p in proofs for c in p.contract]
    formulas = [o.formula for o in outputs if o.formula is not None]
    nonzero = {*map(divisor, clauses), *_divisors(formulas)}
    nonzero |= {str(o.term.attr) for o in owed if o.is_divisor and o.term.op == "read"}
    known = len(formulas) == len(outputs) and not any(map(loops_by_data, modules))
    bits = 0
    if names and known and not _unclear(clauses, names, sizes):
        bounded = [*_clauses(clauses, provings), *_computed(outputs, names)]
        bounded += [(o.term, (o.low, o.high - 1)) for o in owed if not (o.is_divisor or o.is_rounded)]
        bits = _most(case, bounded, sizes, _digits(case, formulas, modules, names))
    chosen = names - _indices(formulas, names)
    found = {n: Whole(bits_of(case.tensors[n], bits) if n in chosen else 0, n in nonzero) for n in case.tensors
             if n in names}  # fmt: skip
    return {n: w for n, w in found.items() if w.bits > SMALL_BITS or w.nonzero}


def free(case: Case) -> frozenset[str]:
    """The integer tensors without limits."""
    return frozenset(n for n, s in case.tensors.items() if s.dtype[0] in "iu" and s.low is None and s.high is None)


def bits_of(s: Spec, most: int = 63) -> int:
    """The bits of an integer type beside the sign, or as many as `most`; numbers above int64 are left out."""
    bits = int(s.dtype[1:]) - (s.dtype[0] == "i")
    return min(bits, most, 63) if min(bits, most) > SMALL_BITS else 0


def divisor(c: Clause) -> str | None:
    """The input all elements of which a clause keeps from 0."""
    if c.kind != "value" or c.term is None or c.term.op != "ne":
        return None
    read, zero = c.term.args if c.term.args[1].is_const else reversed(c.term.args)
    return str(read.attr) if read.op == "read" and zero is T.const(0) else None


def _unclear(clauses: Iterable[Clause], names: frozenset[str], sizes: Sizes) -> bool:
    """Whether a clause says more about elements than an interval does, or does not hold at the sizes that are tried."""
    for c in clauses:
        if c.term is not None and c.kind in DATA and divisor(c) is None and depending(c.term, names):
            return True
        if c.term is not None and c.kind == "nowrap" and any(value(c.term, d) is False for d in sizes.first):
            return True
    return False


def depending(t: Term, names: frozenset[str]) -> list[Term]:
    """The parts of a term that read one of these tensors."""
    found: dict[int, bool] = {}
    for s in t.walk():
        found[s.id] = (s.op == "read" and s.attr in names) or any(found[a.id] for a in s.args)
    return [s for s in t.walk() if found[s.id]]


# ---- what must stay within its type ----------------------------------------------------------------------------------

WORD: Interval = (-(2**31), 2**31 - 1)
LONG: Interval = (-(2**63), 2**63 - 1)
Bounded = tuple[Term | None, Interval]  # a term, None where it is not known, and its limits


def _computed(outputs: Iterable[Output], names: frozenset[str]) -> Iterator[Bounded]:
    """All integers of the formulas, which tests compute in int64. Where no contract keeps those of the kernel in their
    type, they must fit 32 bits."""
    for o in outputs:
        proved = o.proof is not None and o.proof.verdict is Verdict.PROVED
        terms = depending(o.formula.term, names) if o.formula is not None else ()
        yield from ((t, LONG if proved else WORD) for t in terms if t.type == T.INT)


def _clauses(clauses: Iterable[Clause], provings: Sequence[Proving]) -> Iterator[Bounded]:
    """The integers that clauses keep in their type."""
    for c in clauses:
        if c.kind != "nowrap" or c.term is not None:
            continue
        if c.data is not None:
            low, high = c.text.split(" <= ")[0], c.text.split(" where ")[0].rsplit(" < ")[-1]
            yield c.data, (int(low), int(high) - 1)
        else:
            yield from list(_arithmetic(c, provings)) or [(None, WORD)]


def _arithmetic(c: Clause, provings: Sequence[Proving]) -> Iterator[Bounded]:
    """The operations of kernels at the place that a clause without a term is about."""
    for launched in (found for p in provings for found in p.launched):
        for a in launched.program.arithmetic:
            if a.kind in SIZES and a.op.place == c.place:
                half = 1 << a.bits - 1
                yield _resolved(a.term, launched), (-half, half - 1)


def _resolved(t: Term, launched: Launched) -> Term | None:
    """A term over elements of the inputs; None where that is not known."""
    try:
        return launched.plain(launched.loops.resolved(t))
    except Undecided:
        return None


# ---- how many bits ---------------------------------------------------------------------------------------------------


class Elements(MachineRanges):
    """Intervals of terms over elements of tensors of integers with at most so many `bits`. The lanes that a masked load
    leaves undefined are not stored, and no sum has more terms than the largest tensor."""

    def __init__(self, case: Case, bits: int, sizes: Sizes):
        super().__init__(_elements(case, bits), _sizes(case, sizes))
        self.largest = sizes.largest

    def _of(self, t: Term, facts: Facts) -> Interval:
        match t.op:
            case "undef":
                return 0, 0
            case "size":
                return self.scalars.get(str(t.attr), (0, self.largest))
            case "to_int":
                return Enclosure({}, {}).of(t.args[0])
        return super()._of(t, facts)


def _most(case: Case, bounded: Iterable[Bounded], sizes: Sizes, most: int) -> int:
    """The largest number of bits with which all terms are within their limits, 0 for too few."""
    every = list(dict.fromkeys(bounded))
    for bits in range(most, SMALL_BITS, -1):
        ranges = Elements(case, bits, sizes)
        if all(t is not None and low <= ranges.of(t)[0] and ranges.of(t)[1] <= high for t, (low, high) in every):
            return bits
    return 0


def _elements(case: Case, bits: int) -> dict[str, Interval]:
    """The interval of the elements of each tensor of integers or truth values."""
    found: dict[str, Interval] = {}
    for n, s in case.tensors.items():
        if s.dtype == "bool":
            found[n] = 0, 1
        elif s.dtype[0] in "iu":
            low, high = dtype_limits(s.dtype)
            most = 2 ** bits_of(s, bits)
            found[n] = (max(low, -most), min(high, most - 1)) if n in free(case) else _limits(s, low, high)
    return found


def _limits(s: Spec, low: float, high: float) -> Interval:
    """The limits of a declaration, as far as they are numbers; others are modest numbers."""
    ends = s.low, s.high
    least, most = (None if e is None else int(e.attr) if e.is_const else SCALARS[1] for e in ends)
    least = least if s.low is None or s.low.is_const else SCALARS[0]
    return (low if least is None else least), (high if most is None else most - 1)


def _sizes(case: Case, sizes: Sizes) -> dict[str, Interval]:
    """Between which numbers sizes and scalars are."""
    scalars = {n: _limits(s, *SCALARS) for n, s in case.scalars.items() if s.dtype[0] in "iu"}
    return scalars | {n: (min(0, *v), max(v)) for n, v in sizes.values.items() if v}


# ---- integers in floats ----------------------------------------------------------------------------------------------


def _digits(case: Case, formulas: Sequence[Formula], modules: Sequence[Module], names: frozenset[str]) -> int:
    """The bits of integers that every float has on the way of those that become reals; 63 where none does."""
    if not any(_becomes_real(f, names) for f in formulas):
        return 63
    types = {"f32", narrowest(modules), *(f.dtype for f in formulas), *(s.dtype for s in case.tensors.values())}
    digits = min(FORMATS[d].digits for d in types if d in FORMATS)
    steep = any(s.op in EXPONENTIALS for f in formulas for s in depending(f.term, names))
    return min(digits, EXPONENTIAL_BITS) if steep else digits


def _becomes_real(f: Formula, names: frozenset[str]) -> bool:
    """Whether an integer of these tensors is an operand beside reals, or is stored as one."""
    parts = depending(f.term, names)
    whole = {s.id for s in parts if s.type == T.INT}
    if f.term.id in whole and f.dtype in FORMATS:
        return True
    mixed = (s for s in parts if s.op != "read" and (s.type == T.REAL or any(a.type == T.REAL for a in s.args)))
    return any(a.id in whole for s in mixed for a in s.args)


# ---- integers that are more than numbers -----------------------------------------------------------------------------


def _divisors(formulas: Iterable[Formula]) -> set[str]:
    """The tensors by whose elements integers are divided: PyTorch raises at 0."""
    quotients = (s for f in formulas for s in f.term.walk() if s.op in QUOTIENTS and s.type == T.INT)
    return {str(s.args[1].attr) for s in quotients if s.args[1].op == "read"}


def _indices(formulas: Iterable[Formula], names: frozenset[str]) -> set[str]:
    """The tensors whose elements are indices, or ends of sums."""
    terms = [s for f in formulas for s in f.term.walk()]
    used = [a for s in terms if s.op == "read" for a in s.args] + [s.attr.size for s in terms if s.op in T.FOLDS]
    return {n for t in used for n in T.reads(t) if n in names}


def loops_by_data(module: Module) -> bool:
    """Whether memory decides how often a loop of a kernel runs."""
    loaded: set[Value] = set()
    for op in module.walk():
        if op.name == "scf.while" or (op.name == "scf.for" and not loaded.isdisjoint(op.operands[:3])):
            return True
        if op.name in LOADS or not loaded.isdisjoint(op.operands):
            loaded |= {*op.results, *(v for region in op.regions for block in region.blocks for v in block.args)}
    return False
