"""Each meaning of each operation on random numbers, against numpy: a cell of the matrix is checked here, or is in
`UNCHECKED` with a reason."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from trilift.lift.language.case_spec import Spec
from trilift.lift.language.evaluate import evaluate
from trilift.lift.language.infix import Piece, operation
from trilift.lift.language.python_source import python_source
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import FLOAT64
from trilift.lift.terms.extended import EXTENDED, classes_of
from trilift.lift.terms.meanings import DOMAINS
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.ranges import Ranges
from trilift.lift.terms.term import FOLDS, Axis, Term
from trilift.reports.commands import operation_matrix as matrix
from trilift.verify.proof.smt_baseline import FUNCTIONS

INTEGERS = {"floordiv", "mod", "truncdiv", "truncmod", "next_power_of_2", "bitand", "bitor", "bitxor", "shl", "shr",
            "random", "random_bits", "wrap8", "wrap16", "wrap32"}  # fmt: skip
BOOLEANS = {"and", "or", "not"}
SHIFTS, DIVISIONS = {"shl", "shr"}, {"floordiv", "mod", "truncdiv", "truncmod"}
LENGTH = 4  # of a folded axis
I = Axis("i", T.const(LENGTH))  # noqa: E741
Leaf = Callable[[str, str], Term]


@dataclass(frozen=True)
class Sample:
    """An operation on leaves x0, x1 ... and numbers for these; `value` is numpy's."""

    term: Term
    inputs: dict[str, Any]
    value: Any

    def of(self, t: Term) -> Any:
        """Another term at the same numbers."""
        return value(t, self.inputs)


def value(t: Term, inputs: Mapping[str, Any]) -> Any:
    with np.errstate(all="ignore"):
        arrays = {n: np.asarray(x) for n, x in inputs.items()}
        return np.asarray(evaluate(T.rewrite(t, plain), (), arrays, inputs)).item()


def plain(s: Term) -> Term | None:
    """Literals of the normal form as rows of the operation table."""
    match s.op:
        case "positive?":
            return T.make("lt", 0, s.args[0])
        case "zero?":
            return T.make("eq", s.args[0], 0)
        case "holds?":
            return T.where(s.args[0], 1, 0)
    return None


def kinds(op: str, whole: bool) -> list[str]:
    """The types of the arguments; `whole`: integers in place of reals."""
    real = T.INT if whole else T.REAL
    if op in BOOLEANS:
        return [T.BOOL] * (1 if op == "not" else 3)
    if op in INTEGERS or op.startswith("from_bits"):
        return [T.INT] * (2 if OPS[op].arity < 0 else OPS[op].arity)
    if op in ("where", "pick"):
        return [T.BOOL if op == "where" else T.INT, real, real]
    return [real] * (3 if OPS[op].arity < 0 else OPS[op].arity)


def number(op: str, k: int, kind: str, rng: np.random.Generator) -> Any:
    if kind == T.BOOL:
        return bool(rng.integers(0, 2))
    if kind == T.REAL:
        return float(rng.integers(-24, 25)) / 8
    low, high = (0, 2) if op == "pick" and k == 0 else (0, 7) if op in SHIFTS and k == 1 else (-9, 10)
    if op.startswith("wrap"):
        low, high = -(2**40), 2**40
    if op.startswith(("from_bits", "random")):
        low, high = 0, 100
    n = int(rng.integers(low, high))
    return n or 3 if op in DIVISIONS and k == 1 else n


def read(name: str, kind: str) -> Term:
    return T.read(name, (), kind)


def samples(op: str, whole: bool = False, leaf: Leaf = read, count: int = 8, finite: bool = True) -> Iterator[Sample]:
    """Samples with a finite value; at least three."""
    rng, found = np.random.default_rng(len(op)), 0
    for _ in range(200):
        s = _fold(op, rng, whole) if op in FOLDS else _row(op, rng, whole, leaf)
        if not finite or math.isfinite(s.value):
            found += 1
            yield s
        if found == count:
            return
    assert found >= 3, op


def _row(op: str, rng: np.random.Generator, whole: bool, leaf: Leaf) -> Sample:
    types = kinds(op, whole)
    numbers = [number(op, k, kind, rng) for k, kind in enumerate(types)]
    t = T.make(op, *(leaf(f"x{k}", kind) for k, kind in enumerate(types)))
    assert t.op == op
    return Sample(t, {f"x{k}": v for k, v in enumerate(numbers)}, numpy(op, *numbers))


