"""A second opinion: replays the proof that a certificate holds. This file shares no code with the prover.

It imports nothing of trilift. A certificate is data (`trilift prove --certificate`): the claim (formulas, contract), and
for each configuration a summary of its launches: grids, loops, accesses, integer arithmetic. From these the checker
itself derives what must be shown; the certificate holds no list of obligations. Hints in it (closed forms of loop
variables, who writes an element, contents between launches) are proved like everything else:

    loop        F(1) = next(0, init),  F(n + 1) = next(n, F(n)) for 1 <= n < trips
    bounds      0 <= offset < length of every access, under its mask
    integers    every sum and product fits its width, every divisor is not 0
    stores      value = formula[index of the element], under the mask, for all programs
    coverage    every element of an output has a program, lane and iteration that store it
    memory      no load meets a store of the same launch
    facts       follow from the contract, and do not contradict each other

Numbers are polynomials over atoms, powers of which may be negative or halves, times exp of a polynomial. Choices are
decided under the facts, or the proof goes on in both cases. Questions about integers go to cvc5 (else z3) as SMT-LIB,
with a budget in steps. What is not shown is said, and is never "checked".
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count, permutations
from typing import Any

VERSION = 1
STEPS_OF_QUESTION = 400_000  # resources of cvc5 or z3 for one question
CASES = 14  # nested case distinctions of one obligation
DEPTH = 6  # nested questions whether two numbers are equal
SINGLE = 3e-7  # relative difference of constants that are one in single precision
POWERS = 4  # of denominators that are multiplied out
QUESTIONS = 6_000  # to the solver, about one configuration
MODELS = 24  # kept, to see at once that facts do not imply a condition
PAIRS = 64  # atoms of one kind that a new one is compared with


class NotChecked(Exception):
    """The checker cannot redo a step; the text says which."""


class Wrong(Exception):
    """The certificate contradicts itself or is incomplete."""


class Split(Exception):
    """A condition that the facts do not decide."""

    def __init__(self, literal: Formula) -> None:
        super().__init__("a case is undecided")
        self.literal = literal


# ---- the certificate's terms -----------------------------------------------------------------------------------------

FOLDS = ("sum", "prod", "amax", "amin", "argmax", "argmin")
PROGRAMS = ("pid0", "pid1", "pid2")
AxisKey = tuple[str, int]  # name, and id of the term of its size


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """A term as the certificate has it. `attr` of an axis or fold is (name, size)."""

    op: str
    sort: str
    attr: Any
    args: tuple[Node, ...]
    id: int
    free: frozenset[AxisKey]

    @property
    def axis(self) -> AxisKey:
        """The key of an axis or of what a fold binds."""
        return self.attr[0], self.attr[1].id


def nodes(table: Sequence[Sequence[Any]]) -> list[Node]:
    """The terms of a certificate: rows [operation, sort, attribute, [numbers of arguments]]. Raises Wrong."""
    out: list[Node] = []
    for k, (op, sort, attr, numbers) in enumerate(table):
        if any(not 0 <= n < k for n in numbers):
            raise Wrong(f"term {k} is made of terms that come later")
        args = tuple(out[n] for n in numbers)
        free = frozenset[AxisKey]().union(*(a.free for a in args))
        if op == "axis" or op in FOLDS:
            attr = (attr[0], out[attr[1]])
            key = (attr[0], attr[1].id)
            free = (free | {key} if op == "axis" else free - {key}) | attr[1].free
        elif op == "size" and attr in PROGRAMS:
            free |= {(attr, -1)}
        elif op == "const" and isinstance(attr, str):
            attr = float(attr)
        out.append(Node(op, sort, attr, args, k, free))
    return out


# ---- polynomials -----------------------------------------------------------------------------------------------------

Number = Any  # Fraction or float
Mono = tuple[tuple[tuple[int, Fraction], ...], int]  # powers of atoms, and the id of the exponent of exp
_serial = count()


@dataclass(frozen=True, eq=False, slots=True)
class Atom:
    """What polynomials are made of. `kind`: sym, var, read, app, base (a polynomial), sum, max, arg. `vars`: the
    variables in it that are free."""

    id: int
    kind: str
    sort: str
    data: tuple[Any, ...]
    vars: frozenset[int]


@dataclass(frozen=True, eq=False, slots=True)
class Poly:
    """A polynomial; equal ones are one object. `vars`: of all its atoms."""

    id: int
    terms: Mapping[Mono, Number]
    vars: frozenset[int]
    whole: bool  # an integer

    @property
    def constant(self) -> Number | None:
        """The number that it is, if it is one."""
        if not self.terms:
            return Fraction(0)
        return self.terms.get(UNIT) if len(self.terms) == 1 else None

    def atoms(self) -> set[int]:
        """Its atoms, those of exponents too."""
        found = {a for m in self.terms for a, _ in m[0]}
        return found.union(*(POLYS[m[1]].atoms() for m in self.terms if m[1]))


UNIT: Mono = ((), 0)
ATOMS: dict[int, Atom] = {}
POLYS: dict[int, Poly] = {}
_atom_table: dict[tuple[Any, ...], Atom] = {}
_poly_table: dict[frozenset[tuple[Mono, Number]], Poly] = {}


def atom(kind: str, sort: str, *data: Any, variables: frozenset[int] = frozenset()) -> Atom:
    """The one atom with this content."""
    key = (kind, sort, *data)
    if key not in _atom_table:
        a = Atom(next(_serial), kind, sort, data, variables)
        if kind == "var":
            a = Atom(a.id, kind, sort, data, frozenset((a.id,)))
        _atom_table[key] = ATOMS[a.id] = a
    return _atom_table[key]


def poly(terms: Mapping[Mono, Number]) -> Poly:
    """The one polynomial with these terms."""
    kept = {m: c for m, c in terms.items() if c}
    key = frozenset(kept.items())
    if key not in _poly_table:
        variables = frozenset[int]().union(
            *(ATOMS[a].vars for m in kept for a, _ in m[0]), *(POLYS[m[1]].vars for m in kept if m[1])
        )
        whole = all(_whole(m, c) for m, c in kept.items())
        p = Poly(len(POLYS), kept, variables, whole)
        _poly_table[key] = POLYS[p.id] = p
    return _poly_table[key]


def _whole(m: Mono, c: Number) -> bool:
    integer = isinstance(c, Fraction) and c.denominator == 1
    return integer and not m[1] and all(ATOMS[a].sort == "int" and k > 0 and k.denominator == 1 for a, k in m[0])


ZERO = poly({})
ONE = poly({UNIT: Fraction(1)})
INF, NINF = object(), object()  # values that are no polynomials


_floats: list[float] = []  # constants met so far, in order: one that is near stands for both


def number(c: int | float | Fraction) -> Poly:
    """A constant: a float that is near a simple fraction is that."""
    return poly({UNIT: _snapped(c)})


def _snapped(c: Number) -> Number:
    if not isinstance(c, float):
        return Fraction(c)
    near = Fraction(c).limit_denominator(64)
    if near and abs(c - near) <= SINGLE * abs(near):
        return near
    at = bisect(_floats, c)
    for x in _floats[max(at - 1, 0) : at + 1]:
        if abs(c - x) <= SINGLE * abs(x):
            return x
    _floats.insert(at, c)
    return c


def of(a: Atom, k: int | Fraction = 1) -> Poly:
    """A power of an atom."""
    return poly({(((a.id, Fraction(k)),), 0): Fraction(1)})


def add(*ps: Poly) -> Poly:
    """The sum."""
    if len(ps) == 1:
        return ps[0]
    total: dict[Mono, Number] = {}
    for p in ps:
        for m, c in p.terms.items():
            total[m] = _plus(total[m], c) if m in total else c
    return poly(total)


def _plus(a: Number, b: Number) -> Number:
    c = a + b
    if isinstance(c, float):
        return Fraction(0) if abs(c) <= SINGLE * max(abs(a), abs(b)) else _snapped(c)
    return c


def scaled(p: Poly, c: int | Number) -> Poly:
    """c p."""
    return p if c == 1 else poly({m: _times(k, c) for m, k in p.terms.items()})


def _times(a: Number, b: Number) -> Number:
    c = a * b
    return _snapped(c) if isinstance(c, float) else c


def minus(p: Poly, q: Poly) -> Poly:
    """p - q."""
    return add(p, scaled(q, -1))


def mul(*ps: Poly) -> Poly:
    """The product; whole powers of sums are multiplied out."""
    out = ps[0]
    for p in ps[1:]:
        out = _product(out, p)
    return out


def _product(p: Poly, q: Poly) -> Poly:
    plain: dict[Mono, Number] = {}
    rest: list[Poly] = []
    for m, c in p.terms.items():
        for n, d in q.terms.items():
            key, sums = _merged(m, n)
            if sums:
                rest.append(mul(poly({key: _times(c, d)}), *sums))
            else:
                plain[key] = _plus(plain[key], _times(c, d)) if key in plain else _times(c, d)
    return add(poly(plain), *rest)


def _merged(m: Mono, n: Mono) -> tuple[Mono, list[Poly]]:
    """The product of two monomials, and sums to the whole powers that they get in it."""
    powers = dict(m[0])
    sums: list[Poly] = []
    for a, k in n[0]:
        powers[a] = powers.get(a, Fraction(0)) + k
    for a, k in list(powers.items()):
        if ATOMS[a].kind == "base" and k >= 1:
            sums += [ATOMS[a].data[0]] * math.floor(k)
            powers[a] = k - math.floor(k)
    exponent = m[1] if not n[1] else n[1] if not m[1] else add(POLYS[m[1]], POLYS[n[1]]).id
    return (tuple(sorted((a, k) for a, k in powers.items() if k)), exponent), sums


def exponential(p: Poly) -> Poly:
    """exp(p)."""
    return poly({((), p.id): Fraction(1)}) if p is not ZERO else ONE


def monomials(p: Poly) -> list[Poly]:
    """Its terms one by one."""
    return [poly({m: c}) for m, c in p.terms.items()]


def inverse(p: Poly) -> Poly:
    """1 / p, common factors apart. Raises NotChecked for 0."""
    if p is ZERO:
        raise NotChecked("a division by 0")
    outer, inner = _primitive(p)
    ((factors, e), c) = next(iter(outer.terms.items()))
    flipped = poly({(tuple((a, -k) for a, k in factors), scaled(POLYS[e], -1).id): 1 / c})
    return flipped if inner is ONE else mul(flipped, _power_of_sum(inner, Fraction(-1)))


def _power_of_sum(p: Poly, k: Fraction) -> Poly:
    return of(atom("base", "real", p, variables=p.vars), k)


def _primitive(p: Poly) -> tuple[Poly, Poly]:
    """(m, q) with p = m q for a monomial m: factors that all terms have in common."""
    items = list(p.terms.items())
    if len(items) == 1:
        return p, ONE
    powers = dict(items[0][0][0])
    for (factors, _), _c in items[1:]:
        other = dict(factors)
        powers = {a: min(k, other[a]) for a, k in powers.items() if a in other}
    same = {m[1] for m, _ in items}
    e = same.pop() if len(same) == 1 else 0
    c = min(items, key=lambda x: x[0])[1]
    m = poly({(tuple(sorted(powers.items())), e): c})
    flipped = poly({(tuple((a, -k) for a, k in sorted(powers.items())), scaled(POLYS[e], -1).id): 1 / c})
    return m, mul(p, flipped)


def root(p: Poly) -> Poly:
    """The square root of a polynomial that is not negative."""
    if p is ZERO:
        return ZERO
    if len(p.terms) == 1:
        ((factors, e), c) = next(iter(p.terms.items()))
        if c > 0 and all(k in (1, -1) for _, k in factors) and len(factors) <= 1:
            halves = tuple((a, k / 2) for a, k in factors)
            return poly({(halves, scaled(POLYS[e], Fraction(1, 2)).id): _root(c)})
    c = abs(min(p.terms.items(), key=lambda x: x[0])[1])
    return mul(number(_root(c)), _power_of_sum(scaled(p, 1 / c), Fraction(1, 2)))


def _root(c: Number) -> Number:
    exact = Fraction(math.isqrt(c.numerator), math.isqrt(c.denominator)) if isinstance(c, Fraction) else None
    return exact if exact is not None and exact * exact == c else _snapped(math.sqrt(c))


# ---- conditions ------------------------------------------------------------------------------------------------------

Formula = tuple[Any, ...]  # ("le", p) p <= 0, ("lt", p), ("eq", p), ("ne", p), ("and", ...), ("or", ...), ("true",)
TRUE, FALSE = ("true",), ("false",)


def le(p: Poly) -> Formula:
    """p <= 0; of integers with the greatest common divisor divided out."""
    c = p.constant
    if c is not None:
        return TRUE if c <= 0 else FALSE
    if p.whole:
        divisor = math.gcd(*(int(c) for m, c in p.terms.items() if m != UNIT))
        if divisor > 1:
            floor = -((-p.terms.get(UNIT, Fraction(0))) // divisor)
            rest = {m: c / divisor for m, c in p.terms.items() if m != UNIT}
            return ("le", poly({**rest, UNIT: Fraction(floor)}))
    return ("le", p)


def lt(p: Poly) -> Formula:
    """p < 0."""
    if p.whole:
        return le(add(p, ONE))
    c = p.constant
    return ("lt", p) if c is None else TRUE if c < 0 else FALSE


def eq(p: Poly) -> Formula:
    """p = 0."""
    c = p.constant
    if c is not None:
        return TRUE if c == 0 else FALSE
    leading = min(p.terms.items(), key=lambda x: x[0])[1]
    return ("eq", p if leading > 0 else scaled(p, -1))


def conj(*fs: Formula) -> Formula:
    """All of them."""
    parts = dict.fromkeys(x for f in fs for x in (f[1:] if f[0] == "and" else (f,)) if x != TRUE)
    if FALSE in parts or any(negated(x) in parts for x in parts):
        return FALSE
    return TRUE if not parts else next(iter(parts)) if len(parts) == 1 else ("and", *parts)


def disj(*fs: Formula) -> Formula:
    """One of them."""
    return negated(conj(*(negated(f) for f in fs)))


def negated(f: Formula) -> Formula:
    """The opposite."""
    match f[0]:
        case "true":
            return FALSE
        case "false":
            return TRUE
        case "le":
            return lt(scaled(f[1], -1))
        case "lt":
            return ("le", scaled(f[1], -1))
        case "eq":
            return ("ne", f[1])
        case "ne":
            return ("eq", f[1])
        case "and":
            return ("or", *(negated(x) for x in f[1:]))
    return ("and", *(negated(x) for x in f[1:]))


def literals(f: Formula) -> Iterator[Formula]:
    """The comparisons in a condition."""
    if f[0] in ("and", "or"):
        for x in f[1:]:
            yield from literals(x)
    elif f[0] not in ("true", "false"):
        yield f


def polys(f: Formula) -> Iterator[Poly]:
    """The polynomials in a condition."""
    return (x[1] for x in literals(f))


def variables(f: Formula) -> frozenset[int]:
    """The variables of a condition."""
    return frozenset[int]().union(*(p.vars for p in polys(f)))


def within(p: Poly, n: Poly) -> Formula:
    """0 <= p < n of integers."""
    return conj(le(scaled(p, -1)), lt(minus(p, n)))


# ---- substitution ----------------------------------------------------------------------------------------------------


def put(p: Poly, values: Mapping[int, Poly]) -> Poly:
    """p with polynomials for variables."""
    if not p.vars & values.keys():
        return p
    out = []
    for (factors, e), c in p.terms.items():
        parts = [exponential(put(POLYS[e], values))] if e else []
        for a, k in factors:
            parts.append(_power(_put_atom(ATOMS[a], values), k) if ATOMS[a].vars & values.keys() else of(ATOMS[a], k))
        out.append(scaled(mul(ONE, *parts), c))
    return add(ZERO, *out)


def _power(p: Poly, k: Fraction) -> Poly:
    """p to a whole or half power."""
    if k.denominator == 2:
        return _power(root(p), 2 * k)
    return mul(*[p if k > 0 else inverse(p)] * abs(int(k)))


def _put_atom(a: Atom, values: Mapping[int, Poly]) -> Poly:
    if a.kind == "var":
        return values.get(a.id, of(a))
    inner = lambda x: put(x, values) if isinstance(x, Poly) else x  # noqa: E731
    if a.kind == "base":
        return put(a.data[0], values)
    if a.kind in ("read", "app"):
        args = tuple(map(inner, a.data[1]))
        return of(atom(a.kind, a.sort, a.data[0], args, variables=_union(args)))
    name, families = a.data
    moved = []
    for bound, guards, body in families:
        kept = {v: q for v, q in values.items() if v not in bound}
        if any(q.vars & set(bound) for q in kept.values()):
            raise NotChecked("a variable is captured")
        moved.append((bound, put_formula(guards, kept), put(body, kept)))
    return of(fold_atom(a.kind, name, moved, a.sort))


def put_formula(f: Formula, values: Mapping[int, Poly]) -> Formula:
    """A condition with polynomials for variables."""
    match f[0]:
        case "and":
            return conj(*(put_formula(x, values) for x in f[1:]))
        case "or":
            return disj(*(put_formula(x, values) for x in f[1:]))
        case "true" | "false":
            return f
    p = put(f[1], values)
    return {"le": le, "lt": lt, "eq": eq}[f[0]](p) if f[0] != "ne" else negated(eq(p))


def _union(ps: Iterable[Poly]) -> frozenset[int]:
    return frozenset[int]().union(*(p.vars for p in ps))


Family = tuple[tuple[int, ...], Formula, Poly]  # bound variables, the condition on them, the body


def fold_atom(kind: str, name: str, families: Sequence[Family], sort: str) -> Atom:
    """A sum of one family, or the maximum of several."""
    free = frozenset[int]().union(*((b.vars | variables(g)) - set(vs) for vs, g, b in families))
    return atom(kind, sort, name, tuple(families), variables=free)


def variable() -> Atom:
    """A new integer variable."""
    return atom("var", "int", next(_serial))


def text(p: Poly) -> str:
    """A polynomial for messages."""
    parts = []
    for (factors, e), c in p.terms.items():
        powers = [name(ATOMS[a]) + (f"^{k}" if k != 1 else "") for a, k in factors] + (
            [f"exp({text(POLYS[e])})"] if e else []
        )
        parts.append("*".join([*([] if c == 1 and powers else [str(c)]), *powers]))
    return " + ".join(parts) or "0"


def name(a: Atom) -> str:
    """An atom for messages."""
    if a.kind == "sym":
        return str(a.data[0])
    if a.kind == "var":
        return f"v{a.id}"
    if a.kind in ("read", "app"):
        return f"{a.data[0]}[{', '.join(map(text, a.data[1]))}]"
    if a.kind == "base":
        return f"({text(a.data[0])})"
    families = [f"{'/'.join(f'v{v}' for v in vs)}: {said(g)}: {text(b)}" for vs, g, b in a.data[1]]
    return f"{a.data[0]}[{'; '.join(families)}]"


def said(f: Formula) -> str:
    """A condition for messages."""
    if f[0] in ("and", "or"):
        return f"({f' {f[0]} '.join(map(said, f[1:]))})"
    return f[0] if f[0] in ("true", "false") else f"{text(f[1])} {f[0]} 0"


# ---- solvers ---------------------------------------------------------------------------------------------------------


def solvers() -> tuple[str, Callable[[str], str]]:
    """The name of a solver that is installed, and what it answers to a text of SMT-LIB: unsat, sat, unknown."""
    try:
        import cvc5  # noqa: F401
    except ImportError:
        return "z3 (cvc5 is not installed)", _ask_z3
    return "cvc5", _ask_cvc5


def _ask_cvc5(text: str) -> str:
    """The answer; after "sat" the values of the numbers, as cvc5 prints them."""
    import cvc5  # type: ignore[import-not-found, import-untyped, unused-ignore]

    solver = cvc5.Solver()
    solver.setOption("rlimit", str(STEPS_OF_QUESTION))
    solver.setOption("produce-models", "true")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "question")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += str(command.invoke(solver, parser.getSymbolManager()))
        if said and not said.startswith("sat"):
            break
    return said.strip() if said.startswith(("sat", "unsat")) else "unknown"


def _ask_z3(text: str) -> str:
    import z3

    solver = z3.Solver()
    solver.set("rlimit", STEPS_OF_QUESTION * 10)
    solver.from_string(text)
    return str(solver.check())


class Question:
    """A text of SMT-LIB that asks whether conditions contradict each other. Atoms are numbers; of some more is known.
    `products`: products are products, else each is a number of its own, which is faster and proves less."""

    def __init__(self, products: bool, bounds: Mapping[str, tuple[Poly, Poly]]) -> None:
        self.products, self.bounds = products, bounds
        self.declared: dict[str, str] = {}
        self.axioms: list[str] = []
        self.formulas: list[Formula] = []  # the axioms
        self.seen: set[int] = set()
        self.nonlinear = False

    def text(self, conditions: Iterable[Formula]) -> str:
        """The whole text."""
        asserted = [self.formula(f) for f in conditions]
        lines = ["(set-logic ALL)", *(f"(declare-const {n} {s})" for n, s in self.declared.items())]
        values = f"(get-value ({' '.join(self.declared)}))" if self.declared else ""
        return "\n".join([*lines, *(f"(assert {a})" for a in (*self.axioms, *asserted)), "(check-sat)", values])

    def formula(self, f: Formula) -> str:
        """A condition."""
        match f[0]:
            case "true" | "false":
                return str(f[0])
            case "and" | "or":
                return f"({f[0]} {' '.join(map(self.formula, f[1:]))})"
            case "ne":
                return f"(not (= {self.poly(f[1])} {self.zero(f[1])}))"
        sign = {"le": "<=", "lt": "<", "eq": "="}[f[0]]
        return f"({sign} {self.poly(f[1])} {self.zero(f[1])})"

    def zero(self, p: Poly) -> str:
        """0 of its sort."""
        return "0" if p.whole else "0.0"

    def poly(self, p: Poly) -> str:
        """A polynomial."""
        parts = [self.monomial(m, c, p.whole) for m, c in sorted(p.terms.items(), key=lambda x: x[0])]
        return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})" if parts else self.zero(p)

    def monomial(self, m: Mono, c: Number, whole: bool) -> str:
        """c times powers of atoms."""
        factors = [self.factor(a, k) for a, k in m[0] for _ in range(self.times(k))]
        if m[1]:
            factors.append((self.declare(f"e{m[1]}", "Real"), "real"))
            self.axioms.append(f"(> e{m[1]} 0.0)")
        if len(factors) > 1:
            self.nonlinear = True
            if not self.products:
                integer = all(s == "int" for _, s in factors)
                name = self.declare("_".join(["m", *(n for n, _ in factors)]), "Int" if integer else "Real")
                factors = [(name, "int" if integer else "real")]
        texts = [n if whole or s == "real" else f"(to_real {n})" for n, s in factors]
        if c == 1 and texts:
            return texts[0] if len(texts) == 1 else f"(* {' '.join(texts)})"
        texts.insert(0, _constant(c, whole))
        return texts[0] if len(texts) == 1 else f"(* {' '.join(texts)})"

    def times(self, k: Fraction) -> int:
        """How often a factor is written: whole powers are products."""
        return int(k) if k.denominator == 1 and k > 0 else 1

    def factor(self, a: int, k: Fraction) -> tuple[str, str]:
        """An atom, or one of its other powers."""
        if k.denominator == 1 and k > 0:
            return self.atom(ATOMS[a]), ATOMS[a].sort
        return self.declare(f"p{a}_{k.numerator}_{k.denominator}".replace("-", "n"), "Real"), "real"

    def declare(self, name: str, sort: str) -> str:
        """The name, declared."""
        self.declared[name] = sort
        return name

    def atom(self, a: Atom) -> str:
        """The name of an atom; what is known of it becomes an axiom."""
        name = self.declare(f"a{a.id}", "Int" if a.sort == "int" else "Real")
        if a.id not in self.seen:
            self.seen.add(a.id)
            facts = known(a, self.bounds)
            self.formulas += facts
            self.axioms += [self.formula(f) for f in facts]
        return name


Model = dict[str, Fraction]
NUMBER = re.compile(r"\((\w+) (?:(\d+)(?:\.0)?|\(- (\d+)(?:\.0)?\))\)")


def model_of(said: str) -> Model:
    """The whole numbers in a text of cvc5."""
    return {n: Fraction(int(k)) if k else Fraction(-int(m)) for n, k, m in NUMBER.findall(said)}


def meets(f: Formula, model: Model) -> bool:
    """Whether numbers meet a condition; others are 0, and exponentials 1."""
    match f[0]:
        case "true" | "false":
            return f == TRUE
        case "and":
            return all(meets(x, model) for x in f[1:])
        case "or":
            return any(meets(x, model) for x in f[1:])
    v = _number_of(f[1], model)
    return {"le": v <= 0, "lt": v < 0, "eq": v == 0, "ne": v != 0}[f[0]]


def _number_of(p: Poly, model: Model) -> Number:
    total: Number = 0
    for (factors, e), c in p.terms.items():
        for a, k in factors:
            if k.denominator == 1 and k > 0:
                c = c * model.get(f"a{a}", 0) ** int(k)
            else:
                c = c * model.get(f"p{a}_{k.numerator}_{k.denominator}".replace("-", "n"), 0)
        total += c * model.get(f"e{e}", 1) if e else c
    return total


def _constant(c: Number, whole: bool) -> str:
    exact = Fraction(c)
    size = abs(exact)
    text = str(size.numerator) if whole else f"{size.numerator}.0"
    text = text if size.denominator == 1 else f"(/ {size.numerator}.0 {size.denominator}.0)"
    return f"(- {text})" if exact < 0 else text


def known(a: Atom, bounds: Mapping[str, tuple[Poly, Poly]]) -> list[Formula]:
    """What holds of an atom by its definition."""
    x = of(a)
    if a.kind == "read" and a.sort == "int" and a.data[0] in bounds:
        low, high = bounds[a.data[0]]
        return [le(minus(low, x)), lt(minus(x, high))]
    if a.kind == "arg":
        return [le(scaled(x, -1))]
    if a.kind == "max":
        single = [b for vs, _, b in a.data[1] if not vs]
        return _greatest(x, *single) if len(single) == len(a.data[1]) else [le(minus(b, x)) for b in single]
    if a.kind != "app" or a.sort != "int":
        return []
    row = DEFINITIONS.get(a.data[0])
    return row(x, *a.data[1]) if row else []


def _quotient_facts(q: Poly, p: Poly, d: Poly) -> list[Formula]:
    """q = p // d: d q <= p < d q + d of positive d."""
    inside = conj(le(minus(mul(d, q), p)), lt(minus(p, add(mul(d, q), d))))
    other = conj(le(minus(p, mul(d, q))), lt(minus(add(mul(d, q), d), p)))
    if d.constant is not None:
        return [inside if d.constant > 0 else other]
    sign = disj(lt(p), le(scaled(q, -1)))
    return [disj(le(d), conj(inside, sign)), disj(le(scaled(d, -1)), other)]


