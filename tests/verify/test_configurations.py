"""Settings of cases against fresh captures: what the terms say at a shape that no term was found at."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import kernels_setting as K
import numpy as np
import pytest
import torch
from operators import FILES, cases

from trilift.lift.capture.run import capture
from trilift.lift.capture.trace import Launch, TensorRef, TorchOp, Trace
from trilift.lift.cases.declaration import make_case
from trilift.lift.cases.shapes import varied
from trilift.lift.errors import Unsupported
from trilift.lift.language.evaluate import evaluate
from trilift.lift.terms import construct as T
from trilift.lift.terms.fit import value
from trilift.verify import prove
from trilift.verify.configurations import launches
from trilift.verify.configurations.ambiguity import alternatives
from trilift.verify.configurations.antiunify import Different, _Walk, antiunify, instantiate
from trilift.verify.configurations.branching import compared, decides
from trilift.verify.configurations.host_paths import separating
from trilift.verify.configurations.launches import configurations
from trilift.verify.configurations.relations import agrees, environment
from trilift.verify.model.configuration import Configuration, HostOp, SymbolicLaunch, View

SAMPLE = (
    *("add", "histogram", "dropout", "silu_mul", "embedding", "cat", "pad", "cross_entropy", "linear_plain"),
    *("attention_causal", "matmul_descriptor", "max_pool", "rms_norm_backward", "softmax1", "gram"),
)


def fresh(c: Any, count: int = 2) -> list[Trace]:
    return [capture(c, d) for d in islice(varied(c, 3 * count, seed=77, most=20_000), count)]


def numbers(c: Any, s: Configuration, trace: Trace) -> dict[str, Any]:
    """Dims, scalars, strides, and the block sizes by their relations."""
    out: dict[str, Any] = dict(environment(c, trace))
    pairs = [(a, b) for f in s.facts if f.op == "eq" for a, b in (f.args, f.args[::-1]) if a.op == "size"]
    related = {a.attr for a, b in pairs if not b.is_const and a not in b.args}
    for launch in trace.launches:
        out |= {
            n: v
            for n, v in launch.args.items()
            if n in launch.constexprs and isinstance(v, int) and n not in out and n not in related
        }
    for _ in range(3):
        for f in s.facts:
            if f.op == "eq" and len(f.args) == 2:
                for a, b in (f.args, f.args[::-1]):
                    if a.op == "size" and a.attr not in out and (v := value(b, out)) is not None:
                        out[a.attr] = v
    for launch in trace.launches:
        out |= {n: v for n, v in launch.args.items() if n not in out and isinstance(v, int)}
    return out


def holding(c: Any, found: list[Configuration], trace: Trace) -> list[tuple[Configuration, dict[str, Any]]]:
    pairs = [(s, numbers(c, s, trace)) for s in found]
    return [(s, n) for s, n in pairs if all(value(f, n) is True for f in s.facts)]


def same_view(view: View, ref: TensorRef, n: dict[str, Any]) -> bool:
    def number(t: T.Term) -> Any:
        return value(t, n)

    strides = zip(view.strides, ref.strides, ref.shape, strict=True)
    start, rest = divmod(ref.address - ref.buffer.address, ref.itemsize)
    strided = any(s.op == "size" and str(s.attr).startswith("stride(") for s in view.buffer.length.walk())
    return (
        (number(view.offset), rest) == (start, 0)
        and tuple(map(number, view.shape)) == ref.shape
        and all(number(s) == k for s, k, size in strides if size > 1)
        and (strided or number(view.buffer.length) * ref.itemsize == ref.buffer.nbytes)
        and view.dtype == ref.dtype
    )


def check_launch(e: SymbolicLaunch, launch: Launch, n: dict[str, Any]) -> None:
    assert e.kernel == launch.kernel
    assert tuple(value(g, n) for g in e.grid) == launch.grid
    assert len(e.operands) == len(launch.operands) == len(e.module.entry.args)
    for x, seen in zip(e.operands, launch.operands, strict=True):
        if isinstance(seen, TensorRef):
            assert isinstance(x, View) and same_view(x, seen, n)
        else:
            assert isinstance(x, T.Term) and agrees(x, n, seen)
    same = instantiate(e.module, n), launch.module()
    antiunify(same, [{}, {}], {})  # raises Different where a number differs


def by_name(name: str) -> Any:
    return next(c for f in FILES for c in cases(f) if c.name == name)


def check(c: Any, found: list[Configuration], trace: Trace) -> int:
    """All launches and views of the settings that cover the shape; how many do."""
    pairs = holding(c, found, trace)
    for s, n in pairs:
        mine = [e for e in s.events if isinstance(e, SymbolicLaunch)]
        for e, launch in zip(mine, trace.launches, strict=True):
            check_launch(e, launch, n)
        assert all(same_view(s.outputs[k], ref, n) for k, ref in trace.outputs.items())
        assert all(same_view(s.inputs[k], ref, n) for k, ref in trace.inputs.items())
    return len(pairs)


@pytest.mark.parametrize("name", SAMPLE)
def test_terms_at_a_fresh_shape(name: str) -> None:
    c = by_name(name)
    found = configurations(c, configs=1)
    assert sum(check(c, found, trace) for trace in fresh(c))


def test_the_check_sees_a_wrong_grid() -> None:
    c = by_name("softmax1")
    found = configurations(c)
    trace = fresh(c, 1)[0]
    assert check(c, found, trace) == 1

    def wrong(e: Any) -> Any:
        return replace(e, grid=(e.grid[0] + 1, *e.grid[1:])) if isinstance(e, SymbolicLaunch) else e

    with pytest.raises(AssertionError):
        check(c, [replace(s, events=tuple(map(wrong, s.events))) for s in found], trace)


def test_the_configurations_are_one_setting_with_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "SINGLE_CONFIGURATIONS", 0)
    c = by_name("matmul_split_k")
    found = configurations(c)
    symbol = T.size("SPLIT_K")
    assert [f for s in found for f in s.facts if f.op == "or"] == [
        T.make("or", *(T.make("eq", symbol, k) for k in (2, 4, 8)))
    ]
    assert len({e.grid for s in found for e in s.events if isinstance(e, SymbolicLaunch)}) == 1
    for k in range(3):
        assert check(c, found, capture(c, fresh(c, 1)[0].dims, k)) == 1


# ---- launches that depend on the shape


def test_two_ways_with_the_condition_between_them() -> None:
    found = configurations(K.two_kernels)
    ways = {e.kernel: s for s in found for e in s.events if isinstance(e, SymbolicLaunch)}
    assert ways.keys() == {"copy_kernel", "scale_kernel"}
    short = T.make("le", T.size("N"), 1000)
    assert short in ways["copy_kernel"].facts and T.make("not", short) in ways["scale_kernel"].facts
    assert not any(k.kind == "shape" for s in found for k in s.clauses)  # together they leave out no size
    for n in (1000, 1001):
        assert check(K.two_kernels, found, capture(K.two_kernels, {"N": n})) == 1


def test_a_block_size_that_the_host_chooses_is_its_choice() -> None:
    found = configurations(K.block_from_a_table)
    wide = found[0]
    [chosen] = [f for f in wide.facts if f.op == "eq" and T.size("N") in f.walk()]
    assert T.size("BLOCK") in chosen.args and [v for v in (64, 128, 512) if T.const(v) not in chosen.walk()] == []
    assert T.make("eq", T.size("BLOCK"), T.make("next_power_of_2", T.size("BLOCK"))) in wide.facts
    for n in (299, 301, 303):
        assert check(K.block_from_a_table, found, capture(K.block_from_a_table, {"N": n})) == 1


def test_a_block_size_at_which_the_kernel_is_another() -> None:
    found = configurations(K.branch_on_the_block)
    for n in (5, 3000, 6000):
        assert check(K.branch_on_the_block, found, capture(K.branch_on_the_block, {"N": n})) == 1
    held = [holding(K.branch_on_the_block, found, capture(K.branch_on_the_block, {"N": n}))[0][0] for n in (1000, 3000)]
    counts = [[op.name for op in e.module.walk()].count("arith.addf") for s in held for e in s.events]
    assert counts == [0, 1]


@pytest.mark.slow
def test_a_kernel_that_is_unrolled_is_read_as_far_as_it_is_short() -> None:
    (proof,) = prove(K.unrolled_row, fallback=False)
    assert proof.verdict.value == "PROVED", proof.reason
    [end] = [c for c in proof.contract if c.kind == "shape"]
    assert end.text.startswith("next_power_of_2(N) <= ") and "too many operations" in end.why
    longest = int(end.text.split()[-1])
    assert longest >= 8192 and longest & (longest - 1) == 0
    (proof,) = prove(K.unrolled_row_that_ends_wrong, fallback=False)
    assert proof.verdict.value != "PROVED"


def test_a_real_constexpr_is_its_scalar() -> None:
    [s] = configurations(K.constexpr_number)
    constants = {v for e in s.events for op in e.module.walk() for v in op.attrs.values() if isinstance(v, T.Term)}
    assert constants == {T.scalar("c")}


def test_an_instance_of_the_module_is_the_module_lowered_there() -> None:
    s = configurations(by_name("softmax1"))[0]
    [e] = [e for e in s.events if isinstance(e, SymbolicLaunch)]
    trace = capture(by_name("softmax1"), {"M": 3, "N": 300})
    lowered = trace.launches[0].module()
    antiunify([instantiate(e.module, {"BLOCK": 512}), lowered], [{}, {}], {})
    with pytest.raises(Different):
        antiunify([instantiate(e.module, {"BLOCK": 256}), lowered], [{}, {}], {})


def test_numbers_of_block_sizes() -> None:
    symbols = {"A": T.size("A"), "B": T.size("B")}
    combos = [{"A": a, "B": b} for a, b in ((2, 4), (8, 4), (8, 32), (16, 2))]

    def fitted(f: Any) -> Any:
        return _Walk([], combos, symbols).fitted(tuple(f(c["A"], c["B"]) for c in combos))

    a, b = symbols.values()
    assert fitted(lambda a, b: 3 * a + 1) is 3 * a + 1
    assert fitted(lambda a, b: a // 2) is T.make("floordiv", a, 2)
    assert fitted(lambda a, b: a * b) is a * b
    assert fitted(lambda a, b: 1 / a) is T.mul(1, T.recip(a))
    assert fitted(lambda a, b: a.bit_length()) is None
    assert fitted(lambda a, b: a > 2) is None


def test_what_a_parameter_decides() -> None:
    assert decides(K.odd_at_4096_kernel, "BLOCK") and compared(K.odd_at_4096_kernel) == {4096}
    assert not decides(K.odd_at_4096_kernel, "n") and not decides(K.copy_kernel, "BLOCK")


def test_conditions() -> None:
    shapes = [{"M": m, "N": n} for m in (1, 2, 5, 64) for n in (1, 3, 128)]
    M, N = T.size("M"), T.size("N")
    assert separating([s["M"] == 1 for s in shapes], shapes, ["M", "N"]) is T.make("le", M, 1)
    assert separating([s["M"] * s["N"] <= 64 for s in shapes], shapes, ["M", "N"]) is T.make("le", M * N, 64)
    both = separating([s["M"] > 1 and s["N"] > 1 for s in shapes], shapes, ["M", "N"])
    assert both is T.make("and", T.make("le", 2, M), T.make("le", 2, N))
    assert separating([(s["M"] + s["N"]) % 5 == 2 for s in shapes], shapes, ["M", "N"]) is None


# ---- torch operations


def torch_result(
    s: Configuration, e: HostOp, op: TorchOp, held: dict[str, torch.Tensor], home: dict[int, str]
) -> list[Any]:
    """The operation by torch itself, on views of the held buffers."""

    def own(x: Any) -> Any:
        if isinstance(x, TensorRef):
            start = (x.address - x.buffer.address) // x.itemsize
            return held[home[x.buffer.address]].as_strided(x.shape, x.strides, start)
        if isinstance(x, list | tuple):
            return type(x)(map(own, x))
        return torch.float64 if isinstance(x, torch.dtype) and x.is_floating_point else x

    result = op.func(*own(op.args), **{k: own(v) for k, v in op.kwargs.items()})
    return [result] if isinstance(result, torch.Tensor) else list(result)


def test_host_operations_on_numbers() -> None:
    c = K.host_operations
    [s] = configurations(c)
    trace = capture(c, {"M": 6, "N": 9})
    n = numbers(c, s, trace)
    rng = np.random.default_rng(0)
    home = {ref.buffer.address: name for name, ref in trace.inputs.items()}
    held: dict[str, torch.Tensor] = {}
    for b in s.buffers:
        numbers_of = (
            rng.integers(0, 9, value(b.length, n)) if b.dtype[0] == "i" else rng.uniform(1, 2, value(b.length, n))
        )
        held[b.name] = torch.from_numpy(numbers_of)
    pending = [e for e in trace.events if isinstance(e, TorchOp)]
    for launch, seen in zip((e for e in s.events if isinstance(e, SymbolicLaunch)), trace.launches, strict=True):
        home |= {
            r.buffer.address: v.buffer.name
            for v, r in zip(launch.operands, seen.operands, strict=True)
            if isinstance(v, View)
        }
    names = []
    for e in (e for e in s.events if isinstance(e, HostOp)):
        op = next(p for p in pending if f"aten.{p.func.overloadpacket.__name__}" == e.name)
        pending = pending[pending.index(op) + 1 :]
        home |= {r.buffer.address: v.buffer.name for v, r in zip(e.outputs, op.outputs, strict=True)}
        arrays = {name: t.numpy().copy() for name, t in held.items()}
        for out, element, want in zip(e.outputs, e.values, torch_result(s, e, op, held, home), strict=True):
            axes = tuple(T.Axis(f"k{d}", size) for d, size in enumerate(out.shape))
            got = evaluate(element(tuple(map(T.axis, axes))), axes, arrays, n)
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-12)
        names.append(e.name)
    assert {"aten.sum", "aten.mul_", "aten.sub_", "aten.copy_", "aten.fill_", "aten.gather", "aten._to_copy"} <= set(
        names
    )


def test_zeros_are_initial_contents() -> None:
    [s] = configurations(by_name("column_sum"))
    made = next(b for b in s.buffers if b.origin == "aten.zeros")
    assert made.initial(T.size("o")) is T.const(0)
    assert (
        next(b for b in configurations(by_name("relu"))[0].buffers if b.origin.startswith("aten.empty"))
        .initial(T.size("o"))
        .op
        == "undef"
    )


@pytest.mark.parametrize(
    "c, what", [(K.reinterpreted, "is a view as i32 of f32 memory"), (K.random_in_between, "aten.rand")]
)
def test_what_has_no_meaning_is_named_with_its_place(c: Any, what: str) -> None:
    with pytest.raises(Unsupported, match=what) as error:
        configurations(c)
    assert error.value.place is not None and error.value.place.file.endswith("kernels_setting.py")


def test_views_of_strided_inputs() -> None:
    found = configurations(K.rows_of_a_view)
    trace = capture(K.rows_of_a_view, {"M": 5, "N": 7})
    assert check(K.rows_of_a_view, found, trace) == 1
    [s] = [s for s, _ in holding(K.rows_of_a_view, found, trace)]
    [e] = [e for e in s.events if isinstance(e, SymbolicLaunch)]
    beyond = T.make("where", T.make("lt", 1, T.size("M")), T.size("stride(x,0)"), 0)  # x[1:], of one row x itself
    assert isinstance(e.operands[0], View) and e.operands[0].offset is beyond
    assert any(k.kind == "layout" for k in s.clauses)


@pytest.mark.parametrize("grid", ["blocks", "heads"])
def test_a_grid_of_blocks_of_a_dim_that_squares_an_input(grid: str) -> None:
    """Weights of (H D)^2 elements leave few shapes with D beyond a block; some are looked at all the same."""
    given = K.projected if grid == "blocks" else K.projected_without_blocks
    n = {"H": 3, "D": 100, "M": 5, "ROWS": 8}
    there = [s for s in configurations(given) if not any(value(f, n) is False for f in s.facts)]
    grids = {value(e.grid[0], n) for s in there for e in s.events if isinstance(e, SymbolicLaunch)}
    assert grids == {12 if grid == "blocks" else 3}
    verdicts = {p.verdict.value for p in prove(given, fallback=grid == "blocks")}
    assert verdicts == {"PROVED" if grid == "blocks" else "UNKNOWN"}


@pytest.mark.parametrize("rows", ["sixteen", "blocks"])
def test_a_grid_that_fits_too_is_told_apart(rows: str) -> None:
    """cdiv(M, 16) and cdiv(M, BLOCK) differ only where both dims are beyond 16, which weights of (H D)^2 make rare."""
    given = K.doubled_by_sixteen if rows == "sixteen" else K.doubled_by_blocks
    [s] = configurations(given)
    [e] = [e for e in s.events if isinstance(e, SymbolicLaunch)]
    assert value(e.grid[0], {"M": 40, "H": 1, "D": 40, "BLOCK": 64}) == (3 if rows == "sixteen" else 1)
    [p] = prove(given)
    assert p.verdict.value == ("PROVED" if rows == "sixteen" else "REFUTED")


def test_rivals_of_a_term_are_those_that_fit_what_was_seen() -> None:
    M, B = T.size("M"), T.size("B")
    grid = lambda rows: T.make("floordiv", M + rows - 1, rows)  # noqa: E731
    seen = [{"M": 3, "D": 40, "B": 64}, {"M": 40, "D": 3, "B": 16}]
    assert grid(16) in set(alternatives(grid(B), [M, T.const(16), T.const(1)], seen))
    assert grid(16) not in set(
        alternatives(grid(B), [M, T.const(16), T.const(1)], [*seen, {"M": 40, "D": 40, "B": 64}])
    )


def test_dims_are_in_the_order_of_the_text_whatever_was_made_before() -> None:
    """Shapes are drawn dim by dim: another order would be other shapes."""
    for words in (("later", "former"), ("alpha", "omega"), ("omega2", "alpha2")):
        T.size(words[1])
        assert make_case("f", lambda x: x, {"x": f"f32[{words[0]}*{words[1]}]"}).names == words


def test_shapes_are_varied_where_an_input_grows_fast() -> None:
    for seed in range(4):
        found = list(varied(K.projected, 10, seed))
        assert len(found) >= 9 and len({d["D"] for d in found}) > 4 and max(d["D"] for d in found) > 32
