"""Counterexamples: wrong kernels are found, at their smallest shape; right ones are left alone."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from trilift import case
from trilift.lift import Case, lift
from trilift.lift.capture.run import capture
from trilift.lift.errors import Unsupported
from trilift.lift.replay.check import arguments, arrays
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis
from trilift.verify.model.verdict import Counterexample
from trilift.verify.refutation import search
from trilift.verify.runs import adversary
from trilift.verify.runs.goals import Targets, targets
from trilift.verify.runs.readings import evaluated
from trilift.verify.runs.trials import RUN_PROGRAMS

ROOT = Path(__file__).parents[2]
STEPS = 4_000_000


@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr, BOUND: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i <= n if BOUND else i < n
    tl.store(y + i, 2 * tl.load(x + i, mask=mask), mask=mask)


def scale(name: str, bound: bool, short: bool = False) -> Case:
    def fn(x: Any) -> Any:
        y = torch.empty_like(x)
        blocks = x.numel() // 16 if short else triton.cdiv(x.numel(), 16)
        scale_kernel[(max(blocks, 1),)](x, y, x.numel(), BLOCK=16, BOUND=bound)
        return y

    return referenced(name, fn, {"x": "f32[N]"}, lambda x: 2 * x)


@triton.jit
def softmax_kernel(x, y, n, row, BLOCK: tl.constexpr, OTHER: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if OTHER is None:
        v = tl.load(x + tl.program_id(0) * row + i, mask=i < n)
    else:
        v = tl.load(x + tl.program_id(0) * row + i, mask=i < n, other=OTHER)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + tl.program_id(0) * row + i, e / tl.sum(e, 0), mask=i < n)


def softmax(name: str, other: float | None, block: int | None = None) -> Case:
    def fn(x: Any) -> Any:
        y = torch.empty_like(x)
        m, n = x.shape
        size = block or triton.next_power_of_2(n)
        softmax_kernel[(m,)](x, y, n, x.stride(0), BLOCK=size, OTHER=other)
        return y

    return referenced(name, fn, {"x": "f32[M,N]"}, lambda x: x.softmax(-1))


@triton.jit
def norm_kernel(x, y, n, row, column, eps, BLOCK: tl.constexpr, INSIDE: tl.constexpr, STRIDES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    step = column if STRIDES else 1
    v = tl.load(x + tl.program_id(0) * row + i * step, mask=i < n, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(i < n, v - mean, 0.0)
    var = tl.sum(d * d, 0) / n
    r = 1 / tl.sqrt(var + eps) if INSIDE else 1 / (tl.sqrt(var) + eps)
    tl.store(y + tl.program_id(0) * n + i, d * r, mask=i < n)


def norm(name: str, inside: bool = True, strides: bool = True) -> Case:
    def fn(x: Any, eps: float) -> Any:
        m, n = x.shape
        y = torch.empty((m, n), dtype=x.dtype, device=x.device)
        block = triton.next_power_of_2(n)
        norm_kernel[(m,)](x, y, n, x.stride(0), x.stride(1), eps, BLOCK=block, INSIDE=inside, STRIDES=strides)
        return y

    def reference(x: Any, eps: float) -> Any:
        return torch.nn.functional.layer_norm(x, (x.shape[-1],), eps=eps)

    return referenced(name, fn, {"x": "f32[M,N] strided", "eps": 1e-3}, reference)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BLOCK: tl.constexpr, TAIL: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k0 in range(tl.cdiv(K, BLOCK) if TAIL else K // BLOCK):
        k = k0 * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(a + i[:, None] * K + k[None, :], mask=(i[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + j[None, :], mask=(k[:, None] < K) & (j[None, :] < N), other=0.0)
        acc += tl.dot(x, y)
    tl.store(c + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))


def matmul(name: str, tail: bool) -> Case:
    def fn(a: Any, b: Any) -> Any:
        (m, k), n = a.shape, b.shape[1]
        c = torch.empty((m, n), dtype=a.dtype, device=a.device)
        matmul_kernel[(triton.cdiv(m, 16), triton.cdiv(n, 16))](a, b, c, m, n, k, BLOCK=16, TAIL=tail)
        return c

    return referenced(name, fn, {"a": "f32[M,K]", "b": "f32[K,N]"}, lambda a, b: a @ b)


def referenced(name: str, fn: Any, specs: dict[str, Any], reference: Any) -> Case:
    fn.__name__ = name
    made = case(**specs)(fn)
    made.reference(reference)
    return made


RIGHT = [
    scale("scale", bound=False),
    softmax("softmax_right", -float("inf")),
    norm("norm_right"),
    matmul("matmul_right", tail=True),
]
bounded = scale("bounded", bound=True)
short = scale("short", bound=False, short=True)
zeros = softmax("zeros", 0.0)
undefined = softmax("undefined", None)
narrow = softmax("narrow", -float("inf"), block=16)
outside = norm("outside", inside=False)
contiguous = norm("contiguous", strides=False)
no_tail = matmul("no_tail", tail=False)
WRONG: list[tuple[Case, dict[str, int]]] = [
    (bounded, {"N": 1}),  # one element beyond the end
    (short, {"N": 17}),
    (zeros, {"M": 1, "N": 3}),
    (undefined, {"M": 1, "N": 3}),
    (narrow, {"M": 1, "N": 17}),
    (outside, {"M": 1, "N": 2}),
    (contiguous, {"M": 1, "N": 2}),
    (no_tail, {"M": 1, "K": 1, "N": 1}),
]


def found(c: Case, **options: Any) -> Counterexample:
    result = search.search(c, steps=STEPS, **options).found
    assert result is not None, f"{c.name} was not refuted"
    return result


@pytest.mark.parametrize("c", RIGHT, ids=lambda c: c.name)
def test_right_kernels_are_not_refuted(c: Case) -> None:
    assert search.search(c, steps=700_000).found is None


@pytest.mark.parametrize(("c", "smallest"), WRONG, ids=[c.name for c, _ in WRONG])
def test_wrong_kernels_are_refuted_at_the_smallest_shape(c: Case, smallest: dict[str, int]) -> None:
    example = found(c)
    assert example.dims == smallest
    question = search.Question(c, targets(c))
    again = search.attempt(question, example.dims, example.seed, example.config)
    assert isinstance(again, search.Failure)
    assert (again.output, again.index) == (example.output, example.index)


@triton.jit
def one_less_kernel(x, out, N, SCALED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < N)
    if SCALED:
        tl.store(out + i, tl.floor(v * 16777215.0).to(tl.int32), mask=i < N)
    else:
        tl.store(out + i, tl.where(v < 1000000, v, v - 1), mask=i < N)


@case(x="i32[N]")
def one_less(x):
    out = torch.empty_like(x)
    one_less_kernel[(triton.cdiv(x.shape[0], 16),)](x, out, x.shape[0], SCALED=False, BLOCK=16)
    return out


@case(x="f32[N] in (0, 1)")
def quantised(x):
    out = torch.empty_like(x, dtype=torch.int32)
    one_less_kernel[(triton.cdiv(x.shape[0], 16),)](x, out, x.shape[0], SCALED=True, BLOCK=16)
    return out


one_less.reference(lambda x: x.clone())
quantised.reference(lambda x: (x / (1 / 16777215.0)).floor().to(torch.int32))


def test_integers_are_compared_exactly() -> None:
    """One less of a number beyond a million is no rounding; a step of a real number may be."""
    example = found(one_less)
    assert abs(example.got - example.expected) == 1 and example.expected >= 1000000
    assert search.search(quantised, steps=700_000).found is None


def test_an_access_out_of_bounds_is_told_as_such() -> None:
    example = found(bounded)
    assert (example.output, example.index) == ("", ())
    assert "out of bounds" in example.why


def test_hints_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[dict[str, Any]] = []
    attempt = search.attempt
    monkeypatch.setattr(search, "attempt", lambda q, d, *rest: tried.append(dict(d)) or attempt(q, d, *rest))
    example = search.search(narrow, hints=[{"N": 40}], steps=STEPS).found
    assert tried[0]["N"] == 40
    assert example is not None and example.dims == {"M": 1, "N": 17}


@triton.jit
def copy_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def capped(programs: int) -> Case:
    """A copy by at most so many programs."""

    def fn(x: Any) -> Any:
        y = torch.empty_like(x)
        copy_kernel[(min(triton.cdiv(x.numel(), 16), programs),)](x, y, x.numel(), BLOCK=16)
        return y

    return referenced("capped", fn, {"x": "f32[N]"}, lambda x: x.clone())


def test_a_large_hint_is_run_once_after_all_others() -> None:
    """More programs than other runs may have; it is not made smaller where that takes longer than a run may."""
    n = 16 * (RUN_PROGRAMS + 1) + 1
    example = search.search(capped(RUN_PROGRAMS + 1), hints=[{"N": n}], steps=400_000).found
    assert example is not None and example.dims == {"N": n} and example.index == (n - 1,)


def test_a_hint_that_was_not_run_is_told() -> None:
    many = search.LARGE_PROGRAMS + 1
    n = 16 * many + 1
    ended = search.search(capped(many), hints=[{"N": n}], steps=100_000)
    assert ended.found is None and ended.left == f"N = {n} was not run: {many} programs"
    late = search.search(capped(100), hints=[{"N": 5}, {"N": 1601}], steps=0)
    assert late.found is None and "N = 5 was not run: the steps" in late.left
    assert not search.search(RIGHT[0], hints=[{"N": 40}], steps=100_000).left


def test_each_hint_is_run_with_random_numbers_before_other_numbers() -> None:
    hints = [{"N": n} for n in (7, 9, 11)]
    first = [
        (dims["N"], adversary.row(seed).name) for dims, seed, _ in islice(search.runs(RIGHT[0], hints, 0, None), 4)
    ]
    assert first == [(7, "normal"), (9, "normal"), (11, "normal"), (7, adversary.row(1).name)]


def test_other_modules_stand_in_for_those_of_the_launches() -> None:
    broken = capture(zeros, {"M": 2, "N": 3}).launches[0].module()
    right = RIGHT[1]
    goal = targets(right)
    assert search.search(right, goal, hints=[{"M": 2, "N": 3}], module_of=lambda launch: broken).found is not None
    assert search.search(right, goal, steps=500_000, module_of=lambda launch: launch.module()).found is None


def test_against_a_formula() -> None:
    right = targets(RIGHT[1], text="out[m, n] = exp(x[m, n]) / sum(n, exp(x[m, n]))")
    assert search.search(RIGHT[1], right, steps=500_000).found is None
    wrong = targets(RIGHT[1], text="out[m, n] = exp(x[m, n]) / sum(m, exp(x[m, n]))")
    example = search.search(RIGHT[1], wrong, steps=STEPS).found
    assert example is not None and example.dims in ({"M": 1, "N": 2}, {"M": 2, "N": 1})


def test_the_same_seed_gives_the_same_inputs() -> None:
    for seed in range(len(adversary.SEARCHED)):
        a, b = (adversary.arguments(outside, {"M": 3, "N": 5}, seed)["x"] for _ in range(2))
        assert torch.equal(a, b) and a.stride() == b.stride() and a.dtype is torch.float64
    assert adversary.row(0).name == "normal"


def test_undefined_where_the_target_is_undefined_says_nothing() -> None:
    """0 / 0 of the reference is not held against the kernel, an infinity is."""
    goal = Targets("reference", {}, fn=None)
    question = search.Question(RIGHT[0], goal)
    assert isinstance(search.attempt(question, {"N": 3}, 0, 0), search.Skipped)


@pytest.mark.parametrize(
    ("c", "says"),
    [(narrow, "narrow at M = 1, N = 17, in Triton's interpreter"), (bounded, "bounded: access out of bounds")],
    ids=["wrong", "outside"],
)
def test_the_script_fails_again(c: Case, says: str, tmp_path: Path) -> None:
    example = found(c)
    script = tmp_path / "again.py"
    script.write_text(example.replay)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    child = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=120)
    assert child.returncode == 1, child.stdout + child.stderr
    assert says in child.stdout
    assert not example.output or f"{example.expected:.9g}" in child.stdout


@triton.jit
def steep_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.exp2(n * tl.load(x + i, mask=i < n) * 1.4426950216293335), mask=i < n)


@case(x="f32[N]")
def steep(x):
    y = torch.empty_like(x)
    steep_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y


def test_a_constant_rounded_to_f32_is_no_difference() -> None:
    """The formula has log2(e) exactly; at exp(256 x) the kernel's digits make a difference that no user means."""
    assert search.search(steep, targets(steep, text="out[n] = exp(N * x[n])"), steps=1_500_000).found is None
    wrong = targets(steep, text="out[n] = 1.001 * exp(N * x[n])")
    assert search.search(steep, wrong, steps=STEPS).found is not None


