"""Conclusions from facts: questions in SMT-LIB to cvc5, else to z3, with a budget in steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from .polynomials import (
    ATOMS,
    FALSE,
    ONE,
    POLYS,
    TRUE,
    UNIT,
    ZERO,
    Atom,
    Formula,
    Mono,
    NotChecked,
    Number,
    Poly,
    add,
    atom,
    conj,
    disj,
    eq,
    le,
    lt,
    minus,
    mul,
    negated,
    number,
    of,
    poly,
    polys,
    scaled,
    variable,
    within,
)

STEPS_OF_QUESTION = 400_000  # resources of cvc5 or z3 for one question
QUESTIONS = 6_000  # to the solver, about one configuration
MODELS = 24  # kept, to see at once that facts do not imply a condition


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
    said = str(solver.check())
    if said != "sat":
        return said
    model = solver.model()
    numbers = (d for d in model.decls() if d.arity() == 0)  # not what z3 makes of a quotient by 0, a function
    return " ".join([said, *(f"({d.name()} {model[d].sexpr()})" for d in numbers)])


@dataclass(frozen=True, slots=True)
class Said:
    """A text of SMT-LIB, the numbers in it, and whether some are multiplied."""

    text: str
    names: frozenset[str] = frozenset()
    nonlinear: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """A number of a question: its sort, and the conditions that it meets by its definition."""

    sort: str
    axioms: tuple[Said, ...] = ()
    formulas: tuple[Formula, ...] = ()


class Language:
    """Conditions as SMT-LIB. Atoms are numbers; of some more is known. `products`: products are products, else each is
    a number of its own, which is faster and proves less."""

    def __init__(self, products: bool, bounds: Mapping[str, tuple[Poly, Poly]]) -> None:
        self.products, self.bounds = products, bounds
        self.numbers: dict[str, Unknown] = {}
        self.said: dict[object, Said] = {}  # by polynomial or condition

    def question(self, conditions: Sequence[Formula]) -> Question:
        """The text that asks whether conditions contradict each other."""
        parts = [self.formula(f) for f in conditions]
        found = dict.fromkeys(n for s in parts for n in sorted(s.names))
        left = [*found]
        for n in left:  # grows
            more = [m for s in self.numbers[n].axioms for m in sorted(s.names) if m not in found]
            found.update(dict.fromkeys(more))
            left += dict.fromkeys(more)
        known = [self.numbers[n] for n in found]
        parts = [*(s for x in known for s in x.axioms), *parts]
        lines = ["(set-logic ALL)", *(f"(declare-const {n} {self.numbers[n].sort})" for n in found)]
        values = f"(get-value ({' '.join(found)}))" if found else ""
        text = "\n".join([*lines, *(f"(assert {s.text})" for s in parts), "(check-sat)", values])
        return Question(text, any(s.nonlinear for s in parts), tuple(f for x in known for f in x.formulas))

    def formula(self, f: Formula) -> Said:
        """A condition."""
        if f not in self.said:
            self.said[f] = self._formula(f)
        return self.said[f]

    def _formula(self, f: Formula) -> Said:
        match f[0]:
            case "true" | "false":
                return Said(str(f[0]))
            case "and" | "or":
                return _joined(f[0], [self.formula(x) for x in f[1:]])
            case "ne":
                return _joined("not", [self.formula(("eq", f[1]))])
        sign = {"le": "<=", "lt": "<", "eq": "="}[f[0]]
        return _joined(sign, [self.poly(f[1]), Said("0" if f[1].whole else "0.0")])

    def poly(self, p: Poly) -> Said:
        """A polynomial."""
        if p not in self.said:
            parts = [self.monomial(m, c, p.whole) for m, c in sorted(p.terms.items(), key=lambda x: x[0])]
            zero = Said("0" if p.whole else "0.0")
            self.said[p] = parts[0] if len(parts) == 1 else _joined("+", parts) if parts else zero
        return self.said[p]

    def monomial(self, m: Mono, c: Number, whole: bool) -> Said:
        """c times powers of atoms."""
        factors = [self.factor(a, k) for a, k in m[0] for _ in range(self.times(k))]
        if m[1]:
            positive = Said(f"(> e{m[1]} 0.0)", frozenset((f"e{m[1]}",)))
            factors.append((self.declare(f"e{m[1]}", "Real", lambda: ([positive], [])), "real"))
        nonlinear = len(factors) > 1
        if nonlinear and not self.products:
            integer = all(s == "int" for _, s in factors)
            name = "_".join(["m", *(n for n, _ in factors)])
            sign = partial(self.positive, name, tuple(factors))
            factors = [(self.declare(name, "Int" if integer else "Real", sign), "int" if integer else "real")]
        texts = [n if whole or s == "real" else f"(to_real {n})" for n, s in factors]
        if c != 1 or not texts:
            texts.insert(0, _constant(c, whole))
        text = texts[0] if len(texts) == 1 else f"(* {' '.join(texts)})"
        return Said(text, frozenset(n for n, _ in factors), nonlinear)

    def positive(self, name: str, factors: Sequence[tuple[str, str]]) -> tuple[list[Said], list[Formula]]:
        """A product of numbers that are not negative is not; of integers from 1 on it is not less than each."""
        signs = " ".join(f"(<= 0 {n})" for n, _ in factors)
        ones = " ".join(f"(<= 1 {n})" for n, _ in factors)
        large = " ".join(f"(<= {n} {name})" for n, _ in factors)
        text = f"(and (=> (and {signs}) (<= 0 {name})) (=> (and {ones}) (and {large})))"
        return [Said(text, frozenset((name, *(n for n, _ in factors))))], []

    def times(self, k: Fraction) -> int:
        """How often a factor is written: whole powers are products."""
        return int(k) if k.denominator == 1 and k > 0 else 1

    def factor(self, a: int, k: Fraction) -> tuple[str, str]:
        """An atom, or one of its other powers."""
        if k.denominator == 1 and k > 0:
            return self.atom(ATOMS[a]), ATOMS[a].sort
        return self.declare(_power_name(a, k), "Real"), "real"

    def declare(self, name: str, sort: str, known: Callable[[], Known] = lambda: ([], [])) -> str:
        """The name, declared, with what is known of it."""
        if name not in self.numbers:
            self.numbers[name] = Unknown(sort)  # it may occur in its own axioms
            axioms, formulas = known()
            self.numbers[name] = Unknown(sort, tuple(axioms), tuple(formulas))
        return name

    def atom(self, a: Atom) -> str:
        """The name of an atom; what is known of it becomes an axiom."""

        def axioms() -> Known:
            facts = known(a, self.bounds)
            return [self.formula(f) for f in facts], facts

        return self.declare(f"a{a.id}", "Int" if a.sort == "int" else "Real", axioms)


Known = tuple[list[Said], list[Formula]]


@dataclass(frozen=True, slots=True)
class Question:
    """A text of SMT-LIB that asks whether conditions contradict each other. `formulas`: what it says of atoms."""

    text: str
    nonlinear: bool
    formulas: tuple[Formula, ...]


def _joined(sign: str, parts: Sequence[Said]) -> Said:
    text = f"({sign} {' '.join(s.text for s in parts)})"
    return Said(text, frozenset[str]().union(*(s.names for s in parts)), any(s.nonlinear for s in parts))


def _power_name(a: int, k: Fraction) -> str:
    return f"p{a}_{k.numerator}_{k.denominator}".replace("-", "n")


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
    return bool({"le": v <= 0, "lt": v < 0, "eq": v == 0, "ne": v != 0}[f[0]])


def _number_of(p: Poly, model: Model) -> Number:
    total: Number = 0
    for (factors, e), c in p.terms.items():
        for a, k in factors:
            if k.denominator == 1 and k > 0:
                c = c * model.get(f"a{a}", 0) ** int(k)
            else:
                c = c * model.get(_power_name(a, k), 0)
        total += c * model.get(f"e{e}", 1) if e else c
    return total


def _constant(c: Number, whole: bool) -> str:
    exact = Fraction(c)
    size = abs(exact)
    text = str(size.numerator) if whole else f"{size.numerator}.0"
    text = text if size.denominator == 1 else f"(/ {size.numerator}.0 {size.denominator}.0)"
    return f"(- {text})" if exact < 0 else text


def known(a: Atom, bounds: Mapping[str, tuple[Poly, Poly]]) -> list[Formula]:
    """The conditions that an atom meets by its definition."""
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
    """Questions about conditions. `solver`: its name; `asked`: how many questions it got; `by_z3`: how many of these
    z3 answered, where cvc5 does not know."""

    def __init__(self) -> None:
        self.solver, self.ask = solvers()
        self.bounds: dict[str, tuple[Poly, Poly]] = {}
        self.asked = self.by_z3 = 0
        self.linear, self.nonlinear = Language(False, self.bounds), Language(True, self.bounds)
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
        question = self.linear.question(conditions)
        every = (*reversed(conditions), *question.formulas)
        if any(all(meets(f, m) for f in every) for m in self.models):
            return False
        if self._unsat(question.text):
            return True
        return question.nonlinear and self._unsat(self.nonlinear.question(conditions).text, products=True)

    def _unsat(self, text: str, products: bool = False) -> bool:
        if text not in self.texts:
            self.asked += 1
            if self.asked > QUESTIONS:
                raise NotChecked("the budget of questions is spent")
            said = self._answer(text, products)
            self.texts[text] = said == "unsat"
            if said.startswith("sat"):
                self.models.insert(0, model_of(said))
                del self.models[MODELS:]
        return self.texts[text]

    def _answer(self, text: str, products: bool) -> str:
        """With products z3 is asked first: where it finds numbers, cvc5 would spend all its steps."""
        if self.ask is _ask_z3:
            return _ask_z3(text)
        other = _ask_z3(text) if products else ""
        said = other if other.startswith("sat") else self.ask(text)
        if said == "unknown" and (other or _ask_z3(text)) == "unsat":
            said, self.by_z3 = "unsat", self.by_z3 + 1
        return said

    def satisfiable(self, ctx: Context) -> bool:
        """Whether the solver finds numbers that meet the facts."""
        return self.ask(self.nonlinear.question(ctx.facts).text).startswith("sat")

    # ---- inequalities of products

    def least(self, p: Poly, ctx: Context, local: frozenset[int], depth: int = 8) -> bool:
        """Whether p >= 0: by the solver; else with a bound for one of the local symbols in which p is monotonous."""
        if self.implied(ctx, le(scaled(p, -1))):
            return True
        if depth == 0:
            return False
        for a in sorted(local & p.atoms()):
            slope, rest = linear_in(p, a)
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
                slope, rest = linear_in(whole, a)
                if slope is ONE and self.implied(ctx, lt(scaled(d, -1))):
                    r = variable()
                    here = self.given(ctx, within(of(r), d))
                    image = minus(add(mul(d, of(ATOMS[x])), of(r)), rest)
                    ends = {y for y in d.atoms() if ATOMS[y].kind == "app" and ATOMS[y].data[0] in ("min", "max")}
                    yield _instead(p, a, image), here, (local - {a}) | {r.id, x} | ends
                    return

    def ends(self, a: int, ctx: Context, lower: bool) -> list[Poly]:
        """Bounds of an integer by the facts, and by what it is."""
        found: dict[Poly, None] = {}
        if ATOMS[a].kind == "app" and ATOMS[a].data[0] == ("max" if lower else "min"):
            found = dict.fromkeys(ATOMS[a].data[1])
        for f in ctx.facts:
            if f[0] not in ("le", "eq") or not f[1].whole:
                continue
            for p in (f[1],) if f[0] == "le" else (f[1], scaled(f[1], -1)):
                slope, rest = linear_in(p, a)
                if slope is not None and slope.constant == (-1 if lower else 1):
                    found[rest if lower else scaled(rest, -1)] = None
        return sorted(found, key=lambda p: (len(p.terms), p.id))


def _apart(p: Poly) -> tuple[Poly, Number]:
    """(q, c) with p = q + c for a constant c."""
    c = p.terms.get(UNIT, Fraction(0))
    return (minus(p, number(c)) if c else p), c


def linear_in(p: Poly, a: int) -> tuple[Poly | None, Poly]:
    """(s, r) with p = s a + r, a in neither; s is None where p has another form."""
    slope: dict[Mono, Number] = {}
    rest: dict[Mono, Number] = {}
    for (factors, e), c in p.terms.items():
        k = dict(factors).get(a, Fraction(0))
        inside = any(x != a and a in atoms_within(ATOMS[x]) for x, _ in factors) or (e and a in POLYS[e].atoms())
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


def atoms_within(a: Atom) -> set[int]:
    """The atoms in an atom."""
    if a.kind in ("read", "app"):
        inner = a.data[1]
    elif a.kind == "base":
        inner = (a.data[0],)
    else:
        inner = [p for _, g, b in a.data[1] for p in (b, *polys(g))] if a.kind in ("sum", "max", "arg") else ()
    return {y for p in inner for x in p.atoms() for y in (x, *atoms_within(ATOMS[x]))}
