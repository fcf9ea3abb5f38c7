"""The encodings that the normal form is measured against: elements at one shape as SMT-LIB, loops and sums written
out; and the conditions of a proof for all shapes.

    exp is a function with exp(x + y) = exp(x) * exp(y), 0 < exp(x), exp(0) = 1;  log(exp(x)) = x
    sqrt(x) * sqrt(x) = x, 0 <= sqrt(x) for 0 <= x;  other functions have no laws

No proof of ours rests on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from trilift.lift.errors import Unsupported
from trilift.lift.language.unfolding import expand
from trilift.lift.terms import construct as T
from trilift.lift.terms.constants import recover
from trilift.lift.terms.fit import value
from trilift.lift.terms.meanings import Domain, meaning
from trilift.lift.terms.term import FOLDS, Axis, Term

LAWS = {
    "exp": "(assert (forall ((x Real) (y Real)) (! (= (exp (+ x y)) (* (exp x) (exp y))) "
    ":pattern ((exp x) (exp y)))))\n(assert (forall ((x Real)) (! (< 0.0 (exp x)) :pattern ((exp x)))))\n"
    "(assert (= (exp 0.0) 1.0))",
    "exp2": "(assert (forall ((x Real) (y Real)) (! (= (exp2 (+ x y)) (* (exp2 x) (exp2 y))) "
    ":pattern ((exp2 x) (exp2 y)))))\n(assert (forall ((x Real)) (! (< 0.0 (exp2 x)) :pattern ((exp2 x)))))",
    "sqrt": "(assert (forall ((x Real)) (! (=> (<= 0.0 x) (and (<= 0.0 (sqrt x)) (= (* (sqrt x) (sqrt x)) x))) "
    ":pattern ((sqrt x)))))",
}
LOG = "(assert (forall ((x Real)) (! (= (log (exp x)) x) :pattern ((exp x)))))"
SORTS = {T.REAL: "Real", T.INT: "Int", T.BOOL: "Bool"}
BASELINE = Domain("SMT baseline", missing="error", error="{op}", says="its text in a question that z3 alone is asked")


def instance(t: Term, axes: Mapping[Axis, int], dims: Mapping[str, int | float]) -> Term:
    """The term at one shape and one index: axes and sizes are numbers, known names and folds are written out."""
    return _at(expand(t), dict(axes), dims, {})


def _at(t: Term, axes: dict[Axis, int], dims: Mapping[str, int | float], memo: dict[tuple[int, ...], Term]) -> Term:
    key = (t.id, *(axes[a] for a in sorted(t.free, key=lambda a: a.name)))
    if key not in memo:
        memo[key] = _written_out(t, axes, dims, memo)
    return memo[key]


def _written_out(
    t: Term, axes: dict[Axis, int], dims: Mapping[str, int | float], memo: dict[tuple[int, ...], Term]
) -> Term:
    if t.op in ("size", "scalar"):
        return T.const(dims[t.attr]) if t.attr in dims else t
    if t.op == "axis":
        return T.const(axes[t.attr])
    if t.op in FOLDS:
        count = int(value(t.attr.size, dims))
        return T.make(FOLDS[t.op], *(_at(t.args[0], {**axes, t.attr: k}, dims, {}) for k in range(count)))
    if isinstance(t.attr, Axis):
        raise Unsupported(t.op)
    if not t.args:
        return t
    return T.make(t.op, *(_at(a, axes, dims, memo) for a in t.args), attr=t.attr)


def question(a: Term, b: Term) -> str:
    """SMT-LIB that is unsatisfiable exactly when the laws above make the two elements equal. Raises Unsupported for an
    operation that it has no word for."""
    writer = _Writer()
    left, right = writer.name(a, T.REAL), writer.name(b, T.REAL)
    return "\n".join([*writer.head(), *writer.lines, f"(assert (distinct {left} {right}))", "(check-sat)"])


def implication(facts: Iterable[Term], goal: Term) -> str:
    """SMT-LIB for all shapes: unsatisfiable only if the facts imply the goal. A tensor is a function of its index; a
    sum over a size that is not a number is a number of its own. Facts without a word are left out. Raises Unsupported
    for a goal without one."""
    writer = _Writer()
    denied = f"(assert (not {writer.name(goal, T.BOOL)}))"
    given = []
    for f in sorted(facts, key=lambda t: t.id):
        try:
            given.append(f"(assert {writer.name(f, T.BOOL)})")
        except Unsupported:
            continue
    return "\n".join([*writer.head(), *writer.lines, *given, denied, "(check-sat)"])


class _Writer:
    """One definition for each distinct subterm, so that nothing is written twice."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.functions: dict[str, int] = {}
        self.tensors: dict[str, str] = {}
        self.names: dict[int, str] = {}
        self.undefined = 0

    def head(self) -> list[str]:
        """Declarations of functions, and their laws."""
        laws = [LAWS[f] for f in LAWS if f in self.functions]
        laws += [LOG] if {"exp", "log"} <= self.functions.keys() else []
        declared = [f"(declare-fun {f} ({' '.join(['Real'] * n)}) Real)" for f, n in self.functions.items()]
        return [*declared, *self.tensors.values(), *laws]

    def name(self, t: Term, sort: str) -> str:
        """The name of a term, as a real number where one is wanted."""
        if t.op == "undef":
            return self._anything(sort)
        if t.id not in self.names:
            for a in () if _opaque(t) else t.args:
                self.name(a, a.type)
            self.names[t.id] = self._define(t)
        text = self.names[t.id]
        return f"(to_real {text})" if sort == T.REAL and t.type == T.INT else text

    def _define(self, t: Term) -> str:
        if t.op == "const":
            return _number(t)
        name = f"t{t.id}"
        if _opaque(t):
            self.lines.append(f"(declare-const {name} {SORTS[t.type]})")
        else:
            self.lines.append(f"(define-fun {name} () {SORTS[t.type]} {self._body(t)})")
        return name

    def _anything(self, sort: str) -> str:
        """A value that nobody defined: another one wherever it occurs."""
        self.undefined += 1
        self.lines.append(f"(declare-const u{self.undefined} {SORTS[sort]})")
        return f"u{self.undefined}"

    def _element(self, t: Term) -> str:
        """A tensor at an index that is not known."""
        name = f"|{t.attr} {len(t.args)} {t.type}|"
        sorts = " ".join(["Int"] * len(t.args))
        self.tensors[name] = f"(declare-fun {name} ({sorts}) {SORTS[t.type]})"
        return f"({name} {' '.join(self.name(a, T.INT) for a in t.args)})"

    def _body(self, t: Term) -> str:
        if t.op == "read":
            return self._element(t)
        kind = T.INT if t.type != T.REAL and all(a.type != T.REAL for a in t.args) else T.REAL
        args = [self.name(a, kind) for a in t.args]
        form: Form = BASELINE[t.op]
        return form(self, t, args, kind)