def test_quotients_of_subnormal_numbers_tell_nothing() -> None:
    from trilift.lift.replay.reference import steady, values

    fn = lambda x: (torch.exp(x) * 4.0898).sum(0, keepdim=True) / torch.exp(x).sum(0, keepdim=True)  # noqa: E731
    given = referenced("quotient", fn, {"x": "f32[N]"}, fn)
    for score, sure in ((-743.2, False), (-600.0, True)):
        args = {"x": torch.tensor([score, -900.0], dtype=torch.float64)}
        expected = values(given, fn, args)
        [(name, found)] = steady(given, fn, args, expected, 0).items()
        assert (abs(float(expected[name][0]) - 4.0898) < 1e-12) == sure and bool(found.all()) == sure


def test_what_overflows_on_the_way_tells_nothing() -> None:
    """x / inf is 0, a finite number that is wrong; an infinity that was there, or at a pole, is none of that."""
    from trilift.lift.replay.reference import steady, values
    from trilift.lift.terms.overflow import without_overflow

    def sure(fn: Any, *x: float) -> tuple[float, bool]:
        given = referenced("overflow", fn, {"x": "f32[N]"}, fn)
        args = {"x": torch.tensor(x, dtype=torch.float64)}
        expected = values(given, fn, args)
        [(name, found)] = steady(given, fn, args, expected, 0).items()
        return float(expected[name][0]), bool(found[0])

    gate = lambda x: torch.exp(x) * 3 / (torch.exp(x) * (1 + torch.exp(x)))  # noqa: E731
    assert sure(gate, 400.0) == (0.0, False) and sure(gate, 20.0)[1]
    assert sure(lambda x: torch.softmax(x.masked_fill(x > 5, -torch.inf), 0), 9.0, 1.0) == (0.0, True)
    with without_overflow():
        assert torch.log(torch.zeros(1)).isinf().all() and torch.exp(torch.full([1], 99.0)).isnan().all()
    assert sure(lambda x: 2 / x.clone().mul_(1e200).mul_(1e200), 3.0) == (0.0, False)


