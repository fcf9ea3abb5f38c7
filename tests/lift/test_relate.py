"""Numbers as terms: what fits, what is simplest, what is refused; and launches of real wrappers."""

import math

import pytest
import torch
import triton
import triton.language as tl

from trilift.lift.capture.relate import holds, relate
from trilift.lift.capture.run import capture
from trilift.lift.cases.declaration import Reader, make_case
from trilift.lift.cases.shapes import choose
from trilift.lift.errors import Unsupported
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import fit, value

ENVIRONMENTS = [
    {"M": 3, "N": 5, "D": 8, "p": 0.25, "s": 0.7},
    {"M": 7, "N": 23, "D": 96, "p": 0.4, "s": 0.3},
    {"M": 19, "N": 130, "D": 20, "p": 0.1, "s": 0.9},
]
cdiv = triton.cdiv
power = triton.next_power_of_2
M, N, D, p, s = "M", "N", "D", "p", "s"

FORMULAS = [
    ("N", lambda e: e[N]),
    ("M * N", lambda e: e[M] * e[N]),
    ("M * N * D", lambda e: e[M] * e[N] * e[D]),
    ("N + 1", lambda e: e[N] + 1),
    ("2 * M", lambda e: 2 * e[M]),
    ("D // 2", lambda e: e[D] // 2),
    ("cdiv(N, 16)", lambda e: cdiv(e[N], 16)),
    ("next_power_of_2(N)", lambda e: power(e[N])),
    ("min(next_power_of_2(N), 64)", lambda e: min(power(e[N]), 64)),
    ("max(next_power_of_2(M), 16)", lambda e: max(power(e[M]), 16)),
    ("1 / D ** 0.5", lambda e: e[D] ** -0.5),
    ("1 / N", lambda e: 1 / e[N]),
    ("1 / (M * N)", lambda e: 1 / (e[M] * e[N])),
    ("1.4426950408889634 * (1 / D ** 0.5)", lambda e: e[D] ** -0.5 * math.log2(math.e)),
    ("s", lambda e: float(torch.tensor(e[s]))),
    ("1.4426950408889634 * s", lambda e: e[s] * 1.44269504),
    ("1 / (1 - p)", lambda e: 1 / (1 - e[p])),
    ("s / D ** 0.5", lambda e: e[s] * e[D] ** -0.5),
]
CONDITIONS = [lambda e: e[N] % 5 == 0, lambda e: e[M] < 16, lambda e: e[N] <= 23]


def term(text):
    """The text as a term, with x ** 0.5 written as sqrt(x)."""

    def root(t):
        return T.make("sqrt", t.args[0]) if t.op == "pow" else None

    return T.rewrite(Reader("test", {p, s}, None).term(text), root)


@pytest.mark.parametrize(("text", "f"), FORMULAS)
def test_fit_finds_the_simplest(text, f):
    assert fit([f(e) for e in ENVIRONMENTS], ENVIRONMENTS) is term(text)


@pytest.mark.parametrize("f", CONDITIONS)
def test_conditions(f):
    found = fit([f(e) for e in ENVIRONMENTS], ENVIRONMENTS)
    assert [value(found, e) for e in ENVIRONMENTS] == [f(e) for e in ENVIRONMENTS]


@pytest.mark.parametrize(
    "f",
    [
        lambda e: cdiv(e[M], 2) * cdiv(e[N], 16),
        lambda e: e[M] * e[D] * cdiv(e[N], 64),
        lambda e: 3 * e[N] + 7,
        lambda e: min(256, power(e[M] * e[N])),
        lambda e: cdiv(e[M] * e[N] * e[D], 1024),
        lambda e: max(16, min(64, power(e[N]))),
    ],
)
def test_deeper_formulas_hold_elsewhere(f):
    environments = [*ENVIRONMENTS, {"M": 67, "N": 37, "D": 64, "p": 0.5, "s": 0.2}]
    found = fit([f(e) for e in environments], environments)
    for e in ({"M": 11, "N": 53, "D": 32}, {"M": 131, "N": 257, "D": 96}):
        assert value(found, e) == f(e)


def test_constants_and_misfits():
    assert fit([5, 5, 5], ENVIRONMENTS).attr == 5
    assert fit([True, True, True], ENVIRONMENTS).attr is True
    assert fit([1e-6] * 3, ENVIRONMENTS).attr == 1e-6
    assert fit([8231, 977, 40961], ENVIRONMENTS) is None
    assert fit([0.123, 0.771, 0.0391], ENVIRONMENTS) is None


def test_known_terms_are_simple():
    block = fit([16, 32, 64], [{"N": 5, "B": b} for b in (16, 32, 64)])
    environments = [{"N": n, "B": b} for n, b in ((100, 16), (70, 32), (999, 64))]
    assert fit([cdiv(e["N"], e["B"]) for e in environments], environments, (block,)) is term("cdiv(N, B)")


# ---- launches


@triton.jit
def rows_kernel(y, x, stride, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    tl.store(y + i, scale * tl.load(x + i))


def launch(x, y, n, block, scale=1.0, times=1):
    for _ in range(times):
        rows_kernel[(x.shape[0], cdiv(n, block))](y, x, x.stride(0), n, scale, BLOCK=block)
    return y


def related(fn, count=4, **specs):
    c = make_case("c", fn, specs)
    traces = [capture(c, d) for d in choose(c, count + 1)]
    found = relate(traces[:count])
    assert all(holds(r, traces[count]) for r in found)
    return {r.what: r.term for r in found}


def test_a_launch_is_related():
    def host(x, s):
        n = x.shape[1]
        return launch(x, torch.empty_like(x), n, min(64, power(n)), s * n**-0.5)

    found = related(host, x="f32[M,N]", s="f32")
    assert found["stride"] is found["n"] is found["x.stride(0)"] is found["y.shape[1]"] is term("N")
    assert found["BLOCK"] is term("min(64, next_power_of_2(N))")
    assert found["scale"] is term("s / N ** 0.5")
    assert (found["grid[0]"], found["grid[2]"], found["x.offset"]) == (term("M"), term("1"), term("0"))
    assert found["grid[1]"] is term("cdiv(N, min(64, next_power_of_2(N)))")


def test_strides_of_strided_inputs_are_names_of_their_own():
    found = related(lambda x: launch(x, torch.empty_like(x), x.shape[1], 16), x="f32[M,N] strided")
    assert found["stride"] is found["x.stride(0)"] is T.size("stride(x,0)")
    assert (found["x.stride(1)"], found["y.stride(0)"]) == (T.size("stride(x,1)"), term("N"))


def test_a_block_size_out_of_a_table_is_free_and_grids_use_it():
    blocks = iter([128, 16, 512, 32, 8])

    def host(x):
        n = x.shape[0] * x.shape[1]
        return launch(x, torch.empty_like(x), n, next(blocks))

    found = related(host, x="f32[M,N]")
    assert (found["BLOCK"], found["grid[1]"]) == (term("BLOCK"), term("cdiv(M*N, BLOCK)"))


def test_an_argument_that_fits_nothing_is_named_with_its_values():
    codes = iter([8231, 977, 40961, 17])
    c = make_case("c", lambda x: launch(x, x, next(codes), 16), {"x": "f32[M,N]"})
    with pytest.raises(Unsupported, match="n of rows_kernel is none of the functions of the case's dims") as caught:
        relate([capture(c, d) for d in choose(c, 3)])
    assert "8231 at M=3, N=5" in caught.value.why


def test_launches_that_depend_on_the_shape():
    c = make_case("c", lambda x: launch(x, x, 5, 16, times=x.shape[0]), {"x": "f32[M]"})
    with pytest.raises(Unsupported, match=r"the launches depend on the shape: 3 at M=3, (\d) at M=\1"):
        relate([capture(c, d) for d in choose(c, 2)])


def test_a_real_wrapper():
    rms_norm = pytest.importorskip("liger_kernel.ops.rms_norm").LigerRMSNormFunction

    def backward(x, w, g):
        x.requires_grad_(), w.requires_grad_()
        return torch.autograd.grad(rms_norm.apply(x, w, 1e-6), (x, w), g)

    found = related(backward, x="f32[M,N]", w="f32[N]", g="f32[M,N]")
    assert (found["BLOCK_SIZE"], found["n_rows"]) == (term("next_power_of_2(N)"), term("M"))
    assert found["rows_per_program"] is term("cdiv(M, 4)")