def _power_facts(x: Poly, n: Poly) -> list[Formula]:
    """x = next_power_of_2(n): n <= x < 2 n, divisible by 2, 4, ... if that large."""
    facts = [le(scaled(x, -1)), le(minus(n, x)), disj(negated(le(n)), eq(x))]
    facts.append(disj(le(n), conj(lt(minus(x, scaled(n, 2))), le(minus(ONE, x)))))
    for k in range(1, 7):
        half = of(atom("app", "int", "//power", (x, number(1 << k)), variables=x.vars))
        facts.append(disj(lt(minus(x, number(1 << k))), eq(minus(x, scaled(half, 1 << k)))))
    return facts


def _least(x: Poly, *ps: Poly) -> list[Formula]:
    return [*(le(minus(x, p)) for p in ps), disj(*(eq(minus(x, p)) for p in ps))]


def _greatest(x: Poly, *ps: Poly) -> list[Formula]:
    return [*(le(minus(p, x)) for p in ps), disj(*(eq(minus(x, p)) for p in ps))]


DEFINITIONS: dict[str, Callable[..., list[Formula]]] = {
    "floordiv": _quotient_facts, "next_power_of_2": _power_facts, "min": _least, "max": _greatest,
}  # fmt: skip


# ---- what follows from facts -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Context:
    """Facts that hold."""

    id: int
    facts: tuple[Formula, ...]
    tops: Mapping[Poly, Number]  # p -> the largest c with a fact p + c <= 0, of integers


