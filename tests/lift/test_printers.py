"""Text, LaTeX and PyTorch source: golden texts, text read back, and generated functions run."""

from __future__ import annotations

import ast
import inspect
import random
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
import torch
from formulas import KERNELS, K, M, N, closed, f, formula, read, terms, total
from hypothesis import given, settings

from trilift.lift.errors import Unsupported
from trilift.lift.language import sample
from trilift.lift.language.evaluate import evaluate
from trilift.lift.language.parse import formula as parse
from trilift.lift.language.python_source import python_source
from trilift.lift.printers.all import index_form, latex, text
from trilift.lift.printers.all import torch as torch_source
from trilift.lift.runtime.session import Session
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.lift.terms.ops import OPS
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis, Term

SHAPES = {"x": (M, N), "y": (M, N), "z": (N, M), "w": (N,), "s": (M,), "u": (K,), "h": (M, K), "g": (K, N)}
QUICK = settings(max_examples=150, deadline=None, derandomize=True)


def run(f: Formula, numbers: dict, arrays: dict) -> np.ndarray:
    """The printed PyTorch function on these inputs."""
    scope: dict = {}
    exec(torch_source(f, SHAPES if set(arrays) <= set(SHAPES) and _fits(arrays, numbers) else None), scope)
    given = {a: torch.tensor(x) for a, x in arrays.items()} | numbers
    function = scope[f.name]
    return np.asarray(function(**{name: given[name] for name in inspect.signature(function).parameters}))


def _fits(arrays: dict, numbers: dict) -> bool:
    return all(
        a.ndim == len(SHAPES[name])
        and all(numbers.get(s.attr) == length for s, length in zip(SHAPES[name], a.shape, strict=True))
        for name, a in arrays.items()
    )


def assert_torch_agrees(f: Formula) -> None:
    for seed in (0, 1):
        numbers = sample.dims([f.term], f.axes, seed)
        arrays = sample.inputs([f.term], numbers, seed)
        expected = evaluate(f.term, f.axes, arrays, numbers)
        got = run(f, numbers, arrays)
        assert got.shape == expected.shape, torch_source(f)
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9, err_msg=torch_source(f))


def assert_reads_back(f: Formula) -> None:
    types = {s.attr: s.type for s in f.term.walk() if s.op == "read" and s.type != T.REAL}
    shapes = {
        a: dims if None not in dims else tuple(T.size(f"{a.upper()}{p}") for p in range(len(dims)))
        for a, dims in _shapes(f).items()
    }
    for show in (text, index_form):
        printed = show(f, shapes)
        again = parse(printed, shapes, types, axes=None if printed.startswith("out") else f.axes)
        assert show(again, shapes) == printed
        assert sample.differ(f.term, again.term, f.axes, seeds=1) is None, printed


def _shapes(f: Formula) -> dict:
    from trilift.lift.printers.text import input_shapes

    return input_shapes(f.term)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_print_to_functions_that_run(name):
    assert_torch_agrees(formula(KERNELS[name][0]))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_read_back(name):
    assert_reads_back(formula(KERNELS[name][0]))


@QUICK
@given(terms())
def test_random_formulas_print_to_functions_that_run(t):
    assert_torch_agrees(closed(t))


@QUICK
@given(terms())
def test_random_formulas_read_back(t):
    assert_reads_back(closed(t))


@QUICK
@given(terms())
def test_random_formulas_have_latex(t):
    out = latex(closed(t))
    assert out.count("{") == out.count("}") and out.count(r"\left") == out.count(r"\right")


# ---- the order of operands -------------------------------------------------------------------------------------------


def axes_of_sizes() -> tuple[Axis, Axis, Axis]:
    return Axis("i", T.size("PI")), Axis("j", T.size("PJ")), Axis("l", T.size("PL"))


