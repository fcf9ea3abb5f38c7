"""The typed IR: lowering kernels, parsing types, attributes, blocks and places."""

from __future__ import annotations

import math
import struct
import time

import numpy as np
import pytest
import triton
import triton.language as tl

from trilift.lift.errors import Unsupported
from trilift.lift.ttir import attributes, lower, reader
from trilift.lift.ttir.ir import Module, Op, Type


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit(noinline=True)
def scaled(x, factor):
    return x * factor


@triton.jit
def early_exit(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if n == 0:
        return
    acc = tl.full((BLOCK,), float("-inf"), tl.float32)
    for j in range(n):
        acc = larger(acc, tl.load(x_ptr + i + j, mask=i < n, other=0.1))
    tl.store(y_ptr + i, acc, mask=i < n)


@triton.jit
def reductions(x_ptr, y_ptr, count_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    best = tl.argmax(x, 0)
    total = scaled(tl.sum(tl.cumsum(x, 0), 0), 2.0)
    while total > 1.0:
        total = total * 0.5
    tl.atomic_add(count_ptr, 1, sem="relaxed")
    tl.store(y_ptr, total.to(tl.float8e4nv).to(tl.float32) + best)


@triton.jit
def tuples(pair, scale, y_ptr, unused, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, BLOCK) * pair[1], tl.load(pair[0]) * scale)


@triton.jit
def broken(x_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 8, "BLOCK is too small")
    tl.store(x_ptr + tl.arange(0, BLOCK), 0.0)


EARLY = {"x_ptr": "*fp32", "y_ptr": "*bf16", "n": "i32", "BLOCK": "constexpr"}
REDUCTIONS = {"x_ptr": "*fp32", "y_ptr": "*fp32", "count_ptr": "*i32", "BLOCK": "constexpr"}


def lowered(fn: object, signature: dict, **constexprs: object) -> Module:
    return lower.lower(fn, signature, constexprs, {"num_warps": 4})


def named(module: Module, name: str) -> list[Op]:
    return [op for op in module.walk() if op.name == name]


def show(module: Module) -> str:
    """The parsed module as text: what the golden files hold, lines counted from the first kernel."""
    lines = []
    for function in module.functions.values():
        lines.append(f"{'public ' if function.public else ''}{function.name}({', '.join(map(repr, function.args))})")
        for op in function.body.walk():
            results = ", ".join(map(repr, op.results))
            operands = ", ".join(v.name for v in op.operands)
            to = "".join(f" {label}({', '.join(v.name for v in values)})" for label, values in op.successors)
            place = (
                f"  @{op.place.line - early_exit.starting_line_number}"
                if op.place and op.place.file == __file__
                else ""
            )
            lines.append(f"  {results}{' = ' if results else ''}{op.name}({operands}){to} {op.attrs}{place}")
    return "\n".join(lines) + "\n"


def test_golden(golden):
    if not triton.__version__.startswith("3.9"):
        pytest.skip("the golden text is that of triton 3.9")
    golden("ir/early_exit.txt", show(lowered(early_exit, EARLY, BLOCK=8)))


def test_graph_of_an_early_return():
    module = lowered(early_exit, EARLY, BLOCK=8)
    blocks = module.entry.body.blocks
    (branch,) = named(module, "cf.cond_br")
    assert [b.label for b in blocks][1:] == [label for label, _ in branch.successors]
    assert len(branch.operands) == 1 and branch.operands[0].owner.attrs["predicate"] == "eq"
    (loop,) = named(module, "scf.for")
    induction, carried = loop.regions[0].blocks[0].args
    assert induction.type.element == "i32" and carried.type == loop.results[0].type and carried.index == 1
    values = [op.attrs["value"] for op in named(module, "arith.constant")]
    assert -math.inf in values and struct.unpack("f", struct.pack("f", 0.1))[0] in values


def test_places_are_call_chains():
    (op,) = named(lowered(early_exit, EARLY, BLOCK=8), "arith.maxnumf")
    user = [f for f in op.frames if f.file == __file__]
    assert [f.line for f in user] == [larger.starting_line_number + 2, early_exit.starting_line_number + 7]
    assert op.place == user[0]


def test_functions_regions_and_enumerations():
    module = lowered(reductions, REDUCTIONS, BLOCK=16)
    assert module.entry.name == "reductions" and len(module.functions) == 2
    (call,) = named(module, "tt.call")
    assert not module.functions[call.attrs["callee"]].public
    (arg_max, total) = named(module, "tt.reduce")
    assert [len(arg_max.results), len(total.results)] == [2, 1] and arg_max.attrs["axis"] == 0
    assert arg_max.results[0].name.endswith("#0")
    (atomic,) = named(module, "tt.atomic_rmw")
    assert (atomic.attrs["atomic_rmw_op"], atomic.attrs["sem"], atomic.attrs["scope"]) == ("add", "relaxed", "gpu")
    (loop,) = named(module, "scf.while")
    assert [len(r.blocks) for r in loop.regions] == [1, 1]
    (cast,) = [op for op in named(module, "tt.fp_to_fp") if op.results[0].type.bits == 8]
    assert cast.results[0].type.is_float and cast.attrs["rounding"] == "rtne"


def test_operands_are_the_values_that_were_defined():
    for module in (lowered(early_exit, EARLY, BLOCK=8), lowered(reductions, REDUCTIONS, BLOCK=16)):
        for op in module.walk():
            for value in op.operands:
                owner = value.owner
                assert value in (owner.results if isinstance(owner, Op) else owner.args)


def test_arguments_of_tuples_and_constants():
    signature = {"pair": ("*fp32", "constexpr"), "scale": "constexpr", "y_ptr": "*fp32", "unused": "constexpr"}
    args = {"pair": ("p", 1), "scale": 2.0, "y_ptr": "q", "unused": None, "BLOCK": 4}
    constexprs = {(0, 1): 1, (1,): 2.0, (3,): None, (4,): 4}
    signature, constexprs = lower.unspecialise(tuples, {**signature, "BLOCK": "constexpr"}, constexprs, args)
    assert signature["pair"] == ("*fp32", "i32") and (0, 1) not in constexprs and constexprs[(3,)] is None
    module = lower.lower(tuples, signature, constexprs, {})
    assert [v.type.element for v in module.entry.args] == ["ptr", "i32", "ptr"]
    assert [x for k, v in args.items() for x in lower.leaves(signature[k], v)] == ["p", 1, "q"]


@pytest.mark.parametrize(("value", "kind"), [(1, "i32"), (2**31, "i64"), (2**63, "u64"), (-(2**31), "i32")])
def test_unspecialised_integers(value, kind):
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "constexpr", "BLOCK": "constexpr"}
    args = {"x_ptr": 0, "y_ptr": 0, "n": value, "BLOCK": 4}
    found, constexprs = lower.unspecialise(early_exit, signature, {(2,): value, (3,): 4}, args)
    assert found["n"] == kind and found["BLOCK"] == "constexpr" and constexprs == {(3,): 4}