class Reasoner:
    """Questions about conditions. `solver`: its name; `asked`: how many questions it got."""

    def __init__(self) -> None:
        self.solver, self.ask = solvers()
        self.bounds: dict[str, tuple[Poly, Poly]] = {}
        self.asked = 0
        self.contexts: dict[frozenset[Formula], Context] = {}
        self.answers: dict[tuple[int, Formula], bool] = {}
        self.texts: dict[str, bool] = {}
        self.models: list[Model] = []  # numbers that met conditions, the latest first
        self.none = self.context(())

    def context(self, facts: Iterable[Formula]) -> Context:
        """The context of these facts."""
        parts = tuple(dict.fromkeys(x for f in facts for x in (f[1:] if f[0] == "and" else (f,)) if x != TRUE))
        key = frozenset(parts)
        if key not in self.contexts:
            tops: dict[Poly, Number] = {}
            for f in parts:
                if f[0] == "le" and f[1].whole:
                    base, c = _apart(f[1])
                    tops[base] = max(c, tops.get(base, c))
            self.contexts[key] = Context(len(self.contexts), parts, tops)
        return self.contexts[key]

    def given(self, ctx: Context, *facts: Formula) -> Context:
        """The context with more facts."""
        return self.context((*ctx.facts, *facts))

    def implied(self, ctx: Context, f: Formula) -> bool:
        """Whether the facts imply the condition; False also where that is not shown."""
        if f == TRUE or f in ctx.facts:
            return True
        if f[0] == "and":
            return all(self.implied(ctx, x) for x in f[1:])
        key = (ctx.id, f)
        if key not in self.answers:
            told = self._told(ctx, f)
            self.answers[key] = self._refuted((*ctx.facts, negated(f))) if told is None else told
        return self.answers[key]

    def _told(self, ctx: Context, f: Formula) -> bool | None:
        """Whether one fact p + c <= 0 says p + d <= 0 (d <= c), or the opposite; None where none does. Not shown counts
        as False only where the facts do not contradict each other."""
        if f[0] != "le" or not f[1].whole:
            return None
        base, d = _apart(f[1])
        if (c := ctx.tops.get(base)) is not None and d <= c:
            return True
        return None

    def impossible(self, ctx: Context) -> bool:
        """Whether the facts contradict each other."""
        return self.implied(ctx, FALSE)

    def decided(self, ctx: Context, f: Formula) -> bool | None:
        """True, False, or None where the facts do not say."""
        if self.implied(ctx, f):
            return True
        return False if self.implied(ctx, negated(f)) else None

    def _refuted(self, conditions: Sequence[Formula]) -> bool:
        if FALSE in conditions:
            return True
        question = Question(False, self.bounds)
        text = question.text(conditions)
        every = (*reversed(conditions), *question.formulas)
        if any(all(meets(f, m) for f in every) for m in self.models):
            return False
        if self._unsat(text):
            return True
        return question.nonlinear and self._unsat(Question(True, self.bounds).text(conditions))

    def _unsat(self, text: str) -> bool:
        if text not in self.texts:
            self.asked += 1
            if self.asked > QUESTIONS:
                raise NotChecked("the budget of questions is spent")
            said = self.ask(text)
            self.texts[text] = said == "unsat"
            if said.startswith("sat"):
                self.models.insert(0, model_of(said))
                del self.models[MODELS:]
        return self.texts[text]

    def satisfiable(self, ctx: Context) -> bool:
        """Whether the solver finds numbers that meet the facts."""
        return self.ask(Question(True, self.bounds).text(ctx.facts)).startswith("sat")

    # ---- inequalities of products

    def least(self, p: Poly, ctx: Context, local: frozenset[int], depth: int = 8) -> bool:
        """Whether p >= 0: by the solver; else with a bound for one of the local symbols in which p is monotonous."""
        if self.implied(ctx, le(scaled(p, -1))):
            return True
        if depth == 0:
            return False
        for a in sorted(local & p.atoms()):
            slope, rest = _linear(p, a)
            if slope is None or slope is ZERO:
                continue
            if self.implied(ctx, le(scaled(slope, -1))):
                ends = self.ends(a, ctx, lower=True)
            elif self.implied(ctx, le(slope)):
                ends = self.ends(a, ctx, lower=False)
            else:
                continue
            if any(self.least(add(mul(slope, e), rest), ctx, local, depth - 1) for e in ends):
                return True
        return any(self.least(q, here, names, depth - 1) for q, here, names in self.by_digits(p, ctx, local))

    def by_digits(self, p: Poly, ctx: Context, local: frozenset[int]) -> Iterator[tuple[Poly, Context, frozenset[int]]]:
        """p with d q + r for a local symbol a whose quotient q = (a + b) // d occurs in it: 0 <= r < d."""
        for x in sorted(p.atoms()):
            if ATOMS[x].kind != "app" or ATOMS[x].data[0] != "floordiv":
                continue
            whole, d = ATOMS[x].data[1]
            for a in sorted(local & whole.atoms() & {y for m in p.terms for y, _ in m[0]}):
                slope, rest = _linear(whole, a)
                if slope is ONE and self.implied(ctx, lt(scaled(d, -1))):
                    r = variable()
                    here = self.given(ctx, within(of(r), d))
                    image = minus(add(mul(d, of(ATOMS[x])), of(r)), rest)
                    yield _instead(p, a, image), here, (local - {a}) | {r.id, x}
                    return

    def ends(self, a: int, ctx: Context, lower: bool) -> list[Poly]:
        """Bounds of an integer by the facts."""
        found: dict[Poly, None] = {}
        for f in ctx.facts:
            if f[0] not in ("le", "eq") or not f[1].whole:
                continue
            for p in (f[1],) if f[0] == "le" else (f[1], scaled(f[1], -1)):
                slope, rest = _linear(p, a)
                if slope is not None and slope.constant == (-1 if lower else 1):
                    found[rest if lower else scaled(rest, -1)] = None
        return sorted(found, key=lambda p: (len(p.terms), p.id))


def _apart(p: Poly) -> tuple[Poly, Number]:
    """(q, c) with p = q + c for a constant c."""
    c = p.terms.get(UNIT, Fraction(0))
    return (minus(p, number(c)) if c else p), c


def _linear(p: Poly, a: int) -> tuple[Poly | None, Poly]:
    """(s, r) with p = s a + r, a in neither; s is None where p is no such sum."""
    slope: dict[Mono, Number] = {}
    rest: dict[Mono, Number] = {}
    for (factors, e), c in p.terms.items():
        k = dict(factors).get(a, Fraction(0))
        inside = any(x != a and a in _atoms_of(ATOMS[x]) for x, _ in factors) or (e and a in POLYS[e].atoms())
        if k not in (0, 1) or inside:
            return None, p
        if k:
            slope[tuple(x for x in factors if x[0] != a), e] = c
        else:
            rest[factors, e] = c
    return poly(slope), poly(rest)


def _instead(p: Poly, a: int, image: Poly) -> Poly:
    """p with another polynomial for an atom, but within atoms."""
    out = []
    for (factors, e), c in p.terms.items():
        others = poly({(tuple(x for x in factors if x[0] != a), e): c})
        k = dict(factors).get(a, Fraction(0))
        out.append(mul(others, *[image] * int(k)) if k > 0 and k.denominator == 1 else poly({(factors, e): c}))
    return add(ZERO, *out)


def _atoms_of(a: Atom) -> set[int]:
    """The atoms in an atom."""
    if a.kind in ("read", "app"):
        inner = a.data[1]
    elif a.kind == "base":
        inner = (a.data[0],)
    else:
        inner = [p for _, g, b in a.data[1] for p in (b, *polys(g))] if a.kind in ("sum", "max", "arg") else ()
    return {y for p in inner for x in p.atoms() for y in (x, *_atoms_of(ATOMS[x]))}


# ---- numbers ---------------------------------------------------------------------------------------------------------

Need = tuple[str, Poly]  # "nonzero", "nonneg", "positive": what an operation needs to be defined
Env = Mapping[AxisKey, Poly]