@triton.jit
def gate_kernel(x, y, n, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, SCALE / (1 + tl.exp(-1000 * v)), mask=i < n)


@pytest.mark.parametrize("factor", [1.0, 1.25])
def test_a_reference_that_overflows_is_none_there(factor: float) -> None:
    """inf / inf of the reference beside 1 of the kernel; elsewhere it is the reference."""

    def fn(x: Any) -> Any:
        y = torch.empty_like(x)
        gate_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), SCALE=factor, BLOCK=16)
        return y

    given = referenced("gate", fn, {"x": "f32[N]"}, lambda x: torch.exp(1000 * x) / (torch.exp(1000 * x) + 1))
    lifted = lift(given)
    inputs = arrays(given, arguments(given, lifted.traces[2].dims, 0))
    assert (inputs["x"] > 0.71).any() and ((inputs["x"] > 0.01) & (inputs["x"] < 0.7)).any()
    assert [m.output for m in lifted.mismatches] == ([] if factor == 1 else ["out"])
    assert not lifted.mismatches or lifted.mismatches[0].expected > 0.9


def test_a_reference_that_wants_narrow_types_is_compared_as_it_is() -> None:
    """It raises where it is asked for real numbers, and a wrong kernel is wrong all the same."""

    def fn(x: Any) -> Any:
        y = torch.empty_like(x)
        gate_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), SCALE=1.25, BLOCK=16)
        return y

    def gate(x: Any) -> Any:
        assert x.to(torch.float16).dtype == torch.float16
        return torch.sigmoid(1000 * x)

    [found] = lift(referenced("gate", fn, {"x": "f32[N]"}, gate)).mismatches
    assert found.output == "out" and found.got > 1.2 and found.expected > 0.9