def numpy(op: str, *numbers: Any) -> Any:
    """nan where lgamma has a pole."""
    if op == "lgamma" and numbers[0] <= 0 and float(numbers[0]).is_integer():
        return math.nan
    with np.errstate(all="ignore"):
        return np.asarray(FLOAT64.apply(op, *map(np.asarray, numbers))).item()


def _fold(op: str, rng: np.random.Generator, whole: bool) -> Sample:
    kind = T.INT if whole else T.REAL
    x = np.array([number("add", 0, kind, rng) for _ in range(LENGTH)])
    return Sample(T.fold(op, I, T.read("x0", [T.axis(I)], kind)), {"x0": x}, np.asarray(FLOAT64.fold(op, x, 0)).item())


def close(a: Any, b: Any) -> bool:
    return bool(np.isclose(float(a), float(b), rtol=1e-6, atol=1e-9))


# ---- terms -----------------------------------------------------------------------------------------------------------


def construction(op: str) -> None:
    """With numbers, and with one argument twice."""
    for s in samples(op):
        leaves = list(s.term.args)
        for k in range(len(leaves)):
            mixed = [T.const(s.inputs[f"x{k}"]) if j == k else a for j, a in enumerate(leaves)]
            assert close(s.of(T.make(op, *mixed)), s.value)
            twice = [leaves[k] if a.type == leaves[k].type else a for a in leaves]
            names = [a.attr for a in twice]
            assert np.isclose(s.of(T.make(op, *twice)), numpy(op, *(s.inputs[n] for n in names)), equal_nan=True)


def limits(found: list[Sample]) -> dict[str, tuple[Any, Any]]:
    return {
        n: (min(np.min(s.inputs[n]) for s in found), max(np.max(s.inputs[n]) for s in found)) for n in found[0].inputs
    }


def in_range(op: str) -> None:
    found = list(samples(op, whole=True))
    low, high = Ranges({n: (int(a), int(b)) for n, (a, b) in limits(found).items()}).of(found[0].term)
    assert all(low <= s.value <= high for s in found)


def enclosure(found: list[Sample]) -> Any:
    from trilift.verify.normal_form.enclosure import Enclosure

    specs = {n: Spec("f64", (), T.const(float(a)), T.const(float(b))) for n, (a, b) in limits(found).items()
             if not isinstance(found[0].inputs[n], bool)}  # fmt: skip
    return Enclosure(specs, {})


def in_interval(op: str) -> None:
    found = list(samples(op))
    low, high = enclosure(found).of(found[0].term)
    assert all(low <= s.value <= high for s in found)


def defined(op: str) -> None:
    """Where an operation is said to be defined numpy has a number, and somewhere it is."""
    from trilift.verify.runs.definedness import DEFINED

    found = [s for s in samples(op, finite=False) if s.of(DEFINED[op](*s.term.args))]
    assert found and all(math.isfinite(s.value) for s in found)


def normal_form(op: str) -> None:
    from trilift.verify.integers.solver import Solver
    from trilift.verify.normal_form.algebra import Algebra, Split

    for s in samples(op, whole=op in INTEGERS):
        facts: set[Term] = set()
        for _ in range(20):
            a = Algebra(Solver())
            try:
                assert close(s.of(a.normal(s.term, a.context(facts)).term), s.value)
                break
            except Split as split:
                facts.add(split.literal if s.of(split.literal) else T.make("not", split.literal))
        else:
            raise AssertionError(f"{op} is split without end")


# ---- texts -----------------------------------------------------------------------------------------------------------


def leaf_text(t: Term) -> Piece:
    return Piece(str(t.attr))


def infix(op: str) -> None:
    for s in samples(op):
        arrays = {n: np.asarray(x) for n, x in s.inputs.items()}
        assert close(eval(operation(s.term, leaf_text).text, {}, arrays), s.value)


def python(op: str) -> None:
    for s in samples(op, whole=op not in ("sqrt", "recip", "pow"), leaf=T.scalar):
        assert close(eval(python_source(s.term), {}, s.inputs), s.value)


def program_text(op: str) -> None:
    from trilift.verify.wording.program_text import text

    for s in samples(op, leaf=T.scalar):
        arrays = {n: np.asarray(x) for n, x in s.inputs.items()}
        assert close(eval(text(s.term).replace(" = ", " == "), {}, arrays), s.value)