class Algebra(Reasoner):
    """The values of terms as polynomials, and whether two are equal. `needs`: what operations met so far need."""

    def __init__(self) -> None:
        super().__init__()
        self.needs: dict[Need, None] = {}
        self.memo: dict[tuple[Any, ...], tuple[Any, tuple[Need, ...]]] = {}
        self.registry: dict[tuple[Any, ...], list[Atom]] = {}
        self.same: dict[tuple[int, int, int], bool] = {}
        self.world: Any = None  # what loads and loop variables are
        self.depth = 0
        self.fixed: dict[str, Poly] = {}  # sizes that can only be 1

    # ---- evaluation

    def value(self, t: Node, env: Env, ctx: Context) -> Any:
        """A number: a polynomial, INF or NINF. Raises Split, NotChecked."""
        world = 0 if self.world is None else self.world.number
        key = (t.id, world, ctx.id, *((k, env[k].id) for k in sorted(t.free) if k in env))
        if key not in self.memo:
            before, self.needs = self.needs, {}
            try:
                found = self._value(t, env, ctx)
                self.memo[key] = found, tuple(self.needs)
            finally:
                self.needs = {**before, **self.needs}
        found, needs = self.memo[key]
        self.needs.update(dict.fromkeys(needs))
        return found

    def finite(self, t: Node, env: Env, ctx: Context) -> Poly:
        """A number that is not infinite."""
        p = self.value(t, env, ctx)
        if not isinstance(p, Poly):
            raise NotChecked("an infinite number is calculated with")
        return p

    def _value(self, t: Node, env: Env, ctx: Context) -> Any:
        match t.op:
            case "const":
                return self._constant(t.attr)
            case "size" | "scalar":
                return (
                    env[t.attr, -1] if (t.attr, -1) in env else self.fixed.get(t.attr, of(atom("sym", t.sort, t.attr)))
                )
            case "axis":
                return env[t.axis] if t.axis in env else of(atom("sym", "int", *t.axis))
            case "where":
                return self.value(t.args[1 if self.known(t.args[0], env, ctx) else 2], env, ctx)
            case "undef":
                raise NotChecked(f"an undefined value is used: {t.attr}")
            case "read" | "element" | "carry":
                if self.world is None:
                    raise NotChecked(f"{t.op} outside a launch")
                return self.world.load(t, env, ctx)
            case "address":
                return self.world.address(t.attr, self.finite(t.args[0], env, ctx))
        if t.sort == "bool":
            return ONE if self.known(t, env, ctx) else ZERO
        if t.op in FOLDS:
            return self._fold(t, env, ctx)
        if t.op in ("max", "min") and t.sort == "real":
            return self._extreme(t, env, ctx)
        xs = [self.value(a, env, ctx) for a in t.args]
        if not all(isinstance(x, Poly) for x in xs):
            return self._infinite(t.op, xs)
        rule = RULES.get(t.op)
        return rule(self, ctx, *xs) if rule else self._opaque(t, xs, ctx)

    def _constant(self, c: Any) -> Any:
        if isinstance(c, float) and not math.isfinite(c):
            if math.isnan(c):
                raise NotChecked("NaN as a constant")
            return INF if c > 0 else NINF
        return number(int(c) if isinstance(c, bool) else c)

    def _infinite(self, op: str, xs: Sequence[Any]) -> Any:
        """-inf + x = -inf, exp(-inf) = 0, -(-inf) = inf; nothing else is known of infinite numbers."""
        kinds = {x for x in xs if not isinstance(x, Poly)}
        if len(kinds) == 1:
            (x,) = kinds
            if op == "add":
                return x
            if op in ("exp", "exp2") and x is NINF:
                return ZERO
            others = [y.constant for y in xs if isinstance(y, Poly)]
            if op == "mul" and len(others) == len(xs) - 1 and all(c is not None and c != 0 for c in others):
                return x if math.prod(others) > 0 else INF if x is NINF else NINF
        raise NotChecked("an infinite number is calculated with")

    def _opaque(self, t: Node, xs: Sequence[Poly], ctx: Context) -> Poly:
        """A function of which nothing is known but that equal arguments give equal values."""
        a = atom("app", t.sort, t.op if t.attr is None else f"{t.op}.{t.attr}", tuple(xs), variables=_union(xs))
        p = of(self.unified(a, ctx))
        if t.sort == "real" and t.op not in TOTAL:
            self.needs["defined", p] = None
        return p

    def need(self, kind: str, p: Poly) -> None:
        """Note what an operation needs."""
        c = p.constant
        if c is None or not {"nonzero": c != 0, "nonneg": c >= 0, "positive": c > 0}[kind]:
            self.needs[kind, p] = None

    # ---- conditions

    def known(self, t: Node, env: Env, ctx: Context) -> bool:
        """Whether a condition holds. Raises Split where the facts do not say."""
        f = self.condition(t, env, ctx)
        answer = self.decided(ctx, f)
        if answer is None:
            raise Split(next(x for x in literals(f) if self.decided(ctx, x) is None))
        return answer

    def condition(self, t: Node, env: Env, ctx: Context) -> Formula:
        """A boolean term."""
        match t.op:
            case "const":
                return TRUE if t.attr else FALSE
            case "and":
                return self._conjunction(t.args, env, ctx)
            case "or":
                return negated(self._conjunction(t.args, env, ctx, opposite=True))
            case "not":
                return negated(self.condition(t.args[0], env, ctx))
            case "where":
                return self.condition(t.args[1 if self.known(t.args[0], env, ctx) else 2], env, ctx)
            case "le" | "lt" | "eq" | "ne":
                return self._comparison(t, env, ctx)
            case "read" | "element":
                return negated(eq(self.value_of_flag(t, env, ctx)))
        p = self._opaque(t, [self.finite(a, env, ctx) for a in t.args], ctx)
        return negated(eq(p))

    def value_of_flag(self, t: Node, env: Env, ctx: Context) -> Poly:
        """The number in the memory of a boolean tensor."""
        if self.world is None:
            raise NotChecked(f"{t.op} outside a launch")
        p = self.world.load(t, env, ctx)
        if not isinstance(p, Poly):
            raise NotChecked("an infinite number is compared")
        return p

    def _conjunction(self, ts: Sequence[Node], env: Env, ctx: Context, opposite: bool = False) -> Formula:
        """Each condition is only looked at where those before it hold: a false one hides the others."""
        out: list[Formula] = []
        for t in ts:
            f = self.condition(t, env, ctx)
            f = negated(f) if opposite else f
            if f == FALSE:
                return FALSE
            out.append(f)
        return conj(*out)

    def _comparison(self, t: Node, env: Env, ctx: Context) -> Formula:
        if any(a.sort == "bool" for a in t.args):
            x, y = (self.condition(a, env, ctx) for a in t.args)
            same = disj(conj(x, y), conj(negated(x), negated(y)))
            return same if t.op == "eq" else negated(same)
        before, self.needs = self.needs, {}
        try:
            x, y = (self.value(a, env, ctx) for a in t.args)
            owed = dict(self.needs)
        finally:
            self.needs = before
        for kind, p in owed:
            if not self.met(kind, p, ctx):
                raise NotChecked(f"an operand of a comparison may be undefined ({kind})")
        if isinstance(x, Poly) and isinstance(y, Poly):
            p = minus(x, y)
            return negated(eq(p)) if t.op == "ne" else {"le": le, "lt": lt, "eq": eq}[t.op](p)
        if x is y:
            return TRUE if t.op in ("le", "eq") else FALSE
        less = x is NINF or y is INF
        return {"le": TRUE if less else FALSE, "lt": TRUE if less else FALSE, "eq": FALSE, "ne": TRUE}[t.op]

    # ---- quotients of integers

    def quotient(self, p: Poly, d: Poly, ctx: Context) -> Poly:
        """p // d: multiples of d apart, 0 <= r < d gives 0; one division for two."""
        if d is ONE:
            return p
        if d is ZERO:
            raise NotChecked("a division by 0")
        whole, rest = _divided(p, d)
        if rest is ZERO:
            return whole
        for k in (0, -1, 1):
            r = minus(rest, scaled(d, k)) if k else rest
            if self.implied(ctx, within(r, d)):
                return add(whole, number(k))
        inner = self._inner_quotient(rest, ctx)
        if inner is not None and self.implied(ctx, conj(lt(scaled(d, -1)), lt(scaled(inner[1], -1)))):
            rest, d = inner[0], mul(inner[1], d)
        p = of(self.unified(atom("app", "int", "floordiv", (rest, d), variables=_union((rest, d))), ctx))
        return add(whole, p)

    def _inner_quotient(self, p: Poly, ctx: Context) -> tuple[Poly, Poly] | None:
        """(x, b) of p = x // b."""
        if len(p.terms) != 1:
            return None
        ((factors, e), c) = next(iter(p.terms.items()))
        if c != 1 or e or len(factors) != 1 or factors[0][1] != 1:
            return None
        a = ATOMS[factors[0][0]]
        return (a.data[1][0], a.data[1][1]) if a.kind == "app" and a.data[0] == "floordiv" else None

    def toward_zero(self, p: Poly, d: Poly, ctx: Context) -> Poly:
        """p / d rounded to zero, of numbers whose signs are known."""
        for s in (1, -1):
            for r in (1, -1):
                x, y = scaled(p, s), scaled(d, r)
                if self.implied(ctx, le(scaled(x, -1))) and self.implied(ctx, lt(scaled(y, -1))):
                    return scaled(self.quotient(x, y, ctx), s * r)
        for q in (p, d):
            f = le(scaled(q, -1)) if q is p else lt(scaled(q, -1))
            if self.decided(ctx, f) is None:
                raise Split(f)
        raise NotChecked("a quotient by a number that may be 0")

    # ---- sums and maxima

    def _fold(self, t: Node, env: Env, ctx: Context) -> Any:
        v = variable()
        guards = TRUE
        if not (t.attr[1].op == "size" and t.attr[1].attr == "*"):
            n = self.finite(t.attr[1], env, ctx)
            guards = within(of(v), n)
        inner = {**env, t.axis: of(v)}
        families = list(self.by_cases(lambda here: self.value(t.args[0], inner, here), ctx, (v.id,), guards))
        self._discharge(v.id, families, ctx)
        match t.op:
            case "sum":
                return add(ZERO, *(self.sum((v.id,), g, self._number(b), ctx) for g, b in families))
            case "amax":
                return self.maximum([((v.id,), g, b) for g, b in families if b is not NINF], ctx)
            case "amin":
                flipped = [((v.id,), g, scaled(self._number(b), -1)) for g, b in families if b is not INF]
                return _opposite(self.maximum(flipped, ctx))
        never = {"argmax": NINF, "argmin": INF}.get(t.op)
        low = [((v.id,), g, self._number(b)) for g, b in families if never is None or b is not never]
        sort = "int" if t.op.startswith("arg") else t.sort
        kind = "arg" if t.op.startswith("arg") else "prod"
        return of(self.unified(fold_atom(kind, t.op, low, sort), ctx))

    def _discharge(self, v: int, families: Sequence[tuple[Formula, Any]], ctx: Context) -> None:
        """Needs of the body that are met wherever one of its conditions holds are no longer needs."""
        for kind, p in list(self.needs):
            if v in p.vars and all(self.met(kind, p, self.given(ctx, g)) for g, _ in families):
                del self.needs[kind, p]

    def _number(self, p: Any) -> Poly:
        if not isinstance(p, Poly):
            raise NotChecked("an infinite number in a sum")
        return p

    def by_cases(
        self, body: Callable[[Context], Any], ctx: Context, bound: Sequence[int], guards: Formula, depth: int = 0
    ) -> Iterator[tuple[Formula, Any]]:
        """A value under each answer to a question about bound variables."""
        here = self.given(ctx, guards)
        if guards == FALSE or self.impossible(here):
            return
        before = self.needs
        try:
            found = body(here)
        except Split as split:
            self.needs = before
            if not variables(split.literal) & set(bound):
                raise
            if depth >= CASES:
                raise NotChecked("too many cases in a sum") from None
            for f in (split.literal, negated(split.literal)):
                yield from self.by_cases(body, ctx, bound, conj(guards, f), depth + 1)
            return
        yield guards, found

    def sum(self, bound: tuple[int, ...], guards: Formula, p: Poly, ctx: Context) -> Poly:
        """The sum of p over the variables where the guards hold: linear in p, what is free of them outside."""
        out = []
        for (factors, e), c in p.terms.items():
            inner = [(a, k) for a, k in factors if ATOMS[a].vars & set(bound)]
            outer = [(a, k) for a, k in factors if not ATOMS[a].vars & set(bound)]
            exponents = monomials(POLYS[e])
            moving = add(ZERO, *(m for m in exponents if m.vars & set(bound)))
            fixed = minus(POLYS[e], moving)
            body = poly({(tuple(inner), moving.id): Fraction(1)})
            cofactor = poly({(tuple(outer), fixed.id): c})
            out.append(mul(cofactor, self._sum_of_one(bound, guards, body, ctx)))
        return add(ZERO, *out)

    def _sum_of_one(self, bound: tuple[int, ...], guards: Formula, body: Poly, ctx: Context) -> Poly:
        if body is ONE and len(bound) == 1 and (n := self._count(bound[0], guards, ctx)) is not None:
            return n
        ((factors, e), _) = next(iter(body.terms.items()))
        for a, k in factors:
            if ATOMS[a].kind == "sum" and k == 1:
                ((vs, g, b),) = ATOMS[a].data[1]
                names = {v: of(variable()) for v in vs}
                rest = poly({(tuple(x for x in factors if x[0] != a), e): Fraction(1)})
                fresh = tuple(next(iter(q.vars)) for q in names.values())
                product = mul(rest, put(b, names))
                return self.sum((*bound, *fresh), conj(guards, put_formula(g, names)), product, ctx)
        for v in bound:
            if (e := self._sole(v, guards)) is not None:
                rest = tuple(w for w in bound if w != v)
                inner, held = put(body, {v: e}), put_formula(guards, {v: e})
                answer = self.decided(ctx, held) if not rest else True
                if answer is None:
                    continue
                return self.sum(rest, held, inner, ctx) if rest else inner if answer else ZERO
        family = self.shifted((bound, guards, body), ctx)
        vs, g, b = family
        if b is ONE and len(vs) == 1 and (n := self._count(vs[0], g, ctx)) is not None:
            return n
        if self.impossible(self.given(ctx, g)):
            return ZERO
        return of(self.unified(fold_atom("sum", "sum", [family], "real"), ctx))

    def _sole(self, v: int, guards: Formula) -> Poly | None:
        """The only value of a variable."""
        here = self.context(guards[1:] if guards[0] == "and" else (guards,))
        low, high = self.ends(v, here, lower=True), self.ends(v, here, lower=False)
        return next((e for e in low if e in high and v not in e.vars), None)

    def _count(self, v: int, guards: Formula, ctx: Context) -> Poly | None:
        """The number of integers between two bounds that are in order."""
        here = self.context(guards[1:] if guards[0] == "and" else (guards,))
        if any(v not in variables(f) for f in here.facts):
            return None
        low, high = self.ends(v, here, lower=True), self.ends(v, here, lower=False)
        if len(here.facts) != 2 or len(low) != 1 or len(high) != 1:
            return None
        n = add(minus(high[0], low[0]), ONE)
        return n if self.implied(ctx, le(scaled(n, -1))) else None

    def shifted(self, family: Family, ctx: Context) -> Family:
        """The family with variables that start where what it reads does, and one for two that only occur together."""
        bound, guards, body = family
        for _ in range(len(bound)):
            found = self._joined(bound, guards, body, ctx)
            if found is None:
                break
            bound, guards, body = found
        for v in bound:
            c = _offset(v, body, set(bound))
            if c is not None and c is not ZERO:
                image = {v: minus(of(ATOMS[v]), c)}
                guards, body = put_formula(guards, image), put(body, image)
        return bound, guards, body

    def _joined(self, bound: tuple[int, ...], guards: Formula, body: Poly, ctx: Context) -> Family | None:
        """c t + l for 0 <= l < c, where the body only speaks of that, as one variable."""
        for v in bound:
            for w in bound:
                if v == w:
                    continue
                c = _ratio(body, guards, v, w)
                if c is None or not self.implied(self.given(ctx, guards), within(of(ATOMS[w]), c)):
                    continue
                j = variable()
                low = {w: minus(of(j), mul(c, of(ATOMS[v])))}
                image = put(body, low)
                if image.vars & {v, w}:
                    continue
                t = of(atom("app", "int", "floordiv", (of(j), c), variables=of(j).vars | c.vars))
                rest = put_formula(guards, {v: t, w: minus(of(j), mul(c, t))})
                return (*(x for x in bound if x not in (v, w)), j.id), self._simpler(rest, t, of(j), ctx), image
        return self._determined(bound, guards, body, ctx)

    def _determined(self, bound: tuple[int, ...], guards: Formula, body: Poly, ctx: Context) -> Family | None:
        """The family without a variable of which the body does not speak and that the others determine."""
        here = self.given(ctx, guards)
        for v in bound:
            for p in polys(guards) if v not in body.vars and len(bound) > 1 else ():
                slope, rest = _linear(p, v)
                c = None if slope is None else slope.constant
                if c is None or c <= 1:
                    continue
                t = self.quotient(scaled(rest, -1), number(c), here)
                others = [w for w in bound if w in t.vars and w != v]
                if v not in t.vars and len(others) == 1 and self.implied(here, eq(minus(of(ATOMS[v]), t))):
                    left = self._simpler(put_formula(guards, {v: t}), t, of(ATOMS[others[0]]), ctx)
                    return tuple(w for w in bound if w != v), left, body
        return None

    def _simpler(self, guards: Formula, t: Poly, j: Poly, ctx: Context) -> Formula:
        """The guards without the quotient t of the variable j, where 0 <= j and the others say as much."""
        parts = guards[1:] if guards[0] == "and" else (guards,)
        plain = [x for x in parts if not {a for p in polys(x) for a in p.atoms()} & t.atoms()]
        simple = conj(le(scaled(j, -1)), *plain)
        same = self.implied(self.given(ctx, guards), simple) and self.implied(self.given(ctx, simple), guards)
        return simple if same else guards

    def maximum(self, families: Sequence[tuple[tuple[int, ...], Formula, Any]], ctx: Context) -> Any:
        """The maximum of all elements, -inf of none. Raises Split or NotChecked where there may be none."""
        parts: list[Family] = []
        for vs, g, b in families:
            body = self._number(b)
            inner = _sole_maximum(body)
            if inner is None:
                e = self._sole(vs[0], g) if len(vs) == 1 else None
                if e is not None and self.implied(ctx, put_formula(g, {vs[0]: e})):
                    vs, g, body = (), TRUE, put(body, {vs[0]: e})
                parts.append(self.shifted((vs, g, body), ctx) if vs else (vs, g, body))
                continue
            for ws, h, c in inner.data[1]:
                names = {w: of(variable()) for w in ws}
                fresh = tuple(next(iter(q.vars)) for q in names.values())
                parts.append(self.shifted(((*vs, *fresh), conj(g, put_formula(h, names)), put(c, names)), ctx))
        parts = [f for f in parts if not self.impossible(self.given(ctx, f[1]))]
        if not parts:
            return NINF
        if not any(self.inhabited(f, ctx) for f in parts):
            self._ask_for_element(parts, ctx)
        kept = [f for k, f in enumerate(parts) if not any(self._below(f, g, ctx) for g in parts[:k] + parts[k + 1 :])]
        if len(kept) == 1 and not kept[0][0]:
            return kept[0][2]
        a = fold_atom("max", "max", sorted(kept or parts, key=lambda f: f[2].id), "real")
        return of(self.unified(a, ctx))

    def _ask_for_element(self, parts: Sequence[Family], ctx: Context) -> None:
        """Raises Split for the condition that an element at the bounds is there."""
        for vs, g, _ in parts:
            if len(vs) != 1:
                continue
            for e in self._all_ends(vs[0], [g]):
                for f in literals(put_formula(g, {vs[0]: e})):
                    if self.decided(ctx, f) is None:
                        raise Split(f)
        raise NotChecked("a maximum may be over no elements")

    def _below(self, f: Family, g: Family, ctx: Context) -> bool:
        """Whether the single element f is less than the single element g."""
        return not f[0] and not g[0] and self.implied(ctx, lt(minus(f[2], g[2])))

    def inhabited(self, family: Family, ctx: Context) -> bool:
        """Whether some values of the variables meet the guards: those at the bounds are tried."""
        bound, guards, _ = family
        return self._inhabited(bound, guards, ctx)

    def _inhabited(self, bound: Sequence[int], guards: Formula, ctx: Context) -> bool:
        if not bound:
            return self.implied(ctx, guards)
        v, *rest = bound
        here = self.context(guards[1:] if guards[0] == "and" else (guards,))
        ends = [*self.ends(v, here, lower=True), *self.ends(v, here, lower=False), ZERO]
        return any(
            self._inhabited(rest, put_formula(guards, {v: e}), ctx) for e in dict.fromkeys(ends) if v not in e.vars
        )

    def _extreme(self, t: Node, env: Env, ctx: Context) -> Any:
        """max(x, y, ...) or min(x, y, ...) of reals, which may be infinite."""
        xs = [self.value(a, env, ctx) for a in t.args]
        top, bottom = (INF, NINF) if t.op == "max" else (NINF, INF)
        if top in xs:
            return top
        xs = [x for x in xs if x is not bottom]
        if not xs:
            return bottom
        sign = 1 if t.op == "max" else -1
        found = self.maximum([((), TRUE, scaled(x, sign)) for x in xs], ctx)
        return found if sign == 1 else _opposite(found)

    # ---- atoms that are the same

    def unified(self, a: Atom, ctx: Context) -> Atom:
        """An atom that was met before and equals this one under the facts, else this one."""
        key = _shape(a)
        others = self.registry.setdefault(key, [])
        if a in others:
            return a
        for b in others[:PAIRS]:
            if self.alike(a, b, ctx):
                return b
        others.append(a)
        return a

    def alike(self, a: Atom, b: Atom, ctx: Context) -> bool:
        """Whether two atoms are equal under the facts."""
        key = (a.id, b.id, ctx.id)
        if key not in self.same:
            self.same[key] = False  # a question within its own answer
            self.depth += 1
            try:
                self.same[key] = self.depth <= DEPTH and self._alike(a, b, ctx)
            finally:
                self.depth -= 1
        return self.same[key]

    def _alike(self, a: Atom, b: Atom, ctx: Context) -> bool:
        if a.kind in ("app", "read"):
            pairs = zip(a.data[1], b.data[1], strict=True)
            return all(x is y or self.zero(minus(x, y), ctx) for x, y in pairs)
        if a.kind == "base":
            return self.zero(minus(a.data[0], b.data[0]), ctx)
        if a.kind == "sum":
            return self._same_sum(a.data[1][0], b.data[1][0], ctx)
        if a.kind == "max":
            return self._covered(a.data[1], b.data[1], ctx) and self._covered(b.data[1], a.data[1], ctx)
        if len(a.data[1]) != len(b.data[1]):
            return False
        return all(self._same_sum(f, g, ctx) for f, g in zip(a.data[1], b.data[1], strict=True))

    def _same_sum(self, f: Family, g: Family, ctx: Context) -> bool:
        for h in _renamings(f, g):
            if h[2] is f[2] or (self.depth <= 2 and _reads(h[2]) == _reads(f[2]) and self._same_body(f, h, ctx)):
                return self.implied(ctx, disj(negated(f[1]), h[1])) and self.implied(ctx, disj(negated(h[1]), f[1]))
        return False

    def _same_body(self, f: Family, h: Family, ctx: Context) -> bool:
        return self.zero(minus(f[2], h[2]), self.given(ctx, f[1], h[1]))

    def _covered(self, fs: Sequence[Family], gs: Sequence[Family], ctx: Context) -> bool:
        """Whether every element of fs is one of gs."""
        for f in fs:
            guards = [h[1] for g in gs for h in _renamings(f, g) if h[2] is f[2]]
            for g in gs:
                if f[0] and not g[0] and (values := _element(f, g[2])) is not None:
                    guards.append(conj(*(eq(minus(of(ATOMS[v]), e)) for v, e in values.items())))
                elif g[0] and not f[0] and (values := _element(g, f[2])) is not None:
                    guards.append(put_formula(g[1], values))
            if not guards or not self.implied(ctx, disj(negated(f[1]), *guards)):
                return False
        return True

    # ---- equality

    def zero(self, p: Poly, ctx: Context) -> bool:
        """Whether p = 0 wherever the facts hold and its operations are defined."""
        if p is ZERO:
            return True
        if p.constant is not None:
            return self.impossible(ctx)
        if all(_whole_atom(m) for m in p.terms):
            return self.implied(ctx, eq(p))
        p = self._cleared(p)
        if p is ZERO:
            return True
        p = self._without_sums(p, ctx)
        if p is ZERO:
            return True
        if (f := self._open_maximum(p, ctx)) is not None:
            raise Split(f)
        return self.implied(ctx, eq(p))

    def _cleared(self, p: Poly) -> Poly:
        """p times its denominators, which are not 0 where p is defined."""
        for _ in range(POWERS):
            least: dict[int, Fraction] = {}
            for factors, _e in p.terms:
                for a, k in factors:
                    if k < 0:
                        least[a] = min(least.get(a, Fraction(0)), k)
            if not least:
                return p
            a = max(least, key=lambda a: (_size(ATOMS[a]), a))
            p = mul(p, of(ATOMS[a], -least[a]))
        return p

    def _without_sums(self, p: Poly, ctx: Context) -> Poly:
        """p without groups of sums that cancel: c1 [g1(v)] + c2 [g2(v)] + ... = 0 for all v."""
        left = dict(p.terms)
        tried: set[Mono] = set()
        while True:
            start = next((m for m in left if m not in tried and any(ATOMS[a].kind == "sum" for a, _ in m[0])), None)
            if start is None:
                return poly(left)
            tried.add(start)
            for a, k in start[0]:
                if ATOMS[a].kind == "sum" and k == 1 and (gone := self._cancelling(start, a, left, ctx)):
                    left = {m: c for m, c in left.items() if m not in gone}
                    break

    def _cancelling(self, start: Mono, a: int, left: Mapping[Mono, Number], ctx: Context) -> set[Mono] | None:
        """Monomials with the same cofactor and sums over the same body, that cancel under the facts."""
        f = ATOMS[a].data[1][0]
        cofactor = (tuple(x for x in start[0] if x[0] != a), start[1])
        parts: list[tuple[Number, Formula]] = []
        gone: set[Mono] = set()
        for m, c in left.items():
            for b, k in m[0]:
                if ATOMS[b].kind != "sum" or k != 1 or (tuple(x for x in m[0] if x[0] != b), m[1]) != cofactor:
                    continue
                h = next((h for h in _renamings(f, ATOMS[b].data[1][0]) if h[2] is f[2]), None)
                if h is not None and m not in gone:
                    parts.append((c, h[1]))
                    gone.add(m)
            if m not in gone and (pinned := self._single(m, c, cofactor, f)) is not None:
                parts.append(pinned)
                gone.add(m)
        if self._cancel(parts, ctx):
            return gone
        if f[2] is ONE and len(f[0]) == 1 and cofactor in left:
            for e in self._all_ends(f[0][0], [g for _, g in parts]):
                pin = (left[cofactor], eq(minus(of(ATOMS[f[0][0]]), e)))
                if self._cancel([*parts, pin], ctx):
                    return gone | {cofactor}
        return None

    def _all_ends(self, v: int, guards: Sequence[Formula]) -> list[Poly]:
        """Bounds of a variable in conditions."""
        found = []
        for g in guards:
            here = self.context(g[1:] if g[0] == "and" else (g,))
            found += [*self.ends(v, here, lower=False), *self.ends(v, here, lower=True)]
        return list(dict.fromkeys(e for e in found if v not in e.vars))

    def _single(self, m: Mono, c: Number, cofactor: Mono, f: Family) -> tuple[Number, Formula] | None:
        """The monomial as one element of the sum: (c', v = e) where it is c' cofactor body(e)."""
        flipped = poly({(tuple((a, -k) for a, k in cofactor[0]), scaled(POLYS[cofactor[1]], -1).id): Fraction(1)})
        rest = mul(poly({m: Fraction(1)}), flipped)
        values = _element(f, rest)
        if values is None:
            return None
        return c, conj(*(eq(minus(of(ATOMS[v]), e)) for v, e in values.items()))

    def _cancel(self, parts: Sequence[tuple[Number, Formula]], ctx: Context) -> bool:
        """Whether the numbers whose conditions hold always add up to 0."""
        if len(parts) < 2 or len(parts) > 6:
            return False
        for chosen in range(1 << len(parts)):
            total = sum((c for k, (c, _) in enumerate(parts) if chosen >> k & 1), Fraction(0))
            if abs(total) <= SINGLE:
                continue
            case = [g if chosen >> k & 1 else negated(g) for k, (_, g) in enumerate(parts)]
            if not self.impossible(self.given(ctx, conj(*case))):
                return False
        return True

    def _open_maximum(self, p: Poly, ctx: Context) -> Formula | None:
        """A comparison of two single elements of a maximum that is not decided."""
        for a in sorted(p.atoms()):
            if ATOMS[a].kind != "max":
                continue
            single = [b for vs, _, b in ATOMS[a].data[1] if not vs]
            for x, y in zip(single, single[1:], strict=False):
                f = lt(minus(x, y))
                if self.decided(ctx, f) is None:
                    return f
        return None

    # ---- signs

    def met(self, kind: str, p: Poly, ctx: Context) -> bool:
        """Whether p is "nonzero", "nonneg" or "positive" under the facts."""
        if kind == "defined":
            return False
        if kind == "nonneg":
            return self.sign(p, ctx) is not None
        if self.sign(p, ctx) == "positive":
            return True
        if kind == "nonzero":
            return self.sign(scaled(p, -1), ctx) == "positive" or self.implied(ctx, negated(eq(p)))
        return False

    def sign(self, p: Poly, ctx: Context) -> str | None:
        """ "positive", "nonneg", or None where neither is shown: by the signs of its terms, else by the facts."""
        signs = [self._sign_of_term(m, c, ctx) for m, c in p.terms.items()]
        if None not in signs:
            return "positive" if "positive" in signs else "nonneg"
        if self.implied(ctx, lt(scaled(p, -1))):
            return "positive"
        return "nonneg" if self.implied(ctx, le(scaled(p, -1))) else None

    def _sign_of_term(self, m: Mono, c: Number, ctx: Context) -> str | None:
        if c < 0:
            return None
        signs = [self._sign_of_power(ATOMS[a], k, ctx) for a, k in m[0]]
        return None if None in signs else "nonneg" if "nonneg" in signs else "positive"

    def _sign_of_power(self, a: Atom, k: Fraction, ctx: Context) -> str | None:
        inner = self._sign_of_atom(a, ctx)
        if k.denominator == 1 and k % 2 == 0:
            return "positive" if inner == "positive" or k < 0 else "nonneg"
        if k.denominator == 2:
            return "positive" if inner == "positive" or k < 0 else "nonneg"
        return "positive" if inner and k < 0 else inner

    def _sign_of_atom(self, a: Atom, ctx: Context) -> str | None:
        if a.kind == "base":
            return self.sign(a.data[0], ctx)
        if a.kind == "sum":
            vs, g, b = a.data[1][0]
            inner = self.sign(b, self.given(ctx, g))
            return "positive" if inner == "positive" and self._inhabited(vs, g, ctx) else inner and "nonneg"
        p = of(a)
        if self.implied(ctx, lt(scaled(p, -1))):
            return "positive"
        return "nonneg" if self.implied(ctx, le(scaled(p, -1))) else None