def test_lowered_once():
    assert lowered(early_exit, EARLY, BLOCK=8) is lowered(early_exit, EARLY, BLOCK=8)
    assert lowered(early_exit, EARLY, BLOCK=8) is not lowered(early_exit, EARLY, BLOCK=16)


def test_a_kernel_that_does_not_compile():
    for _ in range(2):
        with pytest.raises(Unsupported) as caught:
            lowered(broken, {"x_ptr": "*fp32", "BLOCK": "constexpr"}, BLOCK=8)
        assert "kernel broken does not compile on triton 3." in str(caught.value)
        assert caught.value.why == "BLOCK is too small"
        assert caught.value.place.line == broken.starting_line_number + 2


def test_a_file(tmp_path):
    path = tmp_path / "double.ttir"
    path.write_text(
        "module { tt.func public @double(%x: !tt.ptr<f32>, %n: i32) { %0 = tt.load %x : !tt.ptr<f32>\n"
        "%1 = arith.addf %0, %0 : f32\n tt.store %x, %1 : !tt.ptr<f32>\n tt.return } }"
    )
    module = lower.lower_file(path)
    assert [op.name for op in module.walk()] == ["tt.load", "arith.addf", "tt.store", "tt.return"]
    assert named(module, "tt.store")[0].place.line == 3
    path.write_text("module { tt.func public @double( }")
    with pytest.raises(Unsupported, match=r"double\.ttir is not Triton IR"):
        lower.lower_file(path)