@triton.jit
def ratio_kernel(x, y, n, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.exp(-v) + (tl.exp(-4 * v) if WRONG else 0.0), mask=i < n)


def ratio(wrong: bool) -> Case:
    def fn(x: Any) -> Any:
        y = torch.empty_like(x)
        ratio_kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), WRONG=wrong, BLOCK=16)
        return y

    return referenced("ratio", fn, {"x": "f32[N]"}, lambda x: torch.exp(x) / (torch.exp(x) * torch.exp(x)))


@pytest.mark.parametrize("wrong", [False, True])
def test_a_formula_that_overflows_is_no_target_there(wrong: bool) -> None:
    """exp(x) / exp(x)^2 is 0 in float64 at 400 and exp(-x) is not; a wrong term is found at smaller numbers."""
    given = ratio(wrong)
    goal = targets(given, text="out[n] = exp(x[n]) / (exp(x[n]) * exp(x[n]))")
    for dims in ({"N": 1}, {"N": 40}):
        for seed in range(3 * len(adversary.SEARCHED)):
            found = search.attempt(search.Question(given, goal), dims, seed, 0)
            if isinstance(found, search.Failure):
                assert wrong
                return
    assert not wrong


def test_a_formula_with_a_value_that_fits_no_memory_is_not_evaluated() -> None:
    m, k, n = (Axis(name, T.size(name.upper())) for name in "mkn")
    product = T.fold("sum", k, T.mul(T.read("x", (T.axis(m), T.axis(k))), T.read("w", (T.axis(k), T.axis(n)))))
    formula = Formula("out", (m, n), product, "f32")
    arrays = {"x": np.ones((2, 3)), "w": np.ones((3, 2))}
    assert (evaluated(formula, arrays, {"M": 2, "K": 3, "N": 2}) == 3).all()
    with pytest.raises(Unsupported, match="a value within the formula of out has 134217729"):
        evaluated(formula, arrays, {"M": 1, "K": 1, "N": (1 << 27) + 1})