def _opposite(p: Any) -> Any:
    return INF if p is NINF else scaled(p, -1)


def _whole_atom(m: Mono) -> bool:
    return not m[1] and all(ATOMS[a].sort == "int" and k > 0 for a, k in m[0])


def _size(a: Atom) -> int:
    return 1 + len(_atoms_of(a))


def _shape(a: Atom) -> tuple[Any, ...]:
    """What atoms must have in common to be equal."""
    if a.kind in ("app", "read"):
        return (a.kind, a.sort, a.data[0], len(a.data[1]))
    if a.kind == "base":
        return (a.kind,)
    return (a.kind, a.data[0])


def _reads(p: Poly) -> frozenset[str]:
    """The tensors that a polynomial reads."""
    every = {y for x in p.atoms() for y in (x, *_atoms_of(ATOMS[x]))}
    return frozenset(ATOMS[x].data[0] for x in every if ATOMS[x].kind == "read")


def _renamings(f: Family, g: Family) -> Iterator[Family]:
    """g with the variables of f, in every order."""
    if len(f[0]) != len(g[0]):
        return
    for order in permutations(f[0]):
        names = {w: of(ATOMS[v]) for w, v in zip(g[0], order, strict=True)}
        yield f[0], put_formula(g[1], names), put(g[2], names)


def _sole_maximum(p: Poly) -> Atom | None:
    """The maximum that a polynomial is."""
    if len(p.terms) != 1:
        return None
    ((factors, e), c) = next(iter(p.terms.items()))
    found = ATOMS[factors[0][0]] if c == 1 and not e and len(factors) == 1 and factors[0][1] == 1 else None
    return found if found is not None and found.kind == "max" else None


def _indices(p: Poly) -> list[tuple[str, int, Poly]]:
    """The indices at which a polynomial reads tensors."""
    every = {y for x in p.atoms() for y in (x, *_atoms_of(ATOMS[x]))}
    found = [(ATOMS[x].data[0], k, q) for x in every if ATOMS[x].kind == "read" for k, q in enumerate(ATOMS[x].data[1])]
    return sorted(found, key=lambda x: (x[0], x[1], len(x[2].terms), sorted(x[2].terms.items(), key=str)))


def _offset(v: int, body: Poly, bound: set[int]) -> Poly | None:
    """c where the body reads at s (v + c) + r and no term of r is a multiple of s: the first such read decides."""
    for _, _, q in _indices(body):
        slope, rest = _linear(q, v)
        if slope is None or slope is ZERO or slope.vars or len(slope.terms) != 1:
            continue
        c, _ = _divided(poly({m: k for m, k in rest.terms.items() if not _of_monomial(m) & bound}), slope)
        return c
    return None


def _of_monomial(m: Mono) -> frozenset[int]:
    return poly({m: Fraction(1)}).vars


def _ratio(body: Poly, guards: Formula, v: int, w: int) -> Poly | None:
    """c where the body reads at s (c v + w) + r; where it reads nothing, where the guards speak of that."""
    for q in [q for _, _, q in _indices(body)] or list(polys(guards)):
        (s, _), (t, _) = _linear(q, v), _linear(q, w)
        if s is None or t is None or s is ZERO or t is ZERO or len(t.terms) != 1 or s.vars or t.vars:
            continue
        c, rest = _divided(s, t)
        return c if rest is ZERO and c is not ONE else None
    return None


def _matched(f: Family, p: Poly) -> dict[int, Poly] | None:
    """Values of the variables for which the body reads what p reads."""
    values: dict[int, Poly] = {}
    for name, k, q in _indices(f[2]):
        for other, j, r in _indices(p):
            for v in f[0]:
                slope, rest = _linear(q, v)
                if (name, k) != (other, j) or v in values or slope is None or slope is ZERO or rest.vars & set(f[0]):
                    continue
                e, left = _divided(minus(r, rest), slope)
                if left is ZERO:
                    values[v] = e
    return values if len(values) == len(f[0]) else None


def _element(f: Family, p: Poly) -> dict[int, Poly] | None:
    """Values of the variables for which the body is p."""
    values = _matched(f, p)
    return values if values is not None and put(f[2], values) is p else None


def _divided(p: Poly, d: Poly) -> tuple[Poly, Poly]:
    """(q, r) with p = q d + r, for a d of one term; r has no term that is a multiple of it."""
    if len(d.terms) != 1:
        return (ONE, ZERO) if p is d else (ZERO, p)
    ((factors, e), c) = next(iter(d.terms.items()))
    quotient: dict[Mono, Number] = {}
    rest: dict[Mono, Number] = {}
    for m, k in p.terms.items():
        powers = dict(m[0])
        fits = m[1] == e and all(powers.get(a, 0) >= n for a, n in factors)
        whole, remainder = divmod(k, c) if isinstance(k, Fraction) and isinstance(c, Fraction) else (0, k)
        left = {**powers, **{a: powers.get(a, Fraction(0)) - n for a, n in factors}}
        if fits and whole and (m == UNIT or not remainder):
            quotient[tuple(sorted((a, n) for a, n in left.items() if n)), 0] = Fraction(whole)
            if remainder:
                rest[m] = remainder
        else:
            rest[m] = k
    return poly(quotient), poly(rest)


# ---- what operations mean --------------------------------------------------------------------------------------------


def _recip(a: Algebra, ctx: Context, p: Poly) -> Poly:
    a.need("nonzero", p)
    return inverse(p)


def _sqrt(a: Algebra, ctx: Context, p: Poly) -> Poly:
    a.need("nonneg", p)
    return root(p)


def _log(a: Algebra, ctx: Context, p: Poly) -> Poly:
    """log(exp(e) q) = e + log(q)."""
    a.need("positive", p)
    if p is ZERO:
        raise NotChecked("the logarithm of 0")
    outer, inner = _primitive(p)
    ((_, e), _) = next(iter(outer.terms.items()))
    rest = mul(p, exponential(scaled(POLYS[e], -1)))
    c = rest.constant
    if c is not None and c > 0:
        return add(POLYS[e], number(math.log(c)) if c != 1 else ZERO)
    return add(POLYS[e], of(a.unified(atom("app", "real", "log", (rest,), variables=rest.vars), ctx)))


def _exp(a: Algebra, ctx: Context, p: Poly) -> Poly:
    """exp(log(q) + r) = q exp(r), which is owed 0 < q by the logarithm."""
    for m, c in p.terms.items():
        if c == 1 and len(m[0]) == 1 and not m[1] and m[0][0][1] == 1:
            x = ATOMS[m[0][0][0]]
            if x.kind == "app" and x.data[0] == "log":
                return mul(x.data[1][0], _exp(a, ctx, minus(p, of(x))))
    c = p.terms.get(UNIT)
    if c is not None:
        return mul(number(math.exp(c)), exponential(minus(p, number(c)))) if abs(c) < 80 else exponential(p)
    return exponential(p)


def _tanh(a: Algebra, ctx: Context, p: Poly) -> Poly:
    """tanh(x) = 1 - 2 / (exp(2 x) + 1)."""
    return minus(ONE, scaled(inverse(add(_exp(a, ctx, scaled(p, 2)), ONE)), 2))