@pytest.mark.parametrize(
    ("text", "element", "shape", "bits"),
    [
        ("f32", "f32", (), 32),
        ("i1", "i1", (), 1),
        ("index", "index", (), 64),
        ("tensor<4x8xbf16>", "bf16", (4, 8), 16),
        ("tensor<4xf8E4M3FN>", "f8E4M3FN", (4,), 8),
        ("f8E5M2", "f8E5M2", (), 8),
        ("!tt.ptr<f32>", "ptr", (), 64),
        ("!tt.ptr<i8, 3>", "ptr", (), 64),
        ("tensor<2x4x!tt.ptr<f16>>", "ptr", (2, 4), 64),
        ("!tt.ptr<tensor<16x32xf16>>", "ptr", (), 64),
        ("!tt.tensordesc<tensor<8x16xf16>>", "tensordesc", (), 64),
        ("!tt.tensordesc<8x16xf16>", "tensordesc", (), 64),
    ],
)
def test_types(text, element, shape, bits):
    kind = attributes.type_of(text)
    assert (kind.element, kind.shape, kind.bits, kind.text) == (element, shape, bits, text)
    assert kind.is_float == (element[0] == "f" or element == "bf16")
    assert kind.is_int == (element in ("i1", "index"))


def test_pointees():
    assert attributes.type_of("tensor<2x!tt.ptr<f16>>").pointee == Type("f16", text="f16")
    assert attributes.type_of("!tt.ptr<tensor<16x32xf16>>").pointee.shape == (16, 32)
    assert attributes.type_of("!tt.tensordesc<8x16xf16>").pointee.shape == (8, 16)


def test_signatures():
    operands, results = attributes.signature("(tensor<4xi32>, !tt.ptr<f32, 1>) -> (i1, f32)")
    assert [t.element for t in operands + results] == ["i32", "ptr", "i1", "f32"]
    assert attributes.signature("() -> ()") == ((), ())
    assert [t.element for t in attributes.signature("(f32) -> f64")[1]] == ["f64"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 : i32", 1),
        ("-3 : i64", -3),
        ("true", True),
        ("5.000000e-01 : f32", 0.5),
        ("0xFF800000 : f32", -math.inf),
        ("0xFF80 : bf16", -math.inf),
        ("0x7C00 : f16", math.inf),
        ("9.99999997E-7 : f32", float(np.float32(1e-6))),
        ("dense<0xFF800000> : tensor<8xf32>", -math.inf),
        ("dense<true> : tensor<8xi1>", True),
        ("array<i32: 1, 0, 2>", (1, 0, 2)),
        ("array<i32>", ()),
        ("#arith.fastmath<none>", "none"),
        ('"a\\0A\\22b"', 'a\n"b'),
        ("@helper", "helper"),
        ('@"helper.<x>"', "helper.<x>"),
        ("[1 : i32, {a = 2 : i32, b}]", (1, {"a": 2, "b": True})),
        ("() -> ()", ((), ())),
        ("f32", Type("f32", text="f32")),
    ],
)
def test_attributes(text, value):
    assert attributes.operation("x", f" <{{value = {text}}}>") == {"value": value}


def test_attributes_of_both_lists():
    text = ' <{cond = "x > {", axis = 0 : i32}> {tt.divisibility = 16 : i32, "ttg.num-warps" = 4 : i32}'
    found = attributes.operation("x", text)
    assert found == {"cond": "x > {", "axis": 0, "tt.divisibility": 16, "ttg.num-warps": 4}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dense<[[1, -2], [3, 4]]> : tensor<2x2xi32>", [[1, -2], [3, 4]]),
        ("dense<[true, false]> : tensor<2xi1>", [True, False]),
        ("dense<[0xFF800000, 1.500000e+00]> : tensor<2xf32>", [-math.inf, 1.5]),
        ('dense<"0x0000803F000000C0"> : tensor<2xf32>', [1.0, -2.0]),
        ('dense<"0x803F00C0"> : tensor<2xbf16>', [1.0, -2.0]),
        ('dense<"0x01000000FEFFFFFF"> : tensor<2xi32>', [1, -2]),
    ],
)
def test_dense_arrays(text, value):
    found = attributes.operation("x", f" <{{value = {text}}}>")["value"]
    assert found.tolist() == value