def _opaque(t: Term) -> bool:
    """The terms that become numbers of their own."""
    return t.op in ("scalar", "size", "axis") or isinstance(t.attr, Axis) or (t.op == "read" and _constant(t.args))


def _constant(ts: Iterable[Term]) -> bool:
    return all(t.is_const for t in ts)


def _zero(kind: str) -> str:
    return "0" if kind == T.INT else "0.0"


def _fold(args: Iterable[str], combine: Callable[[str, str], str]) -> str:
    """max(a, b, c) as nested choices, each value named once."""
    first, *rest = args
    for b in rest:
        first = f"(let ((m {first})) {combine('m', b)})"
    return first


# ---- the meanings ----------------------------------------------------------------------------------------------------

Form = Callable[[_Writer, Term, list[str], str], str]  # of arguments that are of one kind, integers or reals


def _applied(head: str) -> Form:
    return lambda w, t, args, kind: f"({head} {' '.join(args)})"


def _divided(head: str, by_symbol: str) -> Form:
    """By a positive number, or by an integer of any sign."""

    def form(w: _Writer, t: Term, args: list[str], kind: str) -> str:
        if t.args[1].is_const and t.args[1].attr > 0:
            return f"({head} {' '.join(args)})"
        if kind != T.INT:
            raise Unsupported(t.op)
        return f"(let ((a {args[0]}) (b {args[1]})) {by_symbol})"

    return form


def _extremum(sign: str) -> Form:
    return lambda w, t, args, kind: _fold(args, lambda a, b: f"(ite ({sign} {a} {b}) {a} {b})")


FUNCTIONS = ("exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tan", "tanh", "erf", "rsqrt", "floor", "ceil", "pow")


@meaning(BASELINE, *FUNCTIONS)
def _function(w: _Writer, t: Term, args: list[str], kind: str) -> str:
    """A function that is declared, with LAWS or without."""
    w.functions[t.op] = len(args)
    return f"({t.op} {' '.join(args)})"


@meaning(BASELINE, "where")
def _choice(w: _Writer, t: Term, args: list[str], kind: str) -> str:
    return f"(ite {' '.join([w.names[t.args[0].id], *(w.name(a, t.type) for a in t.args[1:])])})"


BASELINE.fill({
    "add": _applied("+"), "mul": _applied("*"), "lt": _applied("<"), "le": _applied("<="), "eq": _applied("="),
    "ne": _applied("distinct"), "and": _applied("and"), "or": _applied("or"), "not": _applied("not"),
    "recip": _applied("/ 1.0"), "max": _extremum(">="), "min": _extremum("<="),
    "floordiv": _divided("div", "(ite (> b 0) (div a b) (div (- a) (- b)))"),
    "mod": _divided("mod", "(ite (> b 0) (mod a b) (- (mod (- a) (- b))))"),
    "abs": lambda w, t, args, kind: f"(ite (>= {args[0]} {_zero(kind)}) {args[0]} (- {args[0]}))",
})  # fmt: skip
BASELINE.derive(FOLDS, "written out, or a number of its own")


def _number(t: Term) -> str:
    v = t.attr
    if isinstance(v, bool):
        return str(v).lower()
    if v in (float("inf"), float("-inf")) or v != v:
        raise Unsupported(repr(v))
    exact = Fraction(f"{recover(v)[0]:.6g}") if isinstance(v, float) else Fraction(v)
    size = abs(exact)
    point = ".0" if t.type != T.INT else ""
    text = f"(/ {size.numerator}.0 {size.denominator}.0)" if size.denominator > 1 else f"{size.numerator}{point}"
    return f"(- {text})" if exact < 0 else text