def _pow(a: Algebra, ctx: Context, p: Poly, n: Poly) -> Poly:
    k = n.constant
    if k is None or not isinstance(k, Fraction) or k.denominator > 2 or abs(k) > 8:
        return of(a.unified(atom("app", "real", "pow", (p, n), variables=p.vars | n.vars), ctx))
    if k.denominator == 2:
        a.need("nonneg" if k > 0 else "positive", p)
    elif k < 0:
        a.need("nonzero", p)
    return ONE if k == 0 else _power(p, k)


def _abs(a: Algebra, ctx: Context, p: Poly) -> Poly:
    for x in (p, scaled(p, -1)):
        if a.implied(ctx, le(scaled(x, -1))):
            return x
    if p.whole:
        raise Split(le(scaled(p, -1)))
    return a.maximum([((), TRUE, p), ((), TRUE, scaled(p, -1))], ctx)


def _whole_extreme(name: str) -> Callable[..., Poly]:
    """max or min of integers."""

    def rule(a: Algebra, ctx: Context, *ps: Poly) -> Poly:
        sign = 1 if name == "max" else -1
        kept = list(dict.fromkeys(ps))
        for p in list(kept):
            others = [q for q in kept if q is not p]
            if others and any(a.implied(ctx, le(scaled(minus(p, q), sign))) for q in others):
                kept.remove(p)
        if len(kept) == 1:
            return kept[0]
        return of(a.unified(atom("app", "int", name, tuple(kept), variables=_union(kept)), ctx))

    return rule


def _next_power(a: Algebra, ctx: Context, p: Poly) -> Poly:
    return of(a.unified(atom("app", "int", "next_power_of_2", (p,), variables=p.vars), ctx))


def _to_whole(bits: int) -> Callable[..., Poly]:
    """The number modulo 2^bits, where it fits the number itself."""

    def rule(a: Algebra, ctx: Context, p: Poly) -> Poly:
        if a.implied(ctx, fits(p, bits)):
            return p
        return of(a.unified(atom("app", "int", f"wrap{bits}", (p,), variables=p.vars), ctx))

    return rule


def fits(p: Poly, bits: int) -> Formula:
    """A number of two's complement."""
    half = number(1 << bits - 1)
    return conj(le(scaled(add(p, half), -1)), lt(minus(p, half)))


LN2 = math.log(2)
TOTAL = {
    "sin",
    "cos",
    "erf",
    "floor",
    "ceil",
    "trunc",
    "round",
    "sign",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "asinh",
    "cbrt",
    "copysign",
    "random",
}  # functions that are defined of all real numbers
RULES: dict[str, Callable[..., Poly]] = {
    "add": lambda a, ctx, *ps: add(*ps),
    "mul": lambda a, ctx, *ps: mul(*ps),
    "recip": _recip,
    "sqrt": _sqrt,
    "exp": _exp,
    "exp2": lambda a, ctx, p: _exp(a, ctx, scaled(p, LN2)),
    "log": _log,
    "log2": lambda a, ctx, p: scaled(_log(a, ctx, p), 1 / LN2),
    "log10": lambda a, ctx, p: scaled(_log(a, ctx, p), 1 / math.log(10)),
    "tanh": _tanh,
    "pow": _pow,
    "abs": _abs,
    "max": _whole_extreme("max"),
    "min": _whole_extreme("min"),
    "floordiv": lambda a, ctx, p, d: a.quotient(p, d, ctx),
    "mod": lambda a, ctx, p, d: minus(p, mul(d, a.quotient(p, d, ctx))),
    "truncdiv": lambda a, ctx, p, d: a.toward_zero(p, d, ctx),
    "truncmod": lambda a, ctx, p, d: minus(p, mul(d, a.toward_zero(p, d, ctx))),
    "next_power_of_2": _next_power,
    "wrap8": _to_whole(8), "wrap16": _to_whole(16), "wrap32": _to_whole(32),
}  # fmt: skip


# ---- what a certificate is about -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """A tensor in a buffer: element (i, j, ...) is at offset + i strides[0] + j strides[1] + ..."""

    buffer: str
    offset: Poly
    shape: tuple[Poly, ...]
    strides: tuple[Poly, ...]

    def element(self, index: Sequence[Poly]) -> Poly:
        """Where an index is."""
        return add(self.offset, *(mul(i, s) for i, s in zip(index, self.strides, strict=True)))


Content = Callable[[Poly, Context], Any]  # element number -> the number there


@dataclass(frozen=True, slots=True)
class Failure:
    """An obligation that is not shown, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"not checked: {self.what}" + (f": {self.why}" if self.why else "")


@dataclass
class Report:
    """What came of a certificate. `shown`: how many obligations of each kind; `assumed`: what the claim rests on beside
    the contract's conditions."""

    claim: list[str]
    solver: str
    shown: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    questions: int = 0

    @property
    def checked(self) -> bool:
        """Whether everything was shown."""
        return not self.failures and sum(self.shown.values()) > 0