def folded(template: str, names: list[str]) -> str:
    from trilift.lift.printers.torch_source import _folded

    return _folded(template, names)


def torch_source(op: str) -> None:
    import torch

    from trilift.lift.printers.torch_source import TORCH

    for s in samples(op):
        plain = op == "next_power_of_2"
        names = {n: x if plain else torch.tensor(x) for n, x in s.inputs.items()}
        if op in FOLDS:
            text = TORCH[op].format("x0", dim=0)
        else:
            text = folded(str(OPS[op].torch), [f"x{k}" for k in range(len(s.term.args))])
        got = eval(text, {"torch": torch}, names)
        assert close(got if plain else got.item(), s.value)


def torch_numbers(op: str) -> None:
    from trilift.lift.printers.torch_source import NUMBERS

    for s in samples(op):
        text = folded(NUMBERS[op], [f"x{k}" for k in range(len(s.term.args))])
        assert close(eval(text, vars(math) | {"abs": abs}, s.inputs), s.value)


def triton_source(op: str) -> None:
    """With numpy in the place of Triton, and every name one of Triton's."""
    import triton.language as tl
    from triton.language.extra import libdevice

    from trilift.superopt.program.template import expression

    stand_in = SimpleNamespace(**{n: getattr(np, n, None) for n in ("exp", "exp2", "log", "log2", "sqrt", "sin", "cos",
                               "floor", "ceil", "abs", "where", "maximum", "minimum")})  # fmt: skip
    stand_in.erf = np.vectorize(math.erf)
    assert all(hasattr(tl, n) for n in vars(stand_in)) and hasattr(libdevice, "tanh")
    spaces = {"tl": stand_in, "libdevice": SimpleNamespace(tanh=np.tanh)}
    for s in samples(op):
        text = expression(s.term, lambda t: leaf_text(t) if t.op == "read" else None, real=True).text
        assert close(eval(text, spaces, {n: np.asarray(x) for n, x in s.inputs.items()}), s.value)


# ---- integers --------------------------------------------------------------------------------------------------------


def integers(op: str) -> Iterator[Sample]:
    return samples(op, whole=True)


def core_value(s: Sample, t: Term) -> Any:
    from trilift.verify.integers.conditions import core
    from trilift.verify.integers.conditions import value as of_core

    return of_core(core(t), {a: s.inputs[str(a.attr)] for a in s.term.args})


def in_core(op: str) -> None:
    """Bits of two symbols are a symbol: the second is a number."""
    for s in integers(op):
        bits = op in SHIFTS or op.startswith("bit")
        assert core_value(s, T.make(op, s.term.args[0], s.inputs["x1"]) if bits else s.term) == s.value


def rational(op: str) -> None:
    from trilift.verify.refutation.ties import RATIONAL

    number = lambda x: bool(x) if op in BOOLEANS else Fraction(float(x))  # noqa: E731
    for s in samples(op):
        exact = RATIONAL[op](*map(number, s.inputs.values()))
        assert exact is None if op == "recip" and not s.inputs["x0"] else math.isclose(exact, s.value, rel_tol=1e-12)


def linear_form(op: str) -> None:
    """What is said of a number of its own holds at its value, and not at the next (of powers of two, twice it)."""
    from trilift.verify.integers import linear_forms as L
    from trilift.verify.integers.conditions import core

    def holds(item: Any, s: Sample, off: int) -> bool:
        if isinstance(item, L.Clause):
            return any(all(holds(i, s, off) for i in alternative) for alternative in item.alternatives)
        of = lambda i: int(core_value(s, T.TERMS[i])) + off * (i == core(s.term).id)  # noqa: E731
        total = item.polynomial.constant + sum(
            c * math.prod(map(of, L.factors(m))) for m, c in item.polynomial.terms.items()
        )
        return bool(total == 0 if item.equal else total >= 0)

    for s in integers(op):
        t = core(s.term)
        known = [*L.definition(t.id), *(d for i in L.definition(t.id) for a in L.atoms_of(i) for d in L.definition(a))]
        assert known and all(holds(d, s, 0) for d in known)
        assert not all(holds(d, s, max(int(s.value), 1) if op == "next_power_of_2" else 1) for d in known)