def parts(name: str, first: Sequence[int]) -> Formula:
    """The formula of this name, whose parts are made in the order `first`."""
    i, j, l = axes_of_sizes()  # noqa: E741
    one = lambda x, *over: read(x, *over)  # noqa: E731
    over = Axis("l", T.size("PJ"))  # another axis of the same name
    wide = [lambda: one("pa", i, j), lambda: one("pb", i, j), lambda: one("pc", j)]
    made = {
        "contraction": [lambda: one("pa", i, l), lambda: one("pb", l, j), lambda: one("pc", l)],
        "maximum": [*wide, lambda: T.const(3.5)],
        "condition": wide,
        "sizes": [lambda: T.size("PL") + 9, lambda: T.size("PI") * 2, lambda: T.size("PJ") + 5],
        "extents": [lambda: total(l, f("exp", T.axis(l))), lambda: total(over, f("exp", T.axis(over))), wide[0]],
    }[name]
    ts = {k: made[k]() for k in first}
    a, b, *_ = ts = [ts[k] for k in sorted(ts)]
    term = {
        "contraction": lambda: total(l, T.mul(*ts)),
        "maximum": lambda: f("max", *ts),
        "condition": lambda: T.where(f("and", f("lt", a, b), f("ne", b, ts[2]), f("lt", ts[2], 7.5)), a, 0),
        "sizes": lambda: read("pa", i, j) * f("min", *ts),
        "extents": lambda: T.mul(*ts),
    }[name]()
    return Formula("out", (i, j), term, "f32")


def printed(name: str, first: Sequence[int]) -> list[str]:
    """The formula by every printer."""
    with Session():
        made = parts(name, first)
        numbers = [python_source(s) for s in made.term.walk() if s.op == "min"]
        return [*(show(made) for show in (text, index_form, torch_source, latex)), *numbers]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "count"), [(n, 3) for n in ("contraction", "condition", "sizes", "extents")] + [("maximum", 4)]
)
def test_age_of_operands_does_not_show(name, count):
    known = printed(name, range(count))
    assert all(printed(name, first) == known for first in permutations(range(count)))


@pytest.mark.smoke
@pytest.mark.parametrize("op", ["truncdiv", "next_power_of_2"])
def test_python_of_sizes_keeps_sums_and_shifts_together(op):
    n, d = T.size("N"), T.size("D")
    for a in (T.add(n, 3), T.make("shl", n, T.const(2)), T.sub(n, T.mul(2, d))):
        t = T.make(op, a, d) if op == "truncdiv" else T.make(op, a)
        for numbers in ({"N": 5, "D": 4}, {"N": 3, "D": 7}):
            assert eval(python_source(t), numbers) == value(t, numbers)


# ---- parentheses -----------------------------------------------------------------------------------------------------

LINES, WORDS = Axis("m", M), Axis("n", N)
TYPES = {"p8": np.int8, "q8": np.uint8, "p16": np.int16, "p32": np.int32}
OVER = {"p8": (LINES, WORDS), "q8": (WORDS,), "p16": (LINES, WORDS), "p32": (LINES,), "half": (LINES, WORDS)}
BITS = ("bitand", "bitor", "bitxor")
ROUNDED = ("trunc", "floor", "ceil", "round")
DIVISIONS = ("floordiv", "mod", "truncdiv", "truncmod")
TRUTHS = ("eq", "ne", "lt", "le", "and", "or", "not")
ON_INTEGERS = ("add", "mul", "max", "min", "abs", "sign", "where", "next_power_of_2", "shl", "shr", "wrap8", "wrap16",
               "wrap32", *BITS, *DIVISIONS, *TRUTHS)  # fmt: skip
ON_REALS = ("cbrt", "pow", "recip", "sqrt", "exp", "sin", "atan2", "erf", "fmod", "signbit", "given", *ROUNDED)


def op(name: str, *args: T.TermLike) -> Term:
    """The operation as the interpreter makes it, on terms."""
    return OPS[name].on_terms(*args)


def element(name: str) -> Term:
    """An element of an input by the axes that it has."""
    return read(name, *OVER[name], of_type=T.INT if name in TYPES else T.REAL)