@pytest.mark.parametrize("element", sorted(attributes.FLOATS))
def test_float_bits(element):
    torch = pytest.importorskip("torch")
    names = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "f8E4M3": None, "f4E2M1FN": None}
    names |= {"f8E5M2": "float8_e5m2", "f8E4M3FN": "float8_e4m3fn", "f8E5M2FNUZ": "float8_e5m2fnuz"}
    names |= {"f8E4M3FNUZ": "float8_e4m3fnuz", "f8E4M3B11FNUZ": None}
    if names[element] is None:
        pytest.skip("torch does not have it")
    bits = sum(attributes.FLOATS[element][:2]) + 1
    words = [k * ((1 << bits) // 256) + k * k % 7 * (bits > 8) for k in range(256)]
    data = b"".join(w.to_bytes(bits // 8, "little") for w in words)
    expected = torch.frombuffer(bytearray(data), dtype=getattr(torch, names[element])).to(torch.float64).numpy()
    np.testing.assert_array_equal([attributes.float_of_bits(w, element) for w in words], expected)


GRAPH = """#loc = loc("k.py":1:2)
"builtin.module"() ({
  "tt.func"() <{function_type = (i32) -> (), sym_name = "k", sym_visibility = "public"}> ({
  ^bb0(%n: i32 loc("n"(#loc))):
    "cf.br"(%n)[^bb2] : (i32) -> () loc(#loc)
  ^bb1:  // pred: ^bb2
    %0 = "scf.if"(%3) ({
      %1 = "arith.addi"(%2, %n) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32 loc(#loc)
      "scf.yield"(%1) : (i32) -> () loc(#loc)
    }, {
    }) : (i1) -> i32 loc(#loc)
    "tt.return"() : () -> () loc(#loc)
  ^bb2(%2: i32 loc(fused<"x">[#loc, #loc1])):  // 2 preds: ^bb0, ^bb2
    %3 = "arith.cmpi"(%2, %n) <{predicate = 2 : i64}> : (i32, i32) -> i1 loc(callsite("a.py":3:4 at #loc1))
    "cf.cond_br"(%3, %n)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 1>}> : (i1, i32) -> () loc(unknown)
  }) {noinline = false} : () -> () loc(#loc)
}) : () -> () loc(#loc)
#loc1 = loc("x"("b.py":5:6 to :9))
"""


def test_forward_references_in_a_graph():
    module = reader.parse(GRAPH)
    first, second, third = module.entry.body.blocks
    assert first.ops[0].successors == [("^bb2", [module.entry.args[0]])]
    (add,) = named(module, "arith.addi")
    assert add.operands[0] is third.args[0] and third.args[0].type.element == "i32"
    choice = second.ops[0]
    assert choice.operands[0] is third.ops[0].results[0] and choice.operands[0].type.element == "i1"
    assert [len(r.blocks) for r in choice.regions] == [1, 0]
    assert third.ops[1].successors == [("^bb1", []), ("^bb2", [module.entry.args[0]])]
    assert [(f.file, f.line) for f in third.ops[0].frames] == [("a.py", 3), ("b.py", 5)]
    assert third.ops[1].place is None


@pytest.mark.parametrize("text", ["", "module {}", GRAPH.replace("(%2, %n) <{over", "(%9, %n) <{over"), GRAPH[:300]])
def test_text_that_is_not_a_module(text):
    with pytest.raises(Unsupported, match="Triton IR text"):
        reader.parse(text)


def test_speed():
    text = lowered(early_exit, EARLY, BLOCK=8).text
    body = text.split("\n")
    (add,) = [line for line in body if '"tt.addptr"' in line][:1]
    long = text.replace(add, "\n".join(add.replace(" = ", f"_{k} = ", 1) for k in range(20000)) + "\n" + add)
    begin = time.perf_counter()
    assert len(list(reader.parse(long).walk())) > 20000
    assert time.perf_counter() - begin < 5