def reduction(op: str) -> None:
    from trilift.verify.integers.quotient import reduce

    for s in integers(op):
        assert s.of(reduce(s.term, lambda goal, s=s: bool(s.of(goal)))) == s.value


def question(s: Sample, off: int) -> tuple[list[Term], Term]:
    """The numbers of the leaves as facts, and the value, or a wrong one, as goal."""
    facts = [a if s.inputs[a.attr] is True else T.make("not", a) if s.inputs[a.attr] is False
             else T.make("eq", a, s.inputs[a.attr]) for a in s.term.args]  # fmt: skip
    if s.term.type == T.BOOL:
        return facts, s.term if bool(s.value) != bool(off) else T.make("not", s.term)
    return facts, T.make("eq", s.term, int(s.value) + off)


def in_z3(op: str) -> None:
    from trilift.lift.runtime.budget import BUDGETS
    from trilift.verify.integers.conditions import question as literals
    from trilift.verify.integers.solver import decided_by_z3

    for s in integers(op):
        assert decided_by_z3(literals(*question(s, 0)), BUDGETS.solver.resources) is True
        assert decided_by_z3(literals(*question(s, 1)), BUDGETS.solver.resources) is False


def smt_lib(op: str) -> None:
    from trilift.verify.integers.smt import smt_text
    from trilift.verify.integers.solver import contradiction

    for s in integers(op):
        assert contradiction(smt_text(*question(s, 0)), 10.0)
        assert not contradiction(smt_text(*question(s, 1)), 10.0)


def smt_baseline(op: str) -> None:
    from trilift.verify.integers.solver import contradiction
    from trilift.verify.proof.smt_baseline import implication

    for s in samples(op, whole=op in DIVISIONS, leaf=T.scalar):
        if float(f"{s.value:.6g}") != s.value and op != "recip":
            continue  # it writes six digits
        facts, _ = question(s, 0)
        for off in (0, 1):
            goal = T.make("eq", s.term, s.value + off) if s.term.type != T.BOOL else question(s, off)[1]
            if op == "recip":
                goal = T.make("eq", T.mul(s.value + off, s.inputs["x0"]), T.mul(s.inputs["x0"], s.term))
            assert contradiction(implication(facts, goal), 10.0) == (not off)


def order_value(op: str) -> None:
    from trilift.verify.execution.combiners import ORDER_VALUE

    for s in integers(op):
        assert int(ORDER_VALUE[op](*s.inputs.values())) == int(s.value)


# ---- fields ----------------------------------------------------------------------------------------------------------


def field_value(op: str) -> None:
    """Constants, and identities of random elements."""
    from trilift.verify.fields.field import Field
    from trilift.verify.fields.pairs import LOST, Modes
    from trilift.verify.fields.rational_constants import NoRoot

    d = Field(np.random.default_rng(5), Modes(logs=op.startswith("log")))
    for s in samples(op):
        xs = [d.reals(np.asarray(x, np.float64)) for x in s.inputs.values()]
        try:
            got = d.apply(op, *xs)
        except NoRoot:
            continue  # in this field
        if got.dtype.kind != "V":
            assert got == s.value
        elif not np.isnan(got["v"]):
            assert close(got["v"], s.value)
            want = d.reals(np.asarray(s.value))
            assert all(got[k] in (want[k], LOST) for k in "pq") or not (8 * s.value).is_integer()
    if op in IDENTITIES:
        a, b = d.draw((4,)), d.draw((4,))
        left, right = IDENTITIES[op](
            SimpleNamespace(d=d, a=a, b=b, of=d.apply, number=lambda x: d.reals(np.full(4, x)))
        )
        parts = [k for k in "pq" if (left[k] >= 0).all() and (right[k] >= 0).all()]
        assert parts and all((left[k] == right[k]).all() for k in parts)
    else:
        assert OPS[op].type in ("int", "bool"), "no identity"