class Mixed:
    """Random terms of integers of all widths, truth values and reals, in which every operation has a value."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def integer(self, depth: int) -> Term:
        """A whole number."""
        if depth == 0:
            leaves = [*map(element, TYPES), *map(element, TYPES), T.size("M"), self.number(), self.rounded()]
            return self.rng.choice(leaves)
        x, y = self.integer(depth - 1), self.integer(self.rng.randrange(depth))
        match self.rng.randrange(8):
            case 0:
                return T.add(T.mul(self.rng.choice((1, -1, 3)), x), T.mul(self.rng.choice((1, -1)), y))
            case 1:
                return T.mul(x, self.rng.choice((-1, 5, y)))
            case 2:
                return T.where(self.truth(1), x, y)
            case 3:
                return self.divided(x, y)
            case 4:
                return op(self.rng.choice(("wrap8", "wrap16", "wrap32")), x)
            case 5:
                return op(self.rng.choice(("max", "min")), x, y) if depth > 1 else self.of_one(x)
            case 6:
                return op(self.rng.choice(("shl", "shr")), x, self.rng.choice((1, 3, op("bitand", y, 7))))
        return op(self.rng.choice(BITS), x, self.rng.choice((y, y, self.number())))

    def number(self) -> Term:
        return T.const(self.rng.choice((-1, -128, 2, 7, 255, 1000)))

    def of_one(self, x: Term) -> Term:
        power = op("next_power_of_2", op("wrap16", x))
        return self.rng.choice((op("abs", x), op("sign", x), power))

    def divided(self, x: Term, y: Term) -> Term:
        """A quotient or remainder of an element, by what is not 0."""
        y = T.where(op("eq", y, 0), 1, y) if T.reads(y) else T.const(7)
        return op(self.rng.choice(DIVISIONS), x if T.reads(x) else element("p16"), y)

    def rounded(self) -> Term:
        """A real that is rounded, as an operand of bits."""
        near = op("max", op("min", 3 * element("half"), 99), -99)
        return op(self.rng.choice(BITS), op("trunc", near), self.number())

    def truth(self, depth: int) -> Term:
        """A truth value."""
        pick = self.rng.randrange(5)
        if depth and pick < 2:
            return op(self.rng.choice(("and", "or", "eq", "ne")), self.truth(depth - 1), self.truth(depth - 1))
        if depth and pick == 2:
            return op("not", self.truth(depth - 1))
        if pick == 3:
            return op("signbit", element("half"))
        return op(self.rng.choice(("eq", "ne", "lt", "le")), self.integer(1), self.integer(1))

    def real(self, depth: int) -> Term:
        """A real; functions are of what they are defined and steady on."""
        if depth == 0:
            return self.rng.choice((element("half"), op("given", element("half")), self.integer(2)))
        x, y = self.real(depth - 1), self.real(self.rng.randrange(depth))
        positive, small = 1 + op("abs", x), op("tanh", x)
        made = (
            lambda: x + self.rng.choice((1, -1, 0.5)) * y,
            lambda: x * small,
            lambda: y / positive,
            lambda: op("pow", op("pow", positive, 0.5), op("tanh", y)),
            lambda: y / op("cbrt", 2 + small),
            lambda: T.where(self.truth(1), x, y),
            lambda: op(self.rng.choice(("sin", "exp", "erf")), small),
            lambda: op("atan2", small, positive) - op("sqrt", positive),
            lambda: op(self.rng.choice(ROUNDED), element("half") * 3) * y,
            lambda: op("fmod", element("half"), 1.5) - y,
        )
        return self.rng.choice(made)()


def mixed(seed: int) -> Term:
    """Two of three are integers, one in seven a truth value."""
    draw = Mixed(seed)
    return draw.truth(3) if seed % 7 == 0 else draw.real(3) if seed % 3 == 0 else draw.integer(4)


def arrays_at_edges(seed: int, shape: tuple[int, int]) -> dict[str, np.ndarray]:
    """Inputs of which half the elements are the least and largest of their type, and those about 0."""
    draw = np.random.default_rng(seed)
    out = {"half": draw.integers(-80, 80, shape) / 2}
    for name, kind in TYPES.items():
        dims = tuple({LINES: shape[0], WORDS: shape[1]}[a] for a in OVER[name])
        edges = [np.iinfo(kind).min, np.iinfo(kind).min + 1, 0, 1, np.iinfo(kind).max - 1, np.iinfo(kind).max]
        anywhere = draw.integers(edges[0], edges[-1], dims, kind, endpoint=True)
        out[name] = np.where(draw.random(dims) < 0.5, draw.choice(np.array(edges, kind), dims), anywhere)
    return out


def assert_computes(t: Term, seed: int = 0) -> None:
    """The printed PyTorch is Python, and gives what the formula does."""
    dtype = {T.REAL: "f32", T.INT: "i64", T.BOOL: "bool"}[t.type]
    out, arrays, sizes = Formula("out", (LINES, WORDS), t, dtype), arrays_at_edges(seed, (9, 31)), {"M": 9, "N": 31}
    source = torch_source(out)
    ast.parse(source)
    expected = evaluate(t, out.axes, arrays, sizes)
    got = run(out, sizes, {a: x for a, x in arrays.items() if a in T.reads(t)})
    assert got.shape == expected.shape, source
    near = 1e-9 if t.type == T.REAL else 0
    np.testing.assert_allclose(got, expected, rtol=near, atol=near, err_msg=source)


COUNT = 400


@pytest.mark.parametrize("block", range(8))
def test_random_integers_print_to_functions_that_compute_them(block):
    for seed in range(block * COUNT // 8, (block + 1) * COUNT // 8):
        with Session():
            assert_computes(mixed(seed), seed)


def test_random_integers_hold_every_operation():
    with Session():
        found = {s.op for seed in range(COUNT) for s in mixed(seed).walk()}
    whole = {n for n, row in OPS.items() if row.torch and row.type in (T.INT, T.BOOL) and not row.rewritten}
    assert set(ON_INTEGERS) | set(ON_REALS) <= found
    assert whole - found <= {"to_int", "nan?", "plus_infinity?", "minus_infinity?"}


A, B8, C, D32 = (read(name, WORDS, of_type=T.INT) for name in "abcd")
R = read("r", WORDS)
FORMS = {
    "l1.l_i8": (op("shr", op("wrap8", A * B8 + A), 2), "((a.long() + a.long() * b.long()).to(torch.int8).long() >> 2)"),
    "l1.l_cast": (op("wrap8", 2 * op("trunc", R * 10)) * 0.5,
                  "(2 * torch.trunc(10 * r)).to(torch.int8).long().double() / 2"),
    "l2.p3": (op("wrap8", 3 * (A - B8)), "(3 * (a.long() - b.long())).to(torch.int8).long()"),
    "l2.p4": (op("wrap8", -(A + B8)), "(-(a.long() + b.long())).to(torch.int8).long()"),
    "l2.p5": (op("wrap16", op("truncdiv", op("wrap16", C * B8), 7)),
              "torch.div((b.long() * c.long()).to(torch.int16).long(), torch.tensor(7, dtype=torch.int64), "
              "rounding_mode='trunc').to(torch.int16).long()"),
    "l2.p9": (op("bitor", op("bitand", op("shr", C, 3), op("bitxor", D32, -1)), op("bitxor", C, D32)),
              "(c >> 3 & (torch.tensor(-1, dtype=torch.int64) ^ d.long()) | c ^ d)"),
    "l2.p10": (op("wrap8", A - B8) - op("wrap16", B8 - A),
               "(a.long() - b.long()).to(torch.int8).long() - (b.long() - a.long()).to(torch.int16).long()"),
    "l2.p16": (op("wrap8", A + op("shl", B8, 1)), "(a.long() + (b.long() << 1)).to(torch.int8).long()"),
    "l2.p21": (op("wrap16", (C + B8) * (C - B8)),
               "((b.long() + c.long()) * (c.long() - b.long())).to(torch.int16).long()"),
    "l3.q9": (op("bitand", op("bitxor", op("shl", op("wrap8", A), 3), op("shr", A, 2)), 127),
              "((a.to(torch.int8).long() << 3 ^ a >> 2) & torch.tensor(127, dtype=torch.int64))"),
    "l3.q15": (op("wrap16", op("trunc", R) * op("trunc", R)) - op("wrap16", op("trunc", R)),
               "(t0 ** 2).to(torch.int16).long() - t0.to(torch.int16).long()"),
    "xor of three": (op("bitxor", op("bitxor", A, B8), C), "(a ^ b ^ c)"),
    "cbrt below": (R / op("cbrt", 1 + op("abs", R)),
                   "r / (torch.sign(torch.abs(r) + 1) * torch.abs(torch.abs(r) + 1) ** (1 / 3))"),
    "power of a power": (op("pow", op("pow", op("abs", R), 1.5), 0.25), "(torch.abs(r) ** 1.5) ** 0.25"),
}  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize("name", FORMS)
def test_a_suffix_or_sign_is_of_the_whole_operand(name):
    t, right = FORMS[name]
    out = Formula("out", (WORDS,), t, "f32" if t.type == T.REAL else "i64")
    assert torch_source(out).rstrip().endswith(f"    return {right}")
    draw = np.random.default_rng(0)
    kinds = {"a": np.int8, "b": np.uint8, "c": np.int16, "d": np.int32}
    arrays = {a: draw.integers(np.iinfo(k).min, np.iinfo(k).max, 64, k, endpoint=True) for a, k in kinds.items()}
    arrays["r"] = draw.integers(-50, 50, 64) / 8
    given = {a: x for a, x in arrays.items() if a in T.reads(t)}
    np.testing.assert_allclose(run(out, {"N": 64}, given), evaluate(t, (WORDS,), given, {"N": 64}), rtol=1e-9)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("t", "right"),
    [
        (FORMS["l2.p9"][0], r"\left(\left(c_{n} \gg 3\right) \mathbin{\&} \left(-1 \oplus d_{n}\right)\right) "
                            r"\mathbin{|} \left(c_{n} \oplus d_{n}\right)"),
        (FORMS["xor of three"][0], r"a_{n} \oplus b_{n} \oplus c_{n}"),
        (2 * op("bitand", A, 7) + 1, r"2 \, \left(a_{n} \mathbin{\&} 7\right) + 1"),
        (op("eq", op("bitand", A, 1), 0), r"a_{n} \mathbin{\&} 1 = 0"),
        (op("eq", op("or", op("lt", A, 0), op("lt", 3, A)), op("lt", A, C)),
         r"\left(a_{n} < c_{n}\right) = \left(\left(3 < a_{n}\right) \lor \left(a_{n} < 0\right)\right)"),
        (-op("mod", A, 3), r"-\left(a_{n} \bmod 3\right)"),
        (A * op("mod", C, 3), r"a_{n} \, \left(c_{n} \bmod 3\right)"),
        (A * op("floordiv", C + 1, 3), r"a_{n} \, \lfloor \left(c_{n} + 1\right) / 3 \rfloor"),
    ],
)  # fmt: skip
def test_latex_has_parentheses_among_bits_and_remainders(t, right):
    assert latex(Formula("out", (WORDS,), t, "i32")).removeprefix(r"\mathrm{out}_{n} = ") == right


SIGNS = {"_{n}": "", "^{": "**{", r"\left(": "(", r"\right)": ")", r"\mathbin{\&}": "&", r"\mathbin{|}": "|",
         r"\oplus": "^", r"\gg": ">>", r"\ll": "<<", r"\,": "*", r"\bmod": "%", r"\land": " and ", r"\lor": " or ",
         r"\lnot": " not ", r"\ne": "!=", r"\le": "<=", " = ": " == ", "{": "(", "}": ")"}  # fmt: skip


def in_signs(draw: random.Random, depth: int) -> Term:
    """A random integer of operations that LaTeX has a sign for."""
    if depth == 0:
        return draw.choice((A, B8, C, D32, T.const(-1), T.const(6)))
    x, y = in_signs(draw, depth - 1), in_signs(draw, draw.randrange(depth))
    name = draw.choice((*BITS, *BITS, "shl", "shr", "add", "mul", "neg", "mod"))
    y = T.const(3) if name in ("shl", "shr", "mod") else y
    return op(name, x) if name == "neg" else op(name, x, y)


def test_random_latex_has_the_value_of_the_term():
    draw = random.Random(0)
    for k in range(150):
        t = in_signs(draw, 4)
        t = op(draw.choice(("eq", "lt", "le")), t, in_signs(draw, 2)) if k % 3 == 0 else t
        t = op(draw.choice(("and", "or")), t, op("not", op("ne", A, B8))) if k % 6 == 0 else t
        shown = latex(Formula("out", (WORDS,), t, "i32")).removeprefix(r"\mathrm{out}_{n} = ")
        for sign, python in SIGNS.items():
            shown = shown.replace(sign, python)
        for _ in range(4):
            given = {a: draw.randint(-128, 127) for a in "abcd"}
            right = evaluate(t, (WORDS,), {a: np.array([x]) for a, x in given.items()}, {"N": 1})
            assert eval(shown.strip(), {}, given) == right[0], shown


def test_a_minus_before_a_remainder_or_a_quotient() -> None:
    """-N % 3 is the remainder of -N, and -(N % 3) is another number; so in formulas and in asserts of emitted files."""
    n, m = T.size("N"), T.size("M")
    left, rest = T.make("mod", n, 3), T.make("floordiv", n, 4)
    terms = [T.mul(-1, left), T.mul(-1, rest), T.mul(-1, left, rest), T.mul(-2, left), T.sub(m, left), T.mul(m, left)]
    terms += [T.make("mod", T.mul(-1, n), 3), T.sub(T.mul(-1, left), T.mul(m, n)), T.make("floordiv", left, 2)]
    for t in terms:
        said = python_source(t)
        for sizes in ({"N": a, "M": b} for a in (4, 5, 7, 11) for b in (2, 3)):
            assert eval(said, dict(sizes)) == value(t, sizes), said


def made(f: Formula) -> dict[str, object]:
    """What the printed source defines."""
    scope: dict[str, object] = {}
    exec(torch_source(f), scope)
    return scope


def test_arguments_with_the_names_of_functions() -> None:
    """`min` as a size of a guard, beside min() of Python."""
    x = T.read("x", (T.axis(WORDS),))
    largest = T.make("max", T.scalar("max"), T.make("min", T.scalar("min"), T.scalar("abs")))
    out = made(Formula("out", (WORDS,), T.mul(x, largest), "f32"))["out"]
    assert out(torch.ones(2), max=3.0, min=4.0, abs=5.0).tolist() == [4.0, 4.0]
    with pytest.raises(Unsupported, match="an argument named torch"):
        torch_source(Formula("out", (WORDS,), T.read("torch", (T.axis(WORDS),)), "f32"))


@pytest.mark.parametrize(("dtype", "found"), [("f32", torch.float32), ("bf16", torch.bfloat16), ("i64", torch.int64)])
def test_counts_have_the_type_of_the_formula(dtype: str, found: torch.dtype) -> None:
    chosen = T.where(T.make("lt", T.read("x", (T.axis(WORDS),)), 0), 1, 0)
    whole = made(Formula("out", (WORDS,), chosen, dtype))["out"](torch.tensor([-1.0, 2.0]))
    assert whole.dtype == found and whole.tolist() == [1, 0]
    filled = made(Formula("out", (WORDS,), T.const(3), dtype))["out"](N=2)
    assert filled.dtype.is_floating_point == found.is_floating_point