class World:
    """One launch: what loads and loop variables are. `contents`: of buffers before it; `written`: by it."""

    def __init__(self, configuration: Configured, launch: Mapping[str, Any]) -> None:
        self.c, self.launch, self.a = configuration, launch, configuration.a
        self.number = next(_serial)
        table = configuration.nodes
        self.pointers = {n: configuration.view(v) for n, v in launch["pointers"].items()}
        self.contents = dict(configuration.contents)
        self.carries: dict[str, dict[str, Any]] = {}
        for k, loop in enumerate(launch["loops"]):
            for i, carry in enumerate(loop["carries"]):
                self.carries[f"{k}.{i}"] = {**carry, "loop": loop, "name": carry["name"]}
        self.grid = [table[n] for n in launch["grid"]]
        self.written = configuration.written(launch)

    # ---- loads and loop variables

    def load(self, t: Node, env: Env, ctx: Context) -> Any:
        """An element of the reference's input, of memory before the launch, or a loop variable."""
        if t.op == "element":
            view = self.c.inputs[t.attr]
            return self.c.initial(view.buffer, view.element([self.a.finite(i, env, ctx) for i in t.args]), ctx)
        if t.op == "carry":
            return self.carried(t, env, ctx, self.a.value)
        o = self.a.finite(t.args[0], env, ctx)
        base, at, _ = t.attr.partition("@")
        if not at:
            return self.c.initial(base, o, ctx)
        view = self.pointers.get(base)
        if view is None:
            raise NotChecked(f"a load through {base}, which is no tensor")
        if view.buffer in self.written:
            self.c.interferes(self, view.buffer)
        return self.contents[view.buffer](add(view.offset, o), ctx)

    def carried(self, t: Node, env: Env, ctx: Context, value: Callable[[Node, Env, Context], Any]) -> Any:
        """A loop variable at the start of an iteration: its closed form, before the first one its start."""
        carry = self.carries[t.attr]
        table = self.c.nodes
        n, *others = (self.a.finite(x, env, ctx) for x in t.args)
        keys = [*(table[x].axis for x in carry["loop"]["outer"]), *(table[x].axis for x in carry["lanes"])]
        if len(keys) != len(others):
            raise Wrong(f"loop variable {carry['name']} with another number of indices")
        inner = dict(zip(keys, others, strict=True)) | {k: v for k, v in env.items() if k[1] == -1}
        init = table[carry["init"]]
        if n is ZERO:
            return value(init, inner, ctx)
        if carry["form"] is None:
            raise NotChecked(f"no closed form of loop variable {carry['name']}")
        form, counter = table[carry["form"]], table[carry["loop"]["counter"]].axis
        answer = self.a.decided(ctx, le(minus(ONE, n)))
        if answer is None:
            if value(form, {**inner, counter: ZERO}, ctx) is not value(init, inner, ctx):
                raise Split(le(minus(ONE, n)))
            answer = True
        return value(form, {**inner, counter: n}, ctx) if answer else value(init, inner, ctx)

    def pointer(self, t: Node, env: Env, ctx: Context) -> tuple[str, Poly]:
        """Parameter and offset of a pointer."""
        if t.op == "pointer":
            return t.attr, self.a.finite(t.args[0], env, ctx)
        if t.op == "where":
            return self.pointer(t.args[1 if self.a.known(t.args[0], env, ctx) else 2], env, ctx)
        if t.op == "carry":
            found: tuple[str, Poly] = self.carried(t, env, ctx, self.pointer)
            return found
        raise NotChecked(f"a pointer made by {t.op}")

    def address(self, name: str, o: Poly) -> Poly:
        """An address in bytes: tensors start at multiples of 16."""
        told = "the memory of every tensor starts at a multiple of 16 bytes"
        if told not in self.c.report.assumed:
            self.c.report.assumed.append(told)
        digits = "".join(x for x in self.launch["pointers"][name]["dtype"] if x.isdigit())[:2]
        start = of(atom("sym", "int", f"start of {self.pointers[name].buffer}"))
        return add(scaled(start, 16), scaled(add(self.pointers[name].offset, o), max(int(digits or 8) // 8, 1)))

    def place(self, access: Mapping[str, Any], env: Env, ctx: Context) -> tuple[View, Poly]:
        """The tensor and the element of its buffer that an access is to."""
        name, o = self.pointer(self.c.nodes[access["pointer"]], env, ctx)
        view = self.pointers.get(name)
        if view is None:
            raise NotChecked(f"an access through {name}, which is no tensor")
        return view, add(view.offset, o)

    # ---- when something is executed

    def running(self, site: Mapping[str, Any], env: Env, ctx: Context, masked: bool = True) -> Context:
        """The facts when an access or an operation is executed: ranges of programs, iterations and lanes, the mask."""
        table, a = self.c.nodes, self.a
        for k, n in enumerate(self.grid):
            ctx = a.given(ctx, within(_program(k, env), a.finite(n, {}, ctx)))
        for k in site["loops"]:
            loop = self.launch["loops"][k]
            counter = table[loop["counter"]]
            ctx = a.given(ctx, self.holds(table[loop["guard"]], env, ctx))
            ctx = a.given(ctx, within(a.finite(counter, env, ctx), a.finite(table[loop["trips"]], env, ctx)))
        for n in site["lanes"]:
            lane = table[n]
            ctx = a.given(ctx, within(a.finite(lane, env, ctx), a.finite(lane.attr[1], env, ctx)))
        return a.given(ctx, self.holds(table[site["guard"]], env, ctx)) if masked else ctx

    def holds(self, t: Node, env: Env, ctx: Context) -> Formula:
        """A guard as a fact."""
        return self.a.condition(t, env, ctx)

    def locals(self, site: Mapping[str, Any]) -> frozenset[int]:
        """The symbols of programs, iterations and lanes."""
        table = self.c.nodes
        found = [table[self.launch["loops"][k]["counter"]] for k in site["loops"]] + [table[n] for n in site["lanes"]]
        names = [of(atom("sym", "int", *t.axis)) for t in found] + [_program(k, {}) for k in range(3)]
        return frozenset(x for p in names for x in p.atoms())


def _program(k: int, env: Env) -> Poly:
    return env.get((f"pid{k}", -1), of(atom("sym", "int", f"pid{k}")))


def _pointers(t: Node, event: Mapping[str, Any], table: Sequence[Node]) -> Iterator[str]:
    """The parameters that a pointer may come from."""
    if t.op == "pointer":
        yield t.attr
    elif t.op == "where":
        for x in t.args[1:]:
            yield from _pointers(x, event, table)
    elif t.op == "carry":
        loop, k = map(int, t.attr.split("."))
        yield from _pointers(table[event["loops"][loop]["carries"][k]["init"]], event, table)
    else:
        raise NotChecked(f"a pointer made by {t.op}")


class Configured:
    """One configuration of a certificate: its launches one after the other, and its outputs at the end."""

    def __init__(self, certificate: Mapping[str, Any], data: Mapping[str, Any], report: Report) -> None:
        self.certificate, self.data, self.report = certificate, data, report
        self.nodes: list[Node] = certificate["nodes"]
        self.a = Algebra()
        self.contents: dict[str, Content] = {}
        self.proved: dict[str, str] = {}  # output -> by which launch
        self.apart: dict[tuple[int, str], str | None] = {}
        self.label = f"{data['label']}: " if data["label"] else ""

    # ---- reading

    def number(self, n: int, env: Env | None = None) -> Poly:
        """A term without conditions."""
        return self.a.finite(self.nodes[n], env or {}, self.ctx)

    def view(self, v: Mapping[str, Any]) -> View:
        """A tensor."""
        shape, strides = (tuple(self.number(n) for n in v[k]) for k in ("shape", "strides"))
        return View(v["buffer"], self.number(v["offset"]), shape, strides)

    def initial(self, buffer: str, o: Poly, ctx: Context) -> Any:
        """Element o of a buffer before the first launch."""
        data = self.buffers[buffer]
        if data["input"]:
            sort = "real" if data["dtype"][0] in "fb" and data["dtype"] != "bool" else "int"
            return of(self.a.unified(atom("read", sort, buffer, (o,), variables=o.vars), ctx))
        start = self.nodes[data["initial"]]
        return self.a.value(start, {self.nodes[data["axis"]].axis: o}, ctx)

    # ---- obligations

    def attempt(self, kind: str, what: str, goal: Callable[[Context], bool], ctx: Context) -> bool:
        """Whether a goal is shown, in all cases. What is not becomes a failure of the report."""
        try:
            held, why = self.cases(goal, ctx, 0), ""
        except NotChecked as stop:
            held, why = False, str(stop)
        except Split as split:
            held, why = False, f"too many cases: {split}"
        except RecursionError:
            held, why = False, "the terms are nested too deeply"
        if held:
            self.report.shown[kind] = self.report.shown.get(kind, 0) + 1
        else:
            self.report.failures.append(Failure(f"{self.label}{what}", why))
        return held

    def cases(self, goal: Callable[[Context], bool], ctx: Context, depth: int) -> bool:
        """The goal where its conditions are decided."""
        try:
            return goal(ctx)
        except Split as split:
            if depth >= CASES:
                raise
            literal = split.literal
        for f in (literal, negated(literal)):
            here = self.a.given(ctx, f)
            if not self.a.impossible(here) and not self.cases(goal, here, depth + 1):
                return False
        return True

    def run(self) -> None:
        """Everything."""
        self.ctx = self.a.none
        self.buffers = {b["name"]: b for b in self.data["buffers"]}
        for name, (low, high) in self.data["bounds"].items():
            self.a.bounds[name] = (self.number(low), self.number(high))
            self.report.assumed.append(f"{shown(self.nodes[low])} <= {name} < {shown(self.nodes[high])}")
        facts = [self.a.condition(self.nodes[n], {}, self.a.none) for n in self.data["facts"]]
        self.contracts()
        self.ctx = self.a.context((*facts, *self.clauses))
        if self.data["vacuous"]:
            self.attempt("facts", "no shape is in this configuration", self.a.impossible, self.ctx)
            return
        self.stated(facts)
        self.ones()
        every = self.a.given(self.ctx, *self.widths)
        if not self.a.satisfiable(every) and not self.example(every):
            self.report.failures.append(Failure(f"{self.label}the facts may contradict each other", ""))
        self.inputs = {n: self.view(v) for n, v in self.data["inputs"].items()}
        self.outputs = {n: self.view(v) for n, v in self.data["outputs"].items()}
        self.contents = {n: self._start(n) for n in self.buffers}
        for k, event in enumerate(self.data["events"]):
            if event["kind"] == "launch":
                Launch(self, k, event).run()
            else:
                self.host(event)
        self.results()

    def _start(self, name: str) -> Content:
        return lambda o, ctx: self.initial(name, o, ctx)

    def contracts(self) -> None:
        """The conditions of the contract, as facts."""
        self.clauses: list[Formula] = []
        self.widths: list[Formula] = []  # what only says that integers fit
        for clause in self.certificate["contract"]:
            if clause["term"] is not None and clause["configuration"] in (None, self.data["number"]):
                found = self.widths if clause["kind"] == "nowrap" else self.clauses
                found.append(self.a.condition(self.nodes[clause["term"]], {}, self.a.none))

    def stated(self, facts: Sequence[Formula]) -> None:
        """Facts about the sizes of the case follow from the contract; those about numbers of the launches are told."""
        names = {x for v in self.views() for p in (v.offset, *v.shape, *v.strides) for x in p.atoms()}
        names |= {atom("sym", t.sort, t.attr).id for t in self.nodes if t.op == "scalar"}
        contract = self.a.context(self.clauses)
        for n, f in zip(self.data["facts"], facts, strict=True):
            inside = {x for p in polys(f) for x in p.atoms()}
            every = inside | {y for x in inside for y in _atoms_of(ATOMS[x])}
            if all(ATOMS[x].kind != "sym" or x in names for x in every):
                self.attempt(
                    "facts",
                    f"{shown(self.nodes[n])} is part of the contract",
                    lambda ctx, f=f: self.a.implied(ctx, f),
                    contract,
                )
            else:
                self.report.assumed.append(f"{self.label}{shown(self.nodes[n])}")

    def ones(self) -> None:
        """Sizes that can only be 1 are 1 from here on."""
        for x in sorted({x for v in self.views() for p in v.shape for x in p.atoms()}):
            if ATOMS[x].kind == "sym" and self.a.implied(self.ctx, eq(minus(of(ATOMS[x]), ONE))):
                self.a.fixed[ATOMS[x].data[0]] = ONE
        self.a.memo.clear()

    def views(self) -> list[View]:
        """The tensors of the case."""
        return [self.view(v) for v in (*self.data["inputs"].values(), *self.data["outputs"].values())]

    def example(self, ctx: Context) -> bool:
        """Whether the numbers of the certificate meet the facts."""
        values = {atom("sym", "int", n).id: number(v) for n, v in self.data["example"].items()}
        for f in ctx.facts:
            names = {x for p in polys(f) for x in p.atoms()}
            pins = [eq(minus(of(ATOMS[x]), values[x])) for x in values]
            if not self.a.implied(self.a.context(pins), f):
                return False
            if not names:
                return False
        return bool(values)

    # ---- memory

    def host(self, event: Mapping[str, Any]) -> None:
        """A torch operation: the summary says what its outputs hold."""
        before = dict(self.contents)
        for out in event["outputs"]:
            view = self.view(out["view"])
            self.contents[view.buffer] = self.overlay(view, out["axes"], out["term"], before, HostWorld(self, before))

    def overlay(self, view: View, axes: Sequence[int], term: int, before: Mapping[str, Content], world: Any) -> Content:
        """The contents of a buffer that holds a term in a view."""
        keys = [self.nodes[n].axis for n in axes]

        def content(o: Poly, ctx: Context) -> Any:
            index, inside = self.decoded(view, o, ctx)
            answer = self.a.decided(ctx, inside)
            if answer is None:
                raise Split(next(x for x in literals(inside) if self.a.decided(ctx, x) is None))
            if not answer:
                return before[view.buffer](o, ctx)
            with self.inside(world):
                return self.a.value(self.nodes[term], dict(zip(keys, index, strict=True)), ctx)

        return content

    @contextmanager
    def inside(self, world: Any) -> Iterator[None]:
        """Loads are those of this world."""
        before, self.a.world = self.a.world, world
        try:
            yield
        finally:
            self.a.world = before

    def decoded(self, view: View, o: Poly, ctx: Context) -> tuple[list[Poly], Formula]:
        """The index of element o, and the condition that it is in the view."""
        index = [ZERO] * len(view.shape)
        rest = minus(o, view.offset)
        conditions: list[Formula] = []
        order = self.order(view, ctx)
        if self.dense(view, order):
            for d in reversed(order[1:]):
                whole = self.a.quotient(rest, view.shape[d], ctx)
                index[d] = minus(rest, mul(whole, view.shape[d]))
                conditions.append(lt(scaled(view.shape[d], -1)))
                rest = whole
            if order:
                index[order[0]] = rest
            return index, conj(*conditions, within(rest, view.shape[order[0]]) if order else eq(rest))
        for d in order:
            s = view.strides[d]
            index[d] = rest if s is ONE else self.a.quotient(rest, s, ctx)
            rest = minus(rest, mul(index[d], s))
            conditions.append(within(index[d], view.shape[d]))
        return index, conj(*conditions, eq(rest))

    def dense(self, view: View, order: Sequence[int]) -> bool:
        """Whether the elements lie behind one another, in this order of dimensions."""
        step = ONE
        for d in reversed(order):
            if view.strides[d] is not step:
                return False
            step = mul(step, view.shape[d])
        return True

    def order(self, view: View, ctx: Context) -> list[int]:
        """Dimensions from the largest stride, each as large as all that follows. Raises NotChecked."""
        left = [d for d, n in enumerate(view.shape) if n is not ONE]
        out: list[int] = []
        step = ONE
        while left:
            d = next((d for d in left if view.strides[d] is step), None)
            if d is None:
                d = next((d for d in left if self.a.implied(ctx, le(minus(step, view.strides[d])))), None)
            if d is None:
                raise NotChecked("two indices of a tensor may be one element")
            left.remove(d)
            out.insert(0, d)
            step = mul(view.strides[d], view.shape[d])
        return out

    def interferes(self, world: World, buffer: str) -> None:
        """Raises NotChecked where a load may meet a store of its launch."""
        key = (id(world), buffer)
        if key not in self.apart:
            self.apart[key] = None  # while it is looked at
            self.apart[key] = Launch.meeting(self, world, buffer)
        if (why := self.apart[key]) is not None:
            raise NotChecked(why)

    # ---- the end

    def results(self) -> None:
        """Every output, and every input that is written, equals its formula."""
        written = {e for event in self.data["events"] for e in self.written(event)}
        for name, view in {**self.outputs, **self.inputs}.items():
            if name in self.proved or (name in self.inputs and name not in self.outputs and view.buffer not in written):
                continue
            formula = self.certificate["formulas"].get(name)
            if formula is None:
                self.report.failures.append(Failure(f"{self.label}{name}", "the claim says nothing of it"))
                continue
            self.attempt(
                "contents", f"{name} at the end", lambda ctx, v=view, f=formula: self.final(v, f, ctx), self.ctx
            )

    def written(self, event: Mapping[str, Any]) -> set[str]:
        """The buffers that an event may write."""
        if event["kind"] == "host":
            return {out["view"]["buffer"] for out in event["outputs"]}
        return {b for x in event["accesses"] if x["kind"] != "load" for b in self.buffers_of(x, event)}

    def buffers_of(self, access: Mapping[str, Any], event: Mapping[str, Any]) -> set[str]:
        """The buffers that an access may be to. Raises NotChecked for a pointer into no tensor."""
        names = set(_pointers(self.nodes[access["pointer"]], event, self.nodes))
        if not names <= event["pointers"].keys():
            raise NotChecked("a pointer into no tensor")
        return {event["pointers"][n]["buffer"] for n in names}

    def final(self, view: View, formula: Mapping[str, Any], ctx: Context) -> bool:
        """The contents at every index are the formula."""
        axes = [self.nodes[n] for n in formula["axes"]]
        for t in axes:
            ctx = self.a.given(ctx, within(self.a.finite(t, {}, ctx), self.a.finite(t.attr[1], {}, ctx)))
        index = [self.a.finite(t, {}, ctx) for t in axes]
        held = self.contents[view.buffer]
        return self.equal(lambda c: held(view.element(index), c), lambda c: self.of_formula(formula, index, c), ctx)

    def of_formula(self, formula: Mapping[str, Any], index: Sequence[Poly], ctx: Context) -> Any:
        """The formula at an index."""
        keys = [self.nodes[n].axis for n in formula["axes"]]
        with self.inside(ReferenceWorld(self)):
            return self.a.value(self.nodes[formula["term"]], dict(zip(keys, index, strict=True)), ctx)

    def equal(self, left: Callable[[Context], Any], right: Callable[[Context], Any], ctx: Context) -> bool:
        """Whether two numbers are equal, and are undefined in the same cases."""
        a = self.a
        a.needs = {}
        x, mine = left(ctx), dict(a.needs)
        a.needs = {}
        y, theirs = right(ctx), dict(a.needs)
        if not isinstance(x, Poly) or not isinstance(y, Poly):
            return x is y
        if not a.zero(minus(x, y), ctx):
            raise NotChecked(f"{text(x)} against {text(y)}"[:600])
        for needs, others in ((mine, theirs), (theirs, mine)):
            for kind, p in needs:
                if not self.owed(kind, p, others, ctx):
                    raise NotChecked(f"only one side needs that an operand is {kind}")
        return True

    def owed(self, kind: str, p: Poly, others: Mapping[Need, None], ctx: Context) -> bool:
        """Whether a need is met, or is one of the other side too."""
        if (kind, p) in others or self.a.met(kind, p, ctx):
            return True
        return any(k == kind and self.a.zero(minus(p, q), ctx) for k, q in others)


class ReferenceWorld:
    """The world of a formula: the inputs of the case as they are before anything is launched."""

    number = -1  # one for all: the inputs are always the same

    def __init__(self, configured: Configured) -> None:
        self.c = configured

    def load(self, t: Node, env: Env, ctx: Context) -> Any:
        """An element of an input."""
        if t.op != "element":
            raise NotChecked(f"{t.op} in a formula")
        view = self.c.inputs[t.attr]
        index = [self.c.a.finite(i, env, ctx) for i in t.args]
        return self.c.initial(view.buffer, view.element(index), ctx)


class HostWorld:
    """The world of a torch operation: the buffers before it."""

    def __init__(self, configured: Configured, before: Mapping[str, Content]) -> None:
        self.c, self.before = configured, before
        self.number = next(_serial)

    def load(self, t: Node, env: Env, ctx: Context) -> Any:
        """An element of a buffer."""
        if t.op != "read":
            raise NotChecked(f"{t.op} in a torch operation")
        return self.before[t.attr](self.c.a.finite(t.args[0], env, ctx), ctx)


class Launch:
    """The obligations of one launch."""

    def __init__(self, configured: Configured, position: int, event: Mapping[str, Any]) -> None:
        self.c, self.a, self.position, self.event = configured, configured.a, position, event
        self.world = World(configured, event)
        self.nodes = configured.nodes

    def run(self) -> None:
        """Loops, bounds, integers, stores; then memory is what the launch left."""
        c, ctx = self.c, self.c.ctx
        with c.inside(self.world):
            for k, n in enumerate(self.world.grid):
                c.attempt(
                    "grid",
                    f"grid axis {k}",
                    lambda ctx, n=n: self.a.implied(ctx, le(scaled(self.a.finite(n, {}, ctx), -1))),
                    ctx,
                )
            for name, carry in self.world.carries.items():
                if carry["form"] is not None:
                    self.loop(name, carry)
            for access in self.event["accesses"]:
                what = f"{access['kind']} at line {access['line']} in bounds"
                c.attempt("bounds", what, lambda ctx, x=access: self.bounded(x, ctx), ctx)
            for k, operation in enumerate(self.event["arithmetic"]):
                self.arithmetic(k, operation)
            self.stores()

    # ---- loops

    def loop(self, name: str, carry: Mapping[str, Any]) -> None:
        """A closed form holds after the first iteration, and each iteration keeps it."""
        loop = carry["loop"]
        counter = self.nodes[loop["counter"]].axis
        site = {"loops": loop["outer_loops"], "lanes": carry["lanes"], "guard": loop["guard"]}
        n = of(atom("sym", "int", *counter))
        pairs = (("entry", ZERO, ONE), ("step", n, add(n, ONE)))
        for which, now, then in pairs:

            def goal(ctx: Context, now: Poly = now, then: Poly = then) -> bool:
                here = self.world.running(site, {}, ctx)
                trips = self.a.finite(self.nodes[loop["trips"]], {}, here)
                bounds = [le(minus(ONE, now)), lt(minus(now, trips))] if now is not ZERO else [le(minus(ONE, trips))]
                here = self.a.given(here, *bounds)
                if self.a.impossible(here):
                    return True
                return self.c.equal(
                    lambda x: self.carried(carry["form"], {counter: then}, x),
                    lambda x: self.carried(carry["next"], {counter: now}, x),
                    here,
                )

            self.c.attempt("loops", f"{which} of the loop at line {loop['line']}: {carry['name']}", goal, self.c.ctx)

    def carried(self, n: int, env: Env, ctx: Context) -> Any:
        """A value of a loop variable as a number: of a pointer its offset."""
        t = self.nodes[n]
        if t.sort == "ptr":
            return self.world.pointer(t, env, ctx)[1]
        return self.a.value(t, env, ctx)

    # ---- safety

    def bounded(self, access: Mapping[str, Any], ctx: Context) -> bool:
        """0 <= offset < length."""
        here = self.world.running(access, {}, ctx)
        if self.a.impossible(here):
            return True
        view, o = self.world.place(access, {}, here)
        length = self.c.number(self.c.buffers[view.buffer]["length"])
        names = self.world.locals(access)
        return self.a.least(o, here, names) and self.a.least(minus(minus(length, o), ONE), here, names)

    def arithmetic(self, k: int, operation: Mapping[str, Any]) -> None:
        """An integer operation has its value: it fits its width, its divisor is not 0."""
        what = f"{operation['kind']} of {operation['bits']} bits at line {operation['line']}"
        for clause in self.c.certificate["contract"]:
            if clause.get("arithmetic") == [self.c.data["number"], self.position, k]:
                self.c.report.assumed.append(f"{self.c.label}{clause['text']}")
                return
        self.c.attempt("integers", what, lambda ctx: self.exact(operation, ctx), self.c.ctx)

    def exact(self, operation: Mapping[str, Any], ctx: Context) -> bool:
        """The condition of an integer operation."""
        here = self.world.running(operation, {}, ctx)
        if self.a.impossible(here):
            return True
        kind, bits = operation["kind"], operation["bits"]
        here = self.a.given(here, *self.c.widths) if kind == "wrap" else here
        if kind in ("assume", "descriptor"):
            return self.a.known(self.nodes[operation["term"]], {}, here)
        p = self.a.finite(self.nodes[operation["term"]], {}, here)
        names = self.world.locals(operation)
        between = lambda low, high: (
            self.a.least(minus(p, number(low)), here, names)
            and self.a.least(  # noqa: E731
                minus(number(high - 1), p), here, names
            )
        )
        match kind:
            case "wrap":
                return between(-(1 << bits - 1), 1 << bits - 1)
            case "unsigned":
                return between(0, 1 << bits)
            case "shift":
                return between(0, bits)
            case "positive":
                return self.a.least(minus(p, ONE), here, names)
            case "divisor":
                return self.a.implied(here, negated(eq(p))) or self.a.least(minus(p, ONE), here, names)
        raise NotChecked(f"a condition of kind {kind}")

    # ---- stores

    def stores(self) -> None:
        """For each buffer that is written: every store stores what the claim says, and every element has one."""
        c = self.c
        before = dict(c.contents)
        for buffer in sorted(self.world.written):
            writes = [x for x in self.event["accesses"] if x["kind"] != "load"]
            mine = [x for x in writes if buffer in c.buffers_of(x, self.event)]
            if any(len(c.buffers_of(x, self.event)) > 1 for x in mine):
                raise NotChecked("a store that is not to one tensor")
            if all(x["kind"] == "add" for x in mine):
                c.contents[buffer] = self.accumulated(mine, before[buffer])
                continue
            if any(x["kind"] != "store" for x in mine):
                kinds = sorted({x["kind"] for x in mine})
                c.report.failures.append(
                    Failure(f"{c.label}contents of {buffer}", f"atomic operations ({', '.join(kinds)})")
                )
                c.contents[buffer] = _unknown(buffer)
                continue
            c.contents[buffer] = self.after(buffer, mine, before)

    def accumulated(self, mine: Sequence[Mapping[str, Any]], before: Content) -> Content:
        """The contents after atomic additions: what was there, and the sum of what all executions add."""

        def content(o: Poly, ctx: Context) -> Any:
            with self.c.inside(self.world):
                return add(before(o, ctx), *(self.added(x, o, ctx) for x in mine))

        return content

    def added(self, x: Mapping[str, Any], o: Poly, ctx: Context) -> Poly:
        """The sum of what the executions of an atomic addition add to element o."""
        a, table = self.a, self.nodes
        axes = [table[self.event["loops"][k]["counter"]] for k in x["loops"]] + [table[n] for n in x["lanes"]]
        env: dict[AxisKey, Poly] = {t.axis: of(variable()) for t in axes}
        for k, n in enumerate(self.world.grid):
            env[f"pid{k}", -1] = ZERO if a.finite(n, {}, ctx) is ONE else of(variable())
        bound = [next(iter(p.vars)) for p in env.values() if p is not ZERO]

        def body(here: Context) -> tuple[Formula, Poly]:
            inside = self.world.running(x, env, here)
            met = a.given(inside, eq(minus(self.world.place(x, env, inside)[1], o)))
            guards = conj(*(f for f in met.facts if f not in ctx.facts))
            return guards, ZERO if a.impossible(met) else a.finite(table[x["value"]], env, met)

        total = ZERO
        for _, (guards, value) in a.by_cases(body, ctx, bound, TRUE):
            if value is not ZERO:
                total = add(total, self.summed(x, env, bound, guards, value, o, ctx))
        return total

    def summed(
        self, x: Mapping[str, Any], env: Env, bound: Sequence[int], guards: Formula, value: Poly, o: Poly, ctx: Context
    ) -> Poly:
        """The sum over programs, iterations and lanes, of which the element may determine some."""
        a = self.a
        for index, inverse in self.inverses(x, o, ctx):
            keys = [self.nodes[n].axis for n in inverse["index"]]
            for unknown, term in inverse["values"]:
                t = self.nodes[unknown]
                (v,) = env[(t.attr, -1) if t.op == "size" else t.axis].vars or (None,)
                w = a.finite(self.nodes[term], dict(zip(keys, index, strict=True)), ctx)
                if v in bound and a.implied(a.given(ctx, guards), eq(minus(of(ATOMS[v]), w))):
                    guards, value = put_formula(guards, {v: w}), put(value, {v: w})
                    bound = [b for b in bound if b != v]
        free = [f for f in (guards[1:] if guards[0] == "and" else (guards,)) if not variables(f) & set(bound)]
        for f in free:
            answer = a.decided(ctx, f)
            if answer is None:
                raise Split(next(y for y in literals(f) if a.decided(ctx, y) is None))
            if not answer:
                return ZERO
        rest = conj(*(f for f in (guards[1:] if guards[0] == "and" else (guards,)) if f not in free))
        return a.sum(tuple(bound), rest, value, ctx) if bound else value

    def inverses(
        self, x: Mapping[str, Any], o: Poly, ctx: Context
    ) -> Iterator[tuple[Sequence[Poly], Mapping[str, Any]]]:
        """Who writes element o, by the certificate, and the index that this is said of."""
        c = self.c
        buffers = c.buffers_of(x, self.event)
        views = [v for v in (*c.outputs.values(), *c.inputs.values()) if v.buffer in buffers]
        for inverse in x["inverse"]:
            for v in views:
                if len(inverse["index"]) == len(v.shape):
                    yield c.decoded(v, o, ctx)[0], inverse
            if len(inverse["index"]) == 1:
                yield [o], inverse

    def target(self, buffer: str) -> tuple[str, View, Mapping[str, Any], bool] | None:
        """What a buffer holds after this launch: (name, view, axes and term, whether that is an output's formula)."""
        c = self.c
        later = c.data["events"][self.position + 1 :]
        last = all(buffer not in c.written(e) for e in later)
        names = [n for n, v in {**c.outputs, **c.inputs}.items() if v.buffer == buffer]
        if last and len(names) == 1 and names[0] in c.certificate["formulas"]:
            name = names[0]
            return name, {**c.outputs, **c.inputs}[name], c.certificate["formulas"][name], True
        hint = self.event["after"].get(buffer)
        return None if hint is None else (buffer, c.view(hint["view"]), hint, False)

    def after(self, buffer: str, mine: Sequence[Mapping[str, Any]], before: Mapping[str, Content]) -> Content:
        """The contents of a buffer after its stores."""
        c = self.c
        found = self.target(buffer)
        if found is None:
            c.report.failures.append(Failure(f"{c.label}contents of {buffer}", "the certificate does not say them"))
            return _unknown(buffer)
        name, view, term, final = found
        for x in mine:
            what = f"value equality at line {x['line']}: {name}"
            c.attempt("stores", what, lambda ctx, x=x: self.stored(x, view, term, final, ctx), c.ctx)
        covered = c.attempt(
            "coverage", f"every element of {name} is stored", lambda ctx: self.covered(mine, view, term, ctx), c.ctx
        )
        if final and covered:
            c.proved[name] = buffer
        world = ReferenceWorld(c) if final else self.world
        return c.overlay(view, term["axes"], term["term"], before, world)

    def stored(self, x: Mapping[str, Any], view: View, term: Mapping[str, Any], final: bool, ctx: Context) -> bool:
        """The value is what the claim says of the element, wherever the store is executed."""
        here = self.world.running(x, {}, ctx)
        if self.a.impossible(here):
            return True
        _, o = self.world.place(x, {}, here)
        index, inside = self.c.decoded(view, o, here)
        if not self.a.implied(here, inside):
            raise NotChecked("the store is not shown to be inside the tensor")
        return self.c.equal(
            lambda ctx: self.a.value(self.nodes[x["value"]], {}, ctx),
            lambda ctx: self.expected(term, index, final, ctx),
            here,
        )

    def expected(self, term: Mapping[str, Any], index: Sequence[Poly], final: bool, ctx: Context) -> Any:
        """The formula, or the contents that the certificate states, at an index."""
        if final:
            return self.c.of_formula(term, index, ctx)
        keys = [self.nodes[n].axis for n in term["axes"]]
        return self.a.value(self.nodes[term["term"]], dict(zip(keys, index, strict=True)), ctx)

    def covered(self, mine: Sequence[Mapping[str, Any]], view: View, term: Mapping[str, Any], ctx: Context) -> bool:
        """Every index has a program, iteration and lane that store it."""
        axes = [self.nodes[n] for n in term["axes"]]
        index = [of(atom("sym", "int", f"index{d}", -1)) for d in range(len(axes))]
        here = self.a.given(ctx, *(within(i, n) for i, n in zip(index, view.shape, strict=True)))
        conditions = []
        for x in mine:
            for inverse in x["inverse"]:
                if len(inverse["index"]) == len(index):
                    conditions.append(self.writer(x, inverse, view, index, here))
        if not conditions:
            raise NotChecked("the certificate names no program that stores an element")
        return self.a.implied(here, disj(*conditions))

    def writer(
        self, x: Mapping[str, Any], inverse: Mapping[str, Any], view: View, index: Sequence[Poly], ctx: Context
    ) -> Formula:
        """The condition that the execution of a store that the certificate names stores the element."""
        keys = [self.nodes[n].axis for n in inverse["index"]]
        given = dict(zip(keys, index, strict=True))
        env: dict[AxisKey, Poly] = {}
        for unknown, term in inverse["values"]:
            t = self.nodes[unknown]
            env[(t.attr, -1) if t.op == "size" else t.axis] = self.a.finite(self.nodes[term], given, ctx)
        conditions: list[Formula] = []
        for k, n in enumerate(self.world.grid):
            p = env.get((f"pid{k}", -1), ZERO)
            env[f"pid{k}", -1] = p
            conditions.append(within(p, self.a.finite(n, {}, ctx)))
        for k in x["loops"]:
            loop = self.event["loops"][k]
            counter = self.nodes[loop["counter"]]
            if counter.axis not in env:
                raise NotChecked("the certificate names no iteration that stores an element")
            conditions.append(within(env[counter.axis], self.a.finite(self.nodes[loop["trips"]], env, ctx)))
            conditions.append(self.a.condition(self.nodes[loop["guard"]], env, ctx))
        for n in x["lanes"]:
            lane = self.nodes[n]
            env.setdefault(lane.axis, ZERO)
            conditions.append(within(env[lane.axis], self.a.finite(lane.attr[1], env, ctx)))
        ranges = conj(*conditions)
        if ranges == FALSE:
            return FALSE
        here = self.a.given(ctx, ranges)
        guard = self.a.condition(self.nodes[x["guard"]], env, here)
        _, o = self.world.place(x, env, self.a.given(here, guard))
        return conj(ranges, guard, eq(minus(o, view.element(index))))

    # ---- loads and stores of one launch

    @staticmethod
    def meeting(c: Configured, world: World, buffer: str) -> str | None:
        """Why a load of the launch may meet a store to the same buffer; None if it meets none but its own lane's later
        one."""
        accesses = [x for x in world.launch["accesses"] if buffer in c.buffers_of(x, world.launch)]
        loads = [x for x in accesses if x["kind"] == "load"]
        stores = [x for x in accesses if x["kind"] != "load"]
        for x in loads:
            for s in stores:
                if not _in_order(c, world, x, s, buffer):
                    return f"the load at line {x['line']} may meet the store at line {s['line']}"
        return None


def _in_order(c: Configured, world: World, x: Mapping[str, Any], s: Mapping[str, Any], buffer: str) -> bool:
    """Whether a store that meets a load is a later one of the same lane and program."""
    table, a = c.nodes, c.a
    keys = [table[world.launch["loops"][k]["counter"]].axis for k in s["loops"]] + [table[n].axis for n in s["lanes"]]
    other: dict[AxisKey, Poly] = {k: of(variable()) for k in keys}
    other |= {(f"pid{k}", -1): of(variable()) for k in range(3)}

    def goal(ctx: Context) -> bool:
        here = world.running(s, other, world.running(x, {}, ctx))
        if a.impossible(here):
            return True
        (_, o), (_, p) = world.place(x, {}, here), world.place(s, other, here)
        if a.implied(here, negated(eq(minus(o, p)))):
            return True
        if x["order"] >= s["order"] or x["loops"] != s["loops"] or len(x["lanes"]) != len(s["lanes"]):
            return False
        views = [v for v in (*c.outputs.values(), *c.inputs.values()) if v.buffer == buffer]
        (mine, _), (theirs, _) = c.decoded(views[0], o, here), c.decoded(views[0], p, here)
        met = a.given(here, *(eq(minus(i, j)) for i, j in zip(mine, theirs, strict=True)))
        pairs = [(_program(k, {}), other[f"pid{k}", -1]) for k in range(3)]
        pairs += [
            (a.finite(table[m], {}, here), other[table[n].axis]) for m, n in zip(x["lanes"], s["lanes"], strict=True)
        ]
        pairs += [
            (
                a.finite(table[world.launch["loops"][k]["counter"]], {}, here),
                other[table[world.launch["loops"][k]["counter"]].axis],
            )
            for k in s["loops"]
        ]
        return all(a.implied(met, eq(minus(i, j))) for i, j in pairs)

    try:
        return c.cases(goal, c.ctx, 0)
    except (NotChecked, Split):
        return False


def _unknown(buffer: str) -> Content:
    def content(o: Poly, ctx: Context) -> Any:
        raise NotChecked(f"the contents of {buffer} are not known")

    return content


def shown(t: Node) -> str:
    """A term as text."""
    signs = {"add": " + ", "mul": " * ", "le": " <= ", "lt": " < ", "eq": " == ", "ne": " != ", "and": " and ",
             "or": " or ", "floordiv": " // ", "mod": " % "}  # fmt: skip
    if t.op in ("size", "scalar", "const"):
        return str(t.attr)
    if t.op == "axis":
        return str(t.attr[0])
    parts = [f"({shown(a)})" if a.op in signs else shown(a) for a in t.args]
    return signs[t.op].join(parts) if t.op in signs else f"{t.op}({', '.join(parts)})"


def check(certificate: Mapping[str, Any]) -> Report:
    """Replays a certificate (the object that its JSON is). Raises Wrong where it is none."""
    if certificate.get("certificate") != VERSION:
        raise Wrong(f"not a certificate of version {VERSION}")
    try:
        return _checked({**certificate, "nodes": nodes(certificate["terms"])})
    except (KeyError, IndexError, TypeError, ValueError) as e:
        raise Wrong(f"the certificate is not complete: {type(e).__name__} {e}") from e


def _clause(c: Mapping[str, Any], table: Sequence[Node], labels: Mapping[int, str]) -> str:
    """A clause as text: its term where it has one, so that the two cannot differ."""
    where = "" if c["configuration"] is None else f" (where {labels[c['configuration']]})"
    return (c["text"] if c["term"] is None else shown(table[c["term"]])) + where


def _checked(certificate: Mapping[str, Any]) -> Report:
    claim = [f"{n} = {f['text']}" for n, f in certificate["formulas"].items()]
    table = certificate["nodes"]
    labels = {c["number"]: c["label"] for c in certificate["configurations"]}
    clauses = [_clause(c, table, labels) for c in certificate["contract"]]
    report = Report([*claim, *clauses], solvers()[0])
    for data in certificate["configurations"]:
        configured = Configured(certificate, data, report)
        try:
            configured.run()
        except NotChecked as stop:
            report.failures.append(Failure(f"{configured.label}configuration", str(stop)))
        except Split as split:
            report.failures.append(Failure(f"{configured.label}configuration", str(split)))
        report.questions += configured.a.asked
    if not certificate["configurations"]:
        report.failures.append(Failure("configurations", "there is none"))
    return report