IDENTITIES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "add": lambda f: (f.of("sub", f.of("add", f.a, f.b), f.b), f.a),
    "sub": lambda f: (f.of("add", f.of("sub", f.a, f.b), f.b), f.a),
    "mul": lambda f: (f.of("div", f.of("mul", f.a, f.b), f.b), f.a),
    "div": lambda f: (f.of("mul", f.of("div", f.a, f.b), f.b), f.a),
    "neg": lambda f: (f.of("add", f.a, f.of("neg", f.a)), f.number(0.0)),
    "recip": lambda f: (f.of("mul", f.a, f.of("recip", f.a)), f.number(1.0)),
    "exp": lambda f: (f.of("exp", f.of("add", f.a, f.b)), f.of("mul", f.of("exp", f.a), f.of("exp", f.b))),
    "exp2": lambda f: (f.of("exp2", f.of("add", f.a, f.b)), f.of("mul", f.of("exp2", f.a), f.of("exp2", f.b))),
    "exp10": lambda f: (f.of("exp10", f.of("add", f.a, f.b)), f.of("mul", f.of("exp10", f.a), f.of("exp10", f.b))),
    "expm1": lambda f: (f.of("add", f.of("expm1", f.a), f.number(1.0)), f.of("exp", f.a)),
    "log": lambda f: (f.of("log", f.of("exp", f.a)), f.a),
    "log2": lambda f: (f.of("log2", f.of("exp2", f.a)), f.a),
    "log10": lambda f: (f.of("log10", f.of("exp10", f.a)), f.a),
    "log1p": lambda f: (f.of("log1p", f.of("expm1", f.a)), f.a),
    "sqrt": lambda f: (f.of("sqrt", f.number(6.25)), f.number(2.5)),
    "rsqrt": lambda f: (f.of("mul", f.of("rsqrt", f.a), f.of("sqrt", f.a)), f.number(1.0)),
    "pow": lambda f: (f.of("pow", f.a, f.number(3.0)), f.of("mul", f.a, f.of("mul", f.a, f.a))),
    "tanh": lambda f: (f.of("mul", f.of("tanh", f.a), f.of("add", f.of("exp", f.of("add", f.a, f.a)), f.number(1.0))),
                       f.of("expm1", f.of("add", f.a, f.a))),
    "tan": lambda f: (f.of("mul", f.of("tan", f.a), f.of("cos", f.a)), f.of("sin", f.a)),
    "erfc": lambda f: (f.of("add", f.of("erfc", f.a), f.of("erf", f.a)), f.number(1.0)),
    "hypot": lambda f: (f.of("hypot", f.a, f.b),
                        f.of("sqrt", f.of("add", f.of("mul", f.a, f.a), f.of("mul", f.b, f.b)))),
    "max": lambda f: (f.of("max", f.a, f.of("max", f.a, f.b)), f.of("max", f.b, f.a, f.number(-math.inf))),
    "min": lambda f: (f.of("min", f.a, f.of("min", f.a, f.b)), f.of("min", f.b, f.a, f.number(math.inf))),
}  # fmt: skip


def field_symmetry(op: str) -> None:
    from trilift.verify.fields.op_rows import SYMMETRY

    for s in samples(op):
        turned = numpy(op, -s.inputs["x0"])
        assert close(turned, s.value if SYMMETRY[op] == "even" else -s.value)


def field_error(op: str) -> None:
    """A value that is taken for known is the value, and no degree is negative."""
    from trilift.verify.fields.error_bound import Weights
    from trilift.verify.fields.pairs import Modes

    d = Weights(Modes())
    numbers = [*(list(s.inputs.values()) for s in samples(op)), [0.0] * len(kinds(op, False))]
    for xs in (xs for xs in numbers if math.isfinite(numpy(op, *xs))):
        got = d.apply(op, *(d.reals(np.asarray([x], np.float64)) for x in xs))[0]
        assert np.isnan(got["v"]) or close(got["v"], numpy(op, *xs))
        assert all(got[k] >= 0 for k in "nmabhgects")


# ---- properties ------------------------------------------------------------------------------------------------------


def terms_of(op: str) -> Iterator[Sample]:
    """Also with a number in place of the last argument."""
    for s in samples(op):
        yield s
        if op == "pow":
            for k in (2, 3):
                yield Sample(T.make("pow", s.term.args[0], k), s.inputs, s.inputs["x0"] ** k)


def changes(s: Sample) -> Iterator[set[str]]:
    names = [str(a.attr) for a in s.term.args if a.op == "read"] if s.term.op not in FOLDS else ["x0"]
    moving = [n for n in names if isinstance(np.asarray(s.inputs[n]).flat[0], (float, np.floating))]
    yield from ({n} for n in moving)
    yield set(moving)


def changed(s: Sample, names: set[str], how: Callable[[Any], Any]) -> Any:
    return value(s.term, {n: how(np.asarray(x)) if n in names else x for n, x in s.inputs.items()})


