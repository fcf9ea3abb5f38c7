"""Kernels through the interpreter: terms evaluated on random inputs, the float64 replay and PyTorch agree."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from trilift.lift.capture.run import capture
from trilift.lift.cases.declaration import case
from trilift.lift.errors import OutOfBounds, Unsupported
from trilift.lift.interpreter.interpret import missing
from trilift.lift.replay.execute import replay, spec
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import FLOAT64
from trilift.lift.terms.term import TERMS, Term


def value(t: Term, inputs, memo: dict):
    """A term over single elements on numbers; undefined is NaN."""
    for s in t.walk():
        if s.id not in memo:
            args = [memo[a.id] for a in s.args]
            match s.op:
                case "const":
                    memo[s.id] = s.attr
                case "undef":
                    memo[s.id] = np.nan
                case "read":
                    memo[s.id] = inputs[s.attr][tuple(map(int, args))].item()
                case _:
                    memo[s.id] = np.asarray(FLOAT64.apply(s.op, *map(np.asarray, args))).item()
    return memo[t.id]


def numbers(s, inputs) -> np.ndarray:
    memo: dict = {}
    return np.array([value(TERMS[i], inputs, memo) for i in s.ids.ravel()]).reshape(s.ids.shape)


def run(c, expected, **dims):
    """Specs by name, after a check of terms and replay against `expected(**inputs)`, a dict or one array."""
    trace = capture(c, dims)
    specs = {s.name: s for s in spec(trace)}
    values = replay(trace, trace.samples)
    tensors = {k: torch.from_numpy(np.array(v)) for k, v in trace.samples.items()}
    want = expected(**{k: t.double() if t.is_floating_point() else t for k, t in tensors.items()})
    want = want if isinstance(want, dict) else {"out": want}
    assert set(specs) == set(values) == set(want)
    for name, w in want.items():
        np.testing.assert_allclose(values[name], w.numpy(), rtol=1e-6, atol=1e-9, err_msg=f"replay of {name}")
        np.testing.assert_allclose(numbers(specs[name], trace.samples), w.numpy(), rtol=1e-6, atol=1e-9, err_msg=name)
    return specs


def first(s) -> Term:
    return TERMS[s.ids.flat[0]]


# ---- masks, loops, dots


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@case(x="f32[N]", y="f32[N]")
def add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 16),)](x, y, out, x.numel(), BLOCK=16)
    return out


def test_add():
    specs = run(add, lambda x, y: x + y, N=37)
    assert first(specs["out"]) is T.read("x", [0]) + T.read("y", [0])


@triton.jit
def softmax_kernel(x, out, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + i, e / tl.sum(e, 0), mask=i < n)


@case(x="f32[M,N]")
def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def test_softmax_has_exactly_its_row():
    specs = run(softmax, lambda x: torch.softmax(x, -1), M=3, N=5)
    leaves = {repr(s) for s in TERMS[specs["out"].ids[1, 2]].walk() if s.op == "read"}
    assert leaves == {f"x[1, {k}]" for k in range(5)}


@triton.jit
def matmul_kernel(a, b, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(out + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@case(a="f16[M,K]", b="f16[K,N]")
def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty(M, N)
    grid = triton.cdiv(M, 16), triton.cdiv(N, 16)
    matmul_kernel[grid](a, b, out, M, N, K, BM=16, BN=16, BK=16)
    return out


def test_matmul():
    specs = run(matmul, lambda a, b: a @ b, M=17, N=5, K=19)
    t = TERMS[specs["out"].ids[16, 4]]
    assert t.op == "add" and len(t.args) == 19


# ---- control flow


@triton.jit
def early_kernel(x, out, n):
    i = tl.program_id(0)
    if i >= n:
        return
    v = tl.load(x + i)
    if v > 0:
        tl.store(out + i, v * 2)
        return
    tl.store(out + i, v - 1)


@case(x="f32[N]")
def early(x):
    out = torch.zeros_like(x)
    early_kernel[(x.numel() + 3,)](x, out, x.numel())
    return out


def test_early_return_on_data():
    specs = run(early, lambda x: torch.where(x > 0, 2 * x, x - 1), N=7)
    assert TERMS[specs["out"].ids[0]].op == "where"


@triton.jit
def branch_kernel(x, out, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    s = tl.sum(v, 0)
    if s > 0:
        r = tl.sqrt(s)
        tl.store(y, r)
    else:
        r = -s
    k = 0
    while k < 3:
        r = r + k
        k += 1
    tl.store(out + i, v + r, mask=i < n)


@case(x="f32[N]", y="f32[1]")
def branch(x, y):
    out = torch.empty_like(x)
    branch_kernel[(1,)](x, out, y, x.numel(), BLOCK=8)
    return out


def test_branch_on_data_guards_stores():
    def want(x, y):
        s = x.sum()
        return {"out": x + torch.where(s > 0, s.abs().sqrt(), -s) + 3, "y": torch.where(s > 0, s.abs().sqrt(), y)}

    run(branch, want, N=5)


@triton.jit
def bound_kernel(x, out):
    s = 0.0
    for k in range(tl.load(x)):
        s += k
    tl.store(out, s)


@case(x="i32[1]")
def bound(x):
    out = torch.empty(1)
    bound_kernel[(1,)](x, out)
    return out


def test_loop_bound_on_data_is_unsupported():
    with pytest.raises(Unsupported, match="loop bound depends on data at .*test_interpret.py"):
        spec(capture(bound, {}))


# ---- addresses that depend on data


@triton.jit
def gather_kernel(table, index, out, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    k = tl.load(index + row)
    tl.store(out + row * D + i, tl.load(table + k * D + i, mask=i < D), mask=i < D)


@case(table="f32[V,D]", index="i64[M] < V")
def embedding(table, index):
    out = torch.empty(index.numel(), table.shape[1])
    gather_kernel[(index.numel(),)](table, index, out, table.shape[1], BLOCK=8)
    return out


def test_gather_is_a_read_at_an_index():
    specs = run(embedding, lambda table, index: table[index], V=7, D=5, M=3)
    assert first(specs["out"]) is T.read("table", [T.read("index", [0], T.INT), 0])


@triton.jit
def scatter_kernel(x, index, out, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    k = tl.load(index + row)
    tl.atomic_add(out + k * D + i, tl.load(x + row * D + i, mask=i < D), mask=i < D)


@case(x="f32[M,D]", index="i64[M] < V", out="f32[V,D]")
def scatter(x, index, out):
    scatter_kernel[(x.shape[0],)](x, index, out, x.shape[1], BLOCK=4)


def test_scatter_adds_where_the_index_matches():
    def want(x, index, out):
        return {"out": out.index_add(0, index, x)}

    specs = run(scatter, want, M=5, V=3, D=2)
    assert specs["out"].in_place == "out"


@triton.jit
def transpose_in_place(x, tmp, index, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    m = i < n
    tl.store(tmp + i, tl.load(x + i, mask=m) * 2, mask=m)
    tl.store(out + i, tl.load(tmp + tl.load(index + i, mask=m), mask=m), mask=m)


@case(x="f32[N]", index="i32[N] < N")
def permute(x, index):
    out, tmp = torch.empty_like(x), torch.empty_like(x)
    transpose_in_place[(1,)](x, tmp, index, out, x.numel(), BLOCK=8)
    return out


def test_gather_from_an_intermediate_picks():
    specs = run(permute, lambda x, index: 2 * x[index.long()], N=5)
    assert TERMS[specs["out"].ids[0]].op == "pick"


# ---- reductions


@triton.jit
def welford(m1, s1, w1, m2, s2, w2):
    d = m2 - m1
    w = w1 + w2
    r = tl.where(w == 0.0, 0.0, w2 / w)
    return m1 + d * r, s1 + s2 + d * d * w1 * r, w


@triton.jit
def recurrence(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def odd_one(a, b):
    return tl.sqrt(a * a + b * b)


@triton.jit
def reduce_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + i, mask=m, other=0.0)
    mean, m2, w = tl.reduce((v, tl.zeros_like(v), m.to(tl.float32)), 0, welford)
    tl.store(out, mean)
    tl.store(out + 1, m2 / w)
    best, at = tl.max(tl.where(m, v, -float("inf")), 0, return_indices=True)
    tl.store(out + 2, best)
    tl.store(out + 3, at)
    tl.store(out + 4, tl.reduce(v, 0, odd_one))
    tl.store(out + 5, tl.argmin(tl.where(m, v, float("inf")), 0))
    tl.store(out + 6, tl.xor_sum(tl.where(m, i, 0), 0))


@case(x="f32[N]")
def reductions(x):
    out = torch.empty(7)
    reduce_kernel[(1,)](x, out, x.numel(), BLOCK=8)
    return out


def test_reductions_by_meaning():
    def want(x):
        n = torch.arange(len(x))
        xor = torch.tensor(np.bitwise_xor.reduce(n.numpy()))
        parts = x.mean(), x.var(correction=0), x.max(), x.argmax(), x.norm(), x.argmin(), xor
        return torch.stack([p.double() for p in parts])

    specs = run(reductions, want, N=5)
    terms = [TERMS[i] for i in specs["out"].ids]
    assert terms[2].op == "max" and len(terms[2].args) == 5
    assert terms[3].op == "argmax_of" and len(terms[3].args) == 5
    assert terms[0] is T.mul(T.add(*(T.read("x", [k]) for k in range(5))), 0.2)


@triton.jit
def scan_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, tl.cumsum(v, 0), mask=i < n)
    tl.store(out + n + i, tl.cumsum(v, 0, reverse=True), mask=i < n)
    _, h = tl.associative_scan((v * 0.5, v), 0, recurrence)
    tl.store(out + 2 * n + i, h, mask=i < n)


@case(x="f32[N]")
def scans(x):
    out = torch.empty(3, x.numel())
    scan_kernel[(1,)](x, out, x.numel(), BLOCK=8)
    return out


def test_scans():
    def want(x):
        h = [x[0]]
        for v in x[1:]:
            h.append(h[-1] * v / 2 + v)
        return torch.stack([x.cumsum(0), x.flip(0).cumsum(0).flip(0), torch.stack(h)])

    run(scans, want, N=5)


# ---- shapes


@triton.jit
def shape_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    a, b = tl.split(tl.reshape(v, (BLOCK // 2, 2)))
    j = tl.join(b, a)
    t = tl.trans(j)
    tl.store(out + i, tl.reshape(t, (BLOCK,)))
    tl.store(out + BLOCK + i, tl.gather(v, BLOCK - 1 - i, 0))
    tl.store(out + 2 * BLOCK + i, tl.cat(a, b, can_reorder=True))


@case(x="f32[8]")
def shapes(x):
    out = torch.empty(24)
    shape_kernel[(1,)](x, out, BLOCK=8)
    return out


def test_shapes():
    run(shapes, lambda x: torch.cat([x[1::2], x[::2], x.flip(0), x[::2], x[1::2]]))


# ---- integers and bits


@triton.jit
def integer_kernel(x, u, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    m = i < n
    a = tl.load(x + i, mask=m, other=0)
    b = tl.load(u + i, mask=m, other=0)
    tl.store(out + i, a // 3 + a % 3, mask=m)
    tl.store(out + n + i, (b >> 4).to(tl.int32) + b.to(tl.float32).to(tl.int32), mask=m)
    tl.store(out + 2 * n + i, (a.to(tl.int8) * 2).to(tl.int32), mask=m)
    tl.store(out + 3 * n + i, ((a > 0) & (b > 100) | (a == b)).to(tl.int32), mask=m)


@case(x="i32[N] in (-100, 100)", u="u8[N]")
def integers(x, u):
    out = torch.empty(4, x.numel(), dtype=torch.int32)
    integer_kernel[(1,)](x, u, out, x.numel(), BLOCK=8)
    return out


def test_integers_of_all_widths():
    def want(x, u):
        q = torch.div(x, 3, rounding_mode="trunc")
        narrow = (x.to(torch.int8) * 2).int()
        u = u.int()
        return torch.stack([q + (x - 3 * q), (u >> 4) + u, narrow, ((x > 0) & (u > 100) | (x == u)).int()])

    run(integers, want, N=7)


@triton.jit
def bits_kernel(x, out, top, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=-float("inf"))
    b = v.to(tl.int32, bitcast=True)
    tl.store(out + i, (b ^ 0).to(tl.float32, bitcast=True), mask=i < n)
    tl.atomic_max(top, tl.max(v, 0))


@case(x="f32[M,N]")
def bits(x):
    out, top = torch.empty_like(x), torch.full((1,), -float("inf"))
    for row, o in zip(x, out, strict=True):
        bits_kernel[(1,)](row, o, top, x.shape[1], BLOCK=8)
    return {"out": out, "top": top}


def test_bit_casts_and_the_float_maximum_made_of_integer_atomics():
    specs = run(bits, lambda x: {"out": x, "top": x.max().reshape(1)}, M=3, N=5)
    t = TERMS[specs["top"].ids[0]]
    assert first(specs["out"]) is T.read("x", [0, 0])
    assert t.op == "max" and len(t.args) == 15


# ---- undefined values and errors


@triton.jit
def careless_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + i, mask=i < n), 0))


@case(x="f32[N]")
def careless(x):
    out = torch.empty(2)
    careless_kernel[(1,)](x, out, x.numel(), BLOCK=8)
    return out


def test_undefined_lanes_and_elements_are_terms():
    trace = capture(careless, {"N": 5})
    (s,) = spec(trace)
    total, never = (TERMS[i] for i in s.ids)
    assert "undefined(masked load at" in repr(total) and never.op == "undef"
    assert np.isnan(replay(trace, trace.samples)["out"]).all()


@triton.jit
def far_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i + 1))


@case(x="f32[8]")
def far(x):
    out = torch.empty(8)
    far_kernel[(1,)](x, out, BLOCK=8)
    return out


def test_out_of_bounds_names_place_and_tensor():
    with pytest.raises(
        OutOfBounds, match=r"at .*test_interpret.py:\d+:\d+: element 8 of input:x, which has 8 elements"
    ):
        spec(capture(far, {}))


@triton.jit
def assembly_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.inline_asm_elementwise("mad.wide.u16 $0, $1, 3;", "=r,r", [tl.load(x + i)], tl.float32, True, 1)
    tl.store(out + i, v)


@case(x="f32[8]")
def assembly(x):
    out = torch.empty(8)
    assembly_kernel[(1,)](x, out, BLOCK=8)
    return out


def test_unknown_assembly_is_named():
    trace = capture(assembly, {})
    with pytest.raises(Unsupported, match="mad.wide.u16"):
        spec(trace)
    assert [name for name, _ in missing(trace.launches[0].module())] == ["inline assembly 'mad.wide.u16 $0, $1, 3;'"]


# ---- several launches, torch operations, random numbers


@case(x="f32[M,N]", y="f32[M,N]")
def composed(x, y):
    x = (x * 2).t().contiguous()
    out = torch.empty_like(x)
    add_kernel[(2,)](x, y.t().contiguous(), out, x.numel(), BLOCK=16)
    return out.t().sum(1)


def test_torch_operations_between_launches():
    run(composed, lambda x, y: (2 * x + y).sum(1), M=3, N=5)


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)


@case(x="f32[N]", seed="i32")
def dropout(x, seed):
    out = torch.empty_like(x)
    dropout_kernel[(2,)](x, out, x.numel(), 0.5, seed, BLOCK=16)
    return out


def test_random_numbers_stay_terms():
    trace = capture(dropout, {"N": 19, "seed": 11})
    (s,) = spec(trace)
    assert first(s) is T.where(T.make("lt", 0.5, T.make("random", 11, 0)), 2 * T.read("x", [0]), 0)
    np.testing.assert_allclose(numbers(s, trace.samples), replay(trace, trace.samples)["out"], rtol=1e-6)


@triton.jit
def softplus_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    text: tl.constexpr = """{ .reg .pred p; setp.gt.f32 p, $1, 20.; @p mov.f32 $0, $1;
        @!p mul.f32 $0, $1, 1.4426950408889634; @!p ex2.approx.ftz.f32 $0, $0; @!p add.f32 $0, $0, 0f3F800000;
        @!p lg2.approx.ftz.f32 $0, $0; @!p mul.f32 $0, $0, 0.6931471805599453; }"""
    tl.store(out + i, tl.inline_asm_elementwise(text, "=r,r", [tl.load(x + i) * 10], tl.float32, True, 1))


@case(x="f32[8]")
def softplus(x):
    out = torch.empty(8)
    softplus_kernel[(1,)](x, out, BLOCK=8)
    return out


def test_straight_line_assembly():
    run(softplus, lambda x: torch.nn.functional.softplus(10 * x))
