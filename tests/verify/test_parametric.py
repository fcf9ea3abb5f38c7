"""Parametric execution: the terms of a program, with numbers filled in, do what the kernel does."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import operators
import pytest
from program_evaluation import Evaluation

from trilift.lift.capture.run import capture
from trilift.lift.capture.trace import Launch
from trilift.lift.cases.declaration import Case
from trilift.lift.errors import Unsupported
from trilift.lift.interpreter.memory import Memory
from trilift.lift.replay import execute as events
from trilift.lift.replay import torch_ops
from trilift.lift.terms import construct as T
from trilift.lift.terms.domain import FLOAT64
from trilift.lift.terms.fit import value
from trilift.lift.terms.ranges import Ranges
from trilift.lift.terms.term import Axis, Term
from trilift.lift.ttir.ir import Block, Function, Module, Op, Region, Type, Value
from trilift.verify import prove
from trilift.verify.configurations.antiunify import antiunify
from trilift.verify.execution import merge_laws
from trilift.verify.execution.bit_order import joined
from trilift.verify.execution.indexing import divided, reindexed, within
from trilift.verify.execution.parametric import execute
from trilift.verify.integers.bounded_solver import BoundedSolver
from trilift.verify.model.program import PIDS, Access, Program, pointer
from trilift.verify.model.verdict import Verdict
from trilift.verify.normal_form.algebra import Algebra
from trilift.verify.wording.program_text import listing

SMALL = {"B": 2, "H": 2, "G": 2, "M": 9, "N": 11, "K": 7, "D": 6, "V": 5, "L": 12, "T": 8}
SEVERAL = {"B": 2, "H": 2, "G": 2, "M": 37, "N": 67, "K": 41, "D": 19, "V": 29}  # several blocks and iterations
GRID = tuple(T.size(f"grid{k}") for k in range(3))
Change = Callable[[Program], Program]


def case_of(name: str) -> Case:
    from trilift.lift.capture.case_files import load

    for path in operators.FILES:
        if name in operators.names(path):
            return next(c for c in operators.cases(path) if c.name == name)
    return load(importlib.import_module("kernels_parametric").__file__ or "", [name])[0]


def symbolic(module: Module) -> list[Term | None]:
    """A symbol of its own for every number."""
    kinds = lambda t: T.BOOL if t.element == "i1" else T.REAL  # noqa: E731
    integer = lambda t: t.is_int and t.element != "i1"  # noqa: E731
    symbol = lambda v: T.size(v.name[1:]) if integer(v.type) else T.scalar(v.name[1:], kinds(v.type))  # noqa: E731
    return [None if v.type.element == "ptr" else symbol(v) for v in module.entry.args]


def dtypes(launch: Launch) -> dict[str, str]:
    args = zip(launch.module().entry.args, launch.operands, strict=True)
    return {v.name[1:]: x.dtype for v, x in args if hasattr(x, "dtype") and x.dtype[0] in "iub" and x.dtype != "bf16"}


def program_of(launch: Launch) -> Program:
    module = launch.module()
    return execute(module, symbolic(module), GRID, dtypes=dtypes(launch))


def differences(case: Case, dims: dict[str, Any], change: Change = lambda p: p) -> list[str]:
    """The buffers that the terms leave otherwise than `lift` does, over all launches."""
    trace, memory, out = capture(case, dims), Memory(FLOAT64), []
    for name, ref in trace.inputs.items():
        memory.define(ref, np.asarray(trace.samples[name]).reshape(ref.shape))
    for event in trace.events:
        if not isinstance(event, Launch):
            torch_ops.run(event, memory, Ranges())
            continue
        for x in event.operands:
            if hasattr(x, "buffer"):
                events.ensure(memory, x)
        mine = evaluated(event, memory, change)
        events.launch(event, memory, Ranges())
        out += [f.origin for f in memory.order if f.address in mine and not _close(mine[f.address], f.data)]
    return out


def evaluated(launch: Launch, memory: Memory, change: Change) -> dict[int, np.ndarray]:
    """The contents of the buffers after a launch, by address, as the terms of its program say."""
    program = change(program_of(launch))
    open_ = [op for op in program.unsupported if op.name != "tt.ptr_to_int"]  # where a descriptor's base lies
    assert not open_, open_
    symbols: dict[str, Any] = {c: x for c, x in launch.args.items() if c in launch.constexprs and type(x) is int}
    symbols |= {g.attr: n for g, n in zip(GRID, launch.grid, strict=True)}
    contents: dict[int, np.ndarray] = {}
    cells: dict[str, tuple[np.ndarray, int]] = {}
    for v, x in zip(launch.module().entry.args, launch.operands, strict=True):
        if v.type.element != "ptr":
            symbols[v.name[1:]] = x
        elif hasattr(x, "buffer") and (found := memory.find(x.address)) is not None:
            data = contents.setdefault(found.address, found.data.copy())
            cells[v.name[1:]] = data, (x.address - found.address) // found.size
    Evaluation(program, symbols, cells).launch(launch.grid)
    return contents


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    return np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)


# ---- the same numbers ------------------------------------------------------------------------------------------------

NAMES = [n for path in operators.FILES for n in operators.names(path)]
OWN = ("collatz", "early", "swapped", "of_bytes", "shapes", "called", "extremes")


@pytest.mark.parametrize("name", NAMES)
def test_terms_do_what_the_kernel_does(name: str) -> None:
    case = case_of(name)
    assert differences(case, operators.dims_of(case, SMALL)) == []


@pytest.mark.parametrize("name", ["softmax2", "matmul", "attention_causal", "layer_norm", "cumsum", "gather"])
def test_several_blocks_and_iterations(name: str) -> None:
    case = case_of(name)
    assert differences(case, operators.dims_of(case, SEVERAL)) == []


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("n", [17, 31])
def test_control_flow_and_values(name: str, n: int) -> None:
    case = case_of(name)
    assert differences(case, {"N": n, "limit": 1} if name == "early" else {"N": n}) == []


# ---- at every block size ---------------------------------------------------------------------------------------------

SIZES = (9, 20, 40)  # of the dimension that the block follows
FOLLOWS = {
    "softmax1": "N", "log_softmax": "N", "max": "N", "logsumexp": "N", "add_rms_norm": "N", "rms_norm_backward": "N",
    "cross_entropy_backward": "V", "quantise_rows": "N", "layer_norm_backward": "N", "rope_pairs": "K", "cummax": "N",
    "group_norm": "C", "top1_gating": "E",
}  # fmt: skip


def launches(case: Case, dims: dict[str, Any]) -> list[Launch]:
    return [e for e in capture(case, operators.dims_of(case, dims)).events if isinstance(e, Launch)]


def symbolic_programs(case: Case, name: str, symbol: Callable[[str], Term] = T.size) -> tuple[list[Program], list[str]]:
    """The programs of the launches with a symbol for every constexpr that follows dimension `name`, and those."""
    traced = [launches(case, SMALL | {name: n}) for n in SIZES]
    programs, names = [], []
    for same in zip(*traced, strict=True):
        first = same[0]
        blocks = [c for c in sorted(first.constexprs) if len({e.args[c] for e in same}) == len(SIZES)]
        combos = [{c: e.args[c] for c in blocks} for e in same]
        module = antiunify([e.module() for e in same], combos, {c: symbol(c) for c in blocks})
        facts = [T.make("le", 1, T.size(c)) for c in blocks]
        programs.append(execute(module, symbolic(module), GRID, facts, dtypes(first)))
        names += blocks
    return programs, names


@pytest.mark.parametrize("name", FOLLOWS)
def test_a_program_with_a_symbolic_block_is_that_at_every_block(name: str) -> None:
    case, dim = case_of(name), FOLLOWS[name]
    programs, blocks = symbolic_programs(case, dim)
    assert blocks
    for n in (12, 33):
        following = iter(programs)
        assert differences(case, operators.dims_of(case, SMALL | {dim: n}), lambda _, f=following: next(f)) == []


def test_another_block_size_differs() -> None:
    case = case_of("softmax1")
    (program,), _ = symbolic_programs(case, "N", lambda c: T.sub(T.size(c), 8))
    assert differences(case, operators.dims_of(case, SMALL | {"N": 12}), lambda _: program) != []


def test_indices_of_reshapes_with_terms() -> None:
    b, c = T.size("B"), T.size("C")
    ranges = Ranges()
    ranges.memo |= {s.id: (1, float("inf")) for s in (b, c)}
    i, j = (T.axis(Axis(n, s)) for n, s in (("i", b), ("j", c)))
    for x in (i, j):
        ranges.memo[x.id] = (0, float("inf"))
    linear = T.add(T.mul(i, c), j)
    assert divided(linear, c, ranges) == (i, j)
    assert divided(T.add(T.mul(j, b, 2), T.mul(2, i), 1), T.mul(2, b), ranges) == (j, T.add(T.mul(2, i), 1))
    assert divided(linear, b, ranges)[1] is T.make("mod", linear, b)
    assert not within(T.add(i, 1), b, ranges)
    assert reindexed((i, j), (b, c), (T.mul(b, c),), ranges) == (linear,)
    assert reindexed((linear,), (T.mul(b, c),), (b, c), ranges) == (i, j)


# ---- mutated programs must not ---------------------------------------------------------------------------------------


def changed(field: str, kind: str, f: Callable[[Access], Term]) -> Change:
    """The program with a field of every access of a kind replaced."""

    def change(p: Program) -> Program:
        new = [replace(a, **{field: f(a)}) if a.kind == kind else a for a in p.accesses]
        assert any(getattr(a, field) is not getattr(b, field) for a, b in zip(new, p.accesses, strict=True))
        return replace(p, accesses=tuple(new))

    return change


def swapped(term: Term, before: str, after: str) -> Term:
    return T.rewrite(term, lambda s: T.node(after, s.args, s.attr, s.type) if s.op == before else None)


MUTATIONS = {
    "value": ("softmax2", changed("value", "store", lambda a: T.add(a.value or 0, 1))),
    "guard": ("silu", changed("guard", "store", lambda a: T.const(False))),
    "fold": ("sum", changed("value", "store", lambda a: swapped(a.value or T.const(0), "sum", "amax"))),
    "product": ("layer_norm", changed("value", "store", lambda a: swapped(a.value or T.const(0), "recip", "exp"))),
    "site": ("linear_bias_relu", changed("value", "store", lambda a: swapped(a.value or T.const(0), "max", "min"))),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutated_program_differs(name: str) -> None:
    operator, change = MUTATIONS[name]
    case = case_of(operator)
    dims = operators.dims_of(case, SMALL)
    assert differences(case, dims) == []
    assert differences(case, dims, change) != []


def test_a_loop_variable_started_elsewhere_differs() -> None:
    def change(p: Program) -> Program:
        for c in p.loops[0].carries:
            first = c.init
            object.__setattr__(c, "init", lambda i, first=first: T.add(first(i), 1))
        return p

    case = case_of("matmul")
    assert differences(case, operators.dims_of(case, SEVERAL), change) != []


# ---- the text --------------------------------------------------------------------------------------------------------


def first_program(name: str, dims: dict[str, Any] = SMALL) -> Program:
    case = case_of(name)
    trace = capture(case, operators.dims_of(case, dims))
    return program_of(next(e for e in trace.events if isinstance(e, Launch)))


@pytest.mark.parametrize("name", ["softmax2", "matmul"])
def test_text_of_a_program(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"program/{name}.txt", listing(first_program(name)))


# ---- what it costs and what it says ----------------------------------------------------------------------------------


def lowered(kernel: Any, signature: dict[str, str], **constexprs: Any) -> Module:
    from trilift.lift.ttir.lower import lower

    return lower(kernel, signature | dict.fromkeys(constexprs, "constexpr"), constexprs, {})


def test_cost_does_not_depend_on_the_block_size() -> None:
    import kernels_parametric as k

    counts = []
    for block in (16, 64, 4096):
        signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "N": "i32"}
        module = lowered(k.swapped_kernel, signature, BLOCK=block)
        before = len(T.TERMS)
        execute(module, symbolic(module), GRID)
        counts.append(len(T.TERMS) - before)
    assert counts[2] <= counts[1] + 10


def test_integer_conditions_are_recorded() -> None:
    p = first_program("early")
    wraps = {listed.term for listed in p.arithmetic if listed.kind == "wrap"}
    assert T.mul(PIDS[0], 16) in wraps
    q = first_program("matmul")
    assert {r.kind for r in q.arithmetic} == {"wrap", "divisor"}
    assert all(r.bits in (32, 64) and r.term.type == T.INT for r in q.arithmetic)


def test_facts_decide_signs() -> None:
    import kernels_parametric as k

    module = lowered(k.swap_kernel, {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "N": "i32"}, BLOCK=16)
    n = T.size("N")
    assert execute(module, symbolic(module), GRID).loops[0].trips is T.make("max", 0, n)
    assert execute(module, symbolic(module), GRID, facts=[T.make("le", 1, n)]).loops[0].trips is n


def test_a_guard_holds_the_path_and_the_mask() -> None:
    stores = [a for a in first_program("early").accesses if a.kind == "store"]
    late = T.make("le", T.size("limit"), PIDS[0])
    guards = sorted((a.guard for a in stores), key=lambda g: late in g.args)
    assert len(guards) == 2
    assert late in guards[1].args
    assert {T.make("not", late), T.make("ne", PIDS[0], 1)} <= {*guards[0].args}
    for a in stores:
        inside = T.make("lt", T.add(T.mul(PIDS[0], 16), T.axis(a.lanes[0])), T.size("N"))
        assert inside in a.guard.args


def test_a_loop_is_executed_with_its_path_and_its_outer_loops() -> None:
    p = first_program("swapped", {"N": 20})
    outer, inner = p.loops
    assert inner.outer == (outer,)
    assert inner.trips.free == {outer.counter}
    reads = [a for a in p.accesses if a.kind == "load"]
    assert [a.pointer.attr for a in reads] == ["x_ptr", "y_ptr"]
    assert all(a.loops == (outer, inner) for a in reads)


# ---- combiners of several operands -----------------------------------------------------------------------------------

A, B = ([T.scalar(f"{side}{k}") for k in range(3)] for side in "ab")
BOTH = T.add(A[0], B[0])
GUARDED = T.where(T.make("eq", BOTH, 0), 0, T.div(B[0], BOTH))
BARE = T.div(B[0], BOTH)


def united(share: Term, more: Term | int = 0, scale: int = 1) -> list[Term]:
    """Chan's join of (n, mean, M2), with b's share of the count."""
    apart = T.sub(B[1], A[1])
    squares = T.add(A[2], B[2], T.mul(apart, apart, A[0], share), more)
    return [BOTH, T.add(A[1], T.mul(apart, share)), T.mul(scale, squares)]


def weighed(row: str, safe: bool, swapped: bool = False) -> list[Term]:
    """The join of (m, s) of softmax."""
    top = T.make("max", A[0], B[0])
    zero = T.where(T.make("eq", top, -math.inf), 0, top) if safe else top
    a, b = (T.mul(x[1], T.make(row, T.sub(x[0], zero))) for x in (A, B))
    return [top, T.sub(a, b) if swapped else T.add(a, b)]


JOINS = {
    "guarded": (united(GUARDED), merge_laws.Chan(0, 1, 2, strict=False)),
    "bare": (united(BARE), merge_laws.Chan(0, 1, 2, strict=True)),
    "softmax": (weighed("exp", False), merge_laws.Softmax(0, 1, "exp", strict=True)),
    "safe softmax": (weighed("exp2", True), merge_laws.Softmax(0, 1, "exp2", strict=False)),
    "affine": ([T.mul(A[0], B[0]), T.add(T.mul(B[0], A[1]), B[1])], merge_laws.Affine(0, 1)),
    "the count added": (united(GUARDED, A[0]), None),
    "squares doubled": (united(GUARDED, scale=2), None),
    "mean of another share": (united(T.mul(2, GUARDED)), None),
    "a difference of weights": (weighed("exp", True, swapped=True), None),
    "affine in the other order": ([T.mul(A[0], B[0]), T.add(T.mul(A[0], B[1]), A[1])], None),
}


@pytest.mark.parametrize("name", JOINS)
def test_joins_are_recognised_by_algebra(name: str) -> None:
    got, expected = JOINS[name]
    assert merge_laws.join(list(zip(A, B, strict=True))[: len(got)], got) == expected


def test_an_unguarded_join_needs_samples_that_are_not_empty() -> None:
    fold = lambda name, f: T.fold(name, Axis("k", T.const(4)), f(T.axis(Axis("k", T.const(4)))))  # noqa: E731
    unknown = [T.scalar("unknown")] * 3
    counts = T.where(T.make("lt", T.axis(Axis("k", T.const(4))), 2), 1, 0)
    lanes = [lambda k: counts, lambda k: T.read("x", (k,)), lambda k: T.const(0)]
    strict, lenient = (merge_laws.Chan(0, 1, 2, s).totals(fold, lanes, unknown)[1] for s in (True, False))
    assert strict.args[0] is not lenient.args[0]
    assert any(s.op == "where" and s.args[1:] == (T.const(0), T.const(1)) for s in strict.args[0].walk())


@pytest.mark.parametrize("name", ["spread", "log_total"])
def test_reductions_by_joins(name: str) -> None:
    case = case_of(name)
    for n in (1, 5, 17):
        assert differences(case, {"M": 3, "N": n}) == []


PROVED = {"spread": [True, True], "log_total": [True], "row_extremes": [True, True], "unbiased": [True, False]}


@pytest.mark.parametrize("name", PROVED)
def test_kernels_of_joins_are_proved(name: str) -> None:
    proofs = prove(case_of(name), fallback=False, timeout=40)
    assert [p.verdict is Verdict.PROVED for p in proofs] == PROVED[name]


# ---- atomics of floats by their bits -----------------------------------------------------------------------------


def test_atomic_maxima_of_floats_are_those_of_reals() -> None:
    case = case_of("row_extremes")
    p = first_program("row_extremes", {"M": 3, "N": 20})
    atomics = [a for a in p.accesses if a.kind not in ("load", "store")]
    assert [(a.kind, a.type.element) for a in atomics] == [("max", "f32"), ("min", "f32")]
    assert not p.unsupported
    assert differences(case, {"M": 3, "N": 20}) == []


def test_halves_of_an_atomic_maximum_that_do_not_meet_stay_apart() -> None:
    f32, i32 = Type("f32", text="f32"), Type("i32", text="i32")
    x, y = (T.read(n, (0,)) for n in "xy")
    op = Op("tt.atomic_rmw", [], [], {})

    def half(kind: str, sign: str, of: Term = x, bound: int = 0) -> Access:
        bits = T.make("bits_f32", of)
        guard = T.make(sign, bits, bound)
        return Access(kind, op, (), (), guard, pointer("p", 0), bits, i32, 0)

    def joins_to(*halves: Access) -> list[str]:
        return [a.kind for a in joined(halves, {"p": f32})[0]]

    nonnegative = replace(half("max", "lt"), guard=T.make("not", half("max", "lt").guard))
    assert joins_to(nonnegative, half("umin", "lt")) == ["max"]
    assert joins_to(nonnegative, half("umax", "lt")) == ["max", "umax"]
    assert joins_to(nonnegative, half("umin", "lt", y)) == ["max", "umin"]
    assert joins_to(nonnegative, half("umin", "lt", bound=7)) == ["max", "umin"]
    assert joins_to(half("max", "lt"), half("umin", "lt")) == ["max", "umin"]


# ---- bits in normal form -------------------------------------------------------------------------------------


def normal(t: Term, *facts: Term) -> Term:
    algebra = Algebra(BoundedSolver())
    return algebra.normal(t, algebra.context(facts)).term


@pytest.mark.parametrize("mask", [0, 1, 15, 0xF0, 0b1100110, -1, -16, -5, 0xFF00FF])
@pytest.mark.parametrize("op", ["bitand", "bitor", "bitxor"])
def test_bits_of_a_mask_are_sums_of_remainders(op: str, mask: int) -> None:
    python = {"bitand": int.__and__, "bitor": int.__or__, "bitxor": int.__xor__}[op]
    found = normal(T.make(op, T.size("x"), mask))
    assert all(s.op != op for s in found.walk())
    assert all(value(found, {"x": x}) == python(x, mask) for x in [*range(-40, 300, 7), 2**20 + 5, -(2**30) + 3])


def test_numbers_without_a_common_bit_are_added() -> None:
    x, y = T.size("x"), T.size("y")
    both = [T.make(op, T.mul(16, x), y) for op in ("bitor", "bitxor")]
    small = T.make("le", 0, y), T.make("lt", y, 16)
    assert [normal(t, *small) for t in both] == [normal(T.add(T.mul(16, x), y), *small)] * 2
    wide = T.make("le", 0, y), T.make("lt", y, 17)
    assert [normal(t, *wide).op for t in both] == ["bitor", "bitxor"]


@pytest.mark.parametrize("op", ["shl", "shr"])
def test_shifts_by_few_amounts_are_choices(op: str) -> None:
    w, i = T.size("w"), T.size("i")
    amount = T.add(T.mul(4, T.make("mod", i, 2)), 1)
    by_hand = T.where(T.make("lt", T.make("mod", i, 2), 1), T.make(op, w, 1), T.make(op, w, 5))
    other = T.where(T.make("lt", T.make("mod", i, 2), 1), T.make(op, w, 1), T.make(op, w, 4))
    for even in (True, False):
        fact = T.make("eq" if even else "ne", T.make("mod", i, 2), 0)
        found, expected = (normal(t, fact) for t in (T.make(op, w, amount), by_hand))
        assert found is expected
        assert even or normal(other, fact) is not found


# ---- what has no meaning here ----------------------------------------------------------------------------------------


OPAQUE = {
    "swap": ["scf.for", "tt.load"],
    "hashed": ["tt.elementwise_inline_asm"],
    "clipped": ["tt.reduce"],
}


@pytest.mark.parametrize(("name", "ops"), OPAQUE.items())
def test_what_has_no_meaning_is_listed_and_opaque(name: str, ops: list[str]) -> None:
    p = first_program(name, {"N": 20, "n": 5})
    assert [o.name for o in p.unsupported] == ops
    value = next(a.value for a in p.accesses if a.kind == "store")
    again = next(a.value for a in first_program(name, {"N": 20, "n": 5}).accesses if a.kind == "store")
    assert value is not again


def test_ties_without_a_rule_leave_the_position_open() -> None:
    p = first_program("any_position", {"N": 20})
    best, where = [a.value for a in p.accesses if a.kind == "store"]
    assert best is not None and where is not None
    assert best.op == "amax"
    assert where.op == "opaque"


def test_a_cycle_of_branches_is_refused() -> None:
    flag = Value("%c", Type("i1", text="i1"))
    blocks = [
        Block("^a", [flag], [Op("cf.br", [], [], {}, successors=[("^b", [])])]),
        Block("^b", [], [Op("cf.cond_br", [flag], [], {}, successors=[("^a", [flag]), ("^c", [])])]),
        Block("^c", [], [Op("tt.return", [], [], {})]),
    ]
    entry = Function("cycle", [flag], [], Region(blocks), True)
    with pytest.raises(Unsupported, match="a loop of branches"):
        execute(Module({"cycle": entry}, entry, ""), [T.scalar("c", T.BOOL)], GRID)


def test_lanes_may_have_the_name_of_a_bound_axis() -> None:
    """acc[i, j] += sum(k, acc[j, k]) at j = k must not be caught by the sum over k."""
    (c,) = first_program("crossed", {"N": 20}).loops[0].carries
    i, j = Axis("i", T.const(16)), Axis("j", T.const(16))
    plain = c.next((T.axis(i), T.axis(j)))
    over = next(s.attr for s in plain.walk() if s.op == "sum")
    caught = c.next((T.axis(i), T.axis(over)))
    assert caught is T.substitute(plain, {j: T.axis(over)})
    assert over in caught.free