def way(name: str, holds: Callable[[Sample, set[str], Any], bool]) -> Callable[[str], None]:
    """Whatever the rules say is so, and they say something."""

    def check(op: str) -> None:
        from trilift.verify.properties.homogeneity import found

        said = [(s, names, k) for s in terms_of(op) for names in changes(s)
                if (k := found(name, s.term, names)) is not None]  # fmt: skip
        assert said and all(holds(*one) for one in said)

    return check


def scales(s: Sample, names: set[str], k: Any) -> bool:
    got = changed(s, names, lambda x: 2 * x)
    return not math.isfinite(got) or close(got, 2.0 ** float(k) * s.value)


def reflects(s: Sample, names: set[str], k: Any) -> bool:
    got = changed(s, names, lambda x: -x)
    return not math.isfinite(got) or close(got, k * s.value)


def adds(s: Sample, names: set[str], k: Any) -> bool:
    shift = np.array([0.5, -1.25, 2.0, 0.75])
    y = lambda x: shift if x.ndim else shift[0]  # noqa: E731
    both, other = changed(s, names, lambda x: x + y(x)), changed(s, names, y)
    return close(both, s.value + other) if k else close(other, s.value)


def slope(op: str) -> None:
    from trilift.verify.properties import homogeneity

    found = [s for s in samples(op, count=30) if op not in ("recip", "mul") or all(x > 0 for x in s.inputs.values())]
    said = [(s, names, k) for s in found for names in changes(s)
            if (k := homogeneity.slope(s.term, names, enclosure(found))) is not None]  # fmt: skip
    assert said
    for s, names, k in said:
        got = changed(s, names, lambda x: x + 0.25)
        assert not math.isfinite(got) or k * (got - s.value) >= (0 if k else -math.inf)


def magnitude(op: str) -> None:
    """In float32 on rounded arguments, within the bound."""
    from trilift.verify.properties.magnitudes import COUNT, Magnitudes, times

    exact = op == "lgamma"
    for s in samples(op):
        thirds = {n: x if isinstance(x, (bool, int)) else np.asarray(x, np.float64) for n, x in s.inputs.items()}
        t = s.term if exact else T.rewrite(s.term, lambda r: T.mul(1 / 3, r) if r.op == "read" and r.type == T.REAL
                                           else None)  # fmt: skip
        m = Magnitudes(SimpleNamespace(tensors={}, scalars={}), 2.0**-24)
        bound = m.bound(t)
        count = T.make("max", times(2, bound.roundings), 1)
        want = value(t, thirds)
        allowed = value(T.rewrite(bound.magnitude, lambda r, c=count: c if r is COUNT else None), thirds)
        if math.isfinite(want) and math.isfinite(allowed):
            got = narrow(op, [x if exact or isinstance(x, (bool, int)) else np.float32(1 / 3) * np.float32(x)
                              for x in thirds.values()])  # fmt: skip
            assert abs(got - want) <= 2.0**-24 * value(count, {}) * allowed + 1e-12


def narrow(op: str, xs: list[Any]) -> float:
    """In float32."""
    xs = [np.asarray(x, np.float32) if np.asarray(x).dtype.kind == "f" else np.asarray(x) for x in xs]
    with np.errstate(all="ignore"):
        if op in FOLDS:
            return float(np.asarray(FLOAT64.fold(op, xs[0], 0)).item())
        return float(np.float32(np.asarray(FLOAT64.apply(op, *xs)).item()))


def sign(op: str) -> None:
    """Of arguments that are not negative; what is seen of them is so."""
    from trilift.verify.properties.magnitudes import Magnitudes

    seen = Magnitudes(
        SimpleNamespace(tensors={n: Spec("f64", (), T.const(0)) for n in ("x0", "x1", "x2")}, scalars={}), 1
    )
    found = [s for s in samples(op, count=40) if all(np.all(x >= 0) for x in s.inputs.values())]
    assert found and all(s.value >= 0 for s in found) and seen.nonnegative(found[0].term)
    unknown = Magnitudes(SimpleNamespace(tensors={}, scalars={}), 1)
    assert all(s.value >= 0 for s in samples(op, count=40) if unknown.nonnegative(s.term))


def exactness(op: str) -> None:
    """Of eighths float32 gives what float64 gives."""
    for s in samples(op):
        assert narrow(op, list(s.inputs.values())) == np.float32(s.value)


def extended(op: str) -> None:
    """The class of the value at every place, infinities and NaN included, is one that the row says."""
    arity = 2 if OPS[op].arity < 0 else OPS[op].arity
    places = (-2.0, -0.4, 0.0, 0.4, 1.0, 3.0, -math.inf, math.inf, math.nan)
    indices = (False, True) if op == "where" else (0, 1) if op == "pick" else (0, 1, 3) if op == "random" else places
    options = [indices if k == 0 or op == "random" else places for k in range(max(arity, 3 if op == "pick" else 0))]
    for xs in itertools.product(*options):
        with np.errstate(all="ignore"):
            got = classes_of(float(np.asarray(FLOAT64.apply(op, *map(np.asarray, xs))).item()))
        told = EXTENDED[op](*map(classes_of, map(float, xs)))
        assert got & told, (xs, got, told)


CHECKS: dict[str, Callable[[str], None]] = {
    "construction": construction, "range": in_range, "infix text": infix, "Python source": python,
    "PyTorch source": torch_source, "PyTorch numbers": torch_numbers, "integer core": in_core,
    "integer value": in_core, "rational value": rational,
    "linear form": linear_form, "reduction": reduction, "z3": in_z3, "SMT-LIB": smt_lib,
    "SMT baseline": smt_baseline,
    "normal form": normal_form, "interval": in_interval, "order value": order_value, "program text": program_text,
    "definedness": defined, "extended reals": extended,
    "field": field_value, "field symmetry": field_symmetry, "field error": field_error,
    "degree": way("degree", scales), "parity": way("parity", reflects), "linearity": way("linearity", adds),
    "slope": slope, "magnitude": magnitude, "exactness": exactness, "sign": sign,
    "Triton source": triton_source,
}  # fmt: skip
UNCHECKED: dict[tuple[str, str], str] = {
    ("LaTeX", "*"): "is set by TeX, not executed; tests/lift/test_printers.py compares texts",
    ("rational value", "pow"): "has a value for whole exponents alone; tests/verify/test_ties.py",
    **{("SMT baseline", f): "is a function with laws or without, no number" for f in FUNCTIONS},
    **{("normal form", f): "binds variables that only guards restrict; tests/verify/test_folds.py" for f in FOLDS},
}
CELLS = [(c.domain, op) for op in matrix.operations() for c in matrix.cells(op) if c.state == "row"]


@pytest.mark.parametrize("name", list(matrix.domains()))
def test_every_meaning_agrees_with_numpy(name: str) -> None:
    wrong = {}
    for op in (op for d, op in CELLS if d == name and not {(name, op), (name, "*")} & UNCHECKED.keys()):
        try:
            CHECKS[name](op)
        except Exception as e:
            wrong[op] = f"{type(e).__name__}: {e}"
    assert wrong == {}


def test_every_cell_is_checked_or_says_why_not() -> None:
    for name, op in CELLS:
        excused = {(name, op), (name, "*")} & UNCHECKED.keys()
        assert (name in CHECKS) != bool(excused) or (name, op) in excused, (name, op)
    assert all(UNCHECKED.values()) and {n for n, _ in UNCHECKED} | CHECKS.keys() == DOMAINS.keys()


@pytest.mark.parametrize("n", [-70, -5, -1, 0, 1, 2, 3, 17, 64])
def test_a_power_of_two_is_tritons(n: int) -> None:
    """Of numbers that are not positive too, where triton.next_power_of_2 gives 0."""
    import triton

    from trilift.lift.language.python_source import python_source
    from trilift.verify.integers.conditions import INTEGER, core
    from trilift.verify.integers.solver import Solver, decided_by_z3

    N, right = T.size("N"), triton.next_power_of_2(n)
    power = T.make("next_power_of_2", N)
    row = OPS["next_power_of_2"]
    assert (row.on_numbers(n), row.numpy(np.array([n]))[0], INTEGER["next_power_of_2"](n)) == (right,) * 3
    assert eval(python_source(power), {"N": n}) == eval(str(row.torch).format("N"), {"N": n}) == right
    here, equal = T.make("eq", N, n), T.make("eq", power, right)
    assert Solver().implies({here}, equal)
    assert decided_by_z3([core(here), core(T.make("not", equal))], 10_000) is True
    assert decided_by_z3([core(here), core(equal)], 10_000) is False
