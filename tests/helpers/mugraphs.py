"""µGraphs by hand: the fused forms of Mirage's programs."""

from __future__ import annotations

from collections.abc import Sequence

from trilift.lift.language.definitions import named
from trilift.lift.terms import construct as T
from trilift.superopt.mugraph.graph import Dim, Kernel, MuGraph, Operator, Tensor
from trilift.superopt.program.abstract import function
from trilift.superopt.program.program import Input, Node, Program, node, source

IN = True  # the loop


def op(
    out: str, kind: str, args: str, dims: Sequence[str | Dim], over: Sequence[str] = (), inside: bool = False
) -> Operator:
    every = frozenset(d if isinstance(d, Dim) else Dim(d) for d in dims)
    return Operator(out, kind, tuple(args.split()), every, tuple(over), inside)


def load(name: str, dims: Sequence[str | Dim], inside: bool = False) -> Operator:
    return op(name, "load", name, dims, inside=inside)


def tensor(name: str, dims: Sequence[str | Dim], dtype: str = "f16") -> Tensor:
    return Tensor(name, tuple(d if isinstance(d, Dim) else Dim(d) for d in dims), dtype)


def program(inputs: dict[str, str], out: str, value: Node, dtype: str = "f16") -> Program:
    sizes = dict.fromkeys("".join(inputs.values()), 4096)
    read = tuple(Input(n, n, tuple(axes), dtype) for n, axes in inputs.items())
    return Program(read, (("out", tuple(out), value, dtype),), sizes)


def rms_norm_matmul() -> MuGraph:
    """x g / rms(x) @ w, the division after the product."""
    x, g, w = source("x", "mk"), source("g", "k"), source("w", "kn")
    product = node("sum", node("mul", node("mul", x, g), w), attr="k")
    mean = node("scale", node("sum", node("sqr", x), attr="k"), attr=T.div(1, T.size("K")))
    shifted = node("map", mean, attr=T.add(T.scalar("a0"), 1e-6))
    value = node("div", product, node("sqrt", shifted))
    block = (
        load("x", "mk", IN), load("g", "k", IN), load("w", "kn", IN),
        op("xg", "mul", "x g", "mk", inside=IN), op("p", "dot", "xg w", "mn", "k", IN),
        op("squares", "sqr", "x", "mk", inside=IN), op("row", "sum", "squares", "m", "k", IN),
        op("acc", "accumulate", "p", "mn", "k"), op("total", "accumulate", "row", "m", "k"),
        op("mean", function(mean), "total", "m"), op("shifted", function(shifted), "mean", "m"),
        op("rms", "sqrt", "shifted", "m"), op("y", "div", "acc rms", "mn"), op("out", "store", "y", "mn"),
    )  # fmt: skip
    k = Kernel("rms_norm_matmul_kernel", {"m": "grid", "n": "grid", "k": "loop"}, {"m": 16, "n": 32, "k": 32}, block)
    return MuGraph(program({"x": "mk", "g": "k", "w": "kn"}, "mn", value), (k,), {"out": tensor("out", "mn")})


def lora() -> MuGraph:
    """x @ w + (x @ a) @ b, both products into one accumulator."""
    x, w, a, b = source("x", "mk"), source("w", "kn"), source("a", "kr"), source("b", "rn")
    narrow = node("sum", node("mul", x, a), attr="k")
    wide = node("sum", node("mul", x, w), attr="k")
    value = node("add", wide, node("sum", node("mul", narrow, b), attr="r"))
    block = (
        load("x", "mk", IN), load("w", "kn", IN), load("a", "kr", IN), load("b", "rn"),
        op("p", "dot", "x w", "mn", "k", IN), op("q", "dot", "x a", "mr", "k", IN),
        op("acc", "accumulate", "p", "mn", "k"), op("xa", "accumulate", "q", "mr", "k"),
        op("xab", "dot", "xa b", "mn", "r"), op("y", "add", "acc xab", "mn"), op("out", "store", "y", "mn"),
    )  # fmt: skip
    modes, tiles = {"m": "grid", "n": "grid", "k": "loop", "r": "whole"}, {"m": 16, "n": 32, "k": 32, "r": 16}
    k = Kernel("lora_kernel", modes, tiles, block)  # type: ignore[arg-type]
    inputs = {"x": "mk", "w": "kn", "a": "kr", "b": "rn"}
    return MuGraph(program(inputs, "mn", value), (k,), {"out": tensor("out", "mn")})


def gated_mlp(swapped: bool = False) -> MuGraph:
    """silu(x @ w) * (x @ v); swapped, the kernel takes silu of the other one."""
    x, w, v = source("x", "mk"), source("w", "kn"), source("v", "kn")
    gate = node("map", node("sum", node("mul", x, w), attr="k"), attr=named("silu", T.scalar("a0")))
    value = node("mul", gate, node("sum", node("mul", x, v), attr="k"))
    first, second = ("right", "left") if swapped else ("left", "right")
    block = (
        load("x", "mk", IN), load("w", "kn", IN), load("v", "kn", IN),
        op("p", "dot", "x w", "mn", "k", IN), op("q", "dot", "x v", "mn", "k", IN),
        op("left", "accumulate", "p", "mn", "k"), op("right", "accumulate", "q", "mn", "k"),
        op("gate", function(gate), first, "mn"), op("y", "mul", f"gate {second}", "mn"), op("out", "store", "y", "mn"),
    )  # fmt: skip
    k = Kernel("gated_mlp_kernel", {"m": "grid", "n": "grid", "k": "loop"}, {"m": 16, "n": 32, "k": 32}, block)
    inputs = {"x": "mk", "w": "kn", "v": "kn"}
    return MuGraph(program(inputs, "mn", value, "bf16"), (k,), {"out": tensor("out", "mn", "bf16")})


def normalised_transformer() -> MuGraph:
    """normalise(x + alpha (normalise(h) - x)), rows whole (nTrans)."""
    x, h, alpha = source("x", "mk"), source("h", "mk"), source("alpha", "k")
    unit = node("div", h, node("sqrt", node("sum", node("sqr", h), attr="k")))
    minus = node("scale", x, attr=T.const(-1))
    y = node("add", x, node("mul", node("add", unit, minus), alpha))
    value = node("div", y, node("sqrt", node("sum", node("sqr", y), attr="k")))
    block = (
        load("x", "mk"), load("h", "mk"), load("alpha", "k"),
        op("h2", "sqr", "h", "mk"), op("hs", "sum", "h2", "m", "k"), op("hn", "sqrt", "hs", "m"),
        op("unit", "div", "h hn", "mk"), op("minus", function(minus), "x", "mk"), op("step", "add", "unit minus", "mk"),
        op("scaled", "mul", "step alpha", "mk"), op("y", "add", "x scaled", "mk"),
        op("y2", "sqr", "y", "mk"), op("ys", "sum", "y2", "m", "k"), op("yn", "sqrt", "ys", "m"),
        op("z", "div", "y yn", "mk"), op("out", "store", "z", "mk"),
    )  # fmt: skip
    k = Kernel("normalised_kernel", {"m": "grid", "k": "whole"}, {"m": 2, "k": 4096}, block)
    inputs = {"x": "mk", "h": "mk", "alpha": "k"}
    return MuGraph(program(inputs, "mk", value), (k,), {"out": tensor("out", "mk")})


def split_matmul() -> MuGraph:
    """x @ w, k in parts, a second kernel sums."""
    x, w, parts = source("x", "mk"), source("w", "kn"), Dim("k", True)
    value = node("sum", node("mul", x, w), attr="k")
    first = (
        load("x", "mk", IN), load("w", "kn", IN), op("p", "dot", "x w", "mn", "k", IN),
        op("acc", "accumulate", "p", [parts, "m", "n"], "k"), op("partial", "store", "acc", [parts, "m", "n"]),
    )  # fmt: skip
    second = (
        load("partial", [parts, "m", "n"]), op("y", "sum", "partial", "mn", "k"), op("out", "store", "y", "mn"),
    )  # fmt: skip
    one = Kernel("split_kernel", {"m": "grid", "n": "grid", "k": "split"}, {"m": 16, "n": 32, "k": 32}, first)
    two = Kernel("combine_kernel", {"m": "grid", "n": "grid", "k": "whole"}, {"m": 1, "n": 32, "k": 4}, second)
    tensors = {"partial": tensor("partial", [parts, "m", "n"], "f32"), "out": tensor("out", "mn")}
    return MuGraph(program({"x": "mk", "w": "kn"}, "mn", value), (one, two), tensors, {"k": 4})


def attention(split: bool = True) -> MuGraph:
    """exp(q k / sqrt(D)) v / sum(exp(q k / sqrt(D))), keys in parts or in one loop."""
    q, k, v = source("q", "md"), source("k", "nd"), source("v", "ne")
    scores = node("scale", node("sum", node("mul", q, k), attr="d"), attr=T.div(1, T.make("sqrt", T.size("D"))))
    p = node("exp", scores)
    value = node("div", node("sum", node("mul", p, v), attr="n"), node("sum", p, attr="n"))
    common = (
        load("q", "md"), load("k", "nd", IN), load("v", "ne", IN), op("qk", "dot", "q k", "mn", "d", IN),
        op("s", function(scores), "qk", "mn", inside=IN), op("p", "exp", "s", "mn", inside=IN),
        op("pv", "dot", "p v", "me", "n", IN), op("row", "sum", "p", "m", "n", IN),
    )  # fmt: skip
    modes, tiles = {"m": "grid", "n": "loop", "d": "whole", "e": "whole"}, {"m": 16, "n": 32, "d": 64, "e": 32}
    of = program({"q": "md", "k": "nd", "v": "ne"}, "me", value)
    if not split:
        after = (
            op("acc", "accumulate", "pv", "me", "n"), op("total", "accumulate", "row", "m", "n"),
            op("y", "div", "acc total", "me"), op("out", "store", "y", "me"),
        )  # fmt: skip
        block = Kernel("attention_kernel", modes, tiles, common + after)  # type: ignore[arg-type]
        return MuGraph(of, (block,), {"out": tensor("out", "me")})
    parts = Dim("n", True)
    first = (
        op("acc", "accumulate", "pv", ["m", parts, "e"], "n"), op("total", "accumulate", "row", ["m", parts], "n"),
        op("partial", "store", "acc", ["m", parts, "e"]), op("totals", "store", "total", ["m", parts]),
    )  # fmt: skip
    second = (
        load("partial", ["m", parts, "e"]), load("totals", ["m", parts]), op("acc", "sum", "partial", "me", "n"),
        op("total", "sum", "totals", "m", "n"), op("y", "div", "acc total", "me"), op("out", "store", "y", "me"),
    )  # fmt: skip
    one = Kernel("attention_kernel", {**modes, "n": "split"}, tiles, common + first)  # type: ignore[dict-item]
    two = Kernel("combine_kernel", {"m": "grid", "n": "whole", "e": "whole"}, {"m": 1, "n": 4, "e": 64}, second)
    tensors = {"partial": tensor("partial", ["m", parts, "e"], "f32"), "totals": tensor("totals", ["m", parts], "f32")}
    return MuGraph(of, (one, two), tensors | {"out": tensor("out", "me")}, {"n": 4})


def sums_in_lanes() -> MuGraph:
    """sum(exp(x)) and sum(x x) + eps of rows: lanes of a loop are summed after it. Two outputs, a scalar."""
    x = source("x", "mk")
    total = node("sum", node("exp", x), attr="k")
    norm = node("map", node("sum", node("sqr", x), attr="k"), attr=T.add(T.scalar("a0"), T.scalar("eps")))
    outputs = (("total", ("m",), total, "f32"), ("norm", ("m",), norm, "f32"))
    of = Program((Input("x", "x", ("m", "k"), "f32"),), outputs, {"m": 16, "k": 4096})
    block = (
        load("x", "mk", IN), op("e", "exp", "x", "mk", inside=IN), op("q", "sqr", "x", "mk", inside=IN),
        op("es", "accumulate", "e", "mk", "k"), op("qs", "accumulate", "q", "mk", "k"),
        op("s", "sum", "es", "m", "k"), op("t", "sum", "qs", "m", "k"), op("u", function(norm), "t", "m"),
        op("total", "store", "s", "m"), op("norm", "store", "u", "m"),
    )  # fmt: skip
    k = Kernel("lanes_kernel", {"m": "grid", "k": "loop"}, {"m": 4, "k": 32}, block)
    return MuGraph(of, (k,), {"total": tensor("total", "m", "f32"), "norm": tensor("norm", "m", "f32")})


def divided() -> MuGraph:
    """x / (N - 1) / s."""
    number = T.div(1, T.mul(T.scalar("s"), T.sub(T.size("N"), 1)))
    value = node("scale", source("x", "mn"), attr=number)
    block = (load("x", "mn"), op("y", function(value), "x", "mn"), op("out", "store", "y", "mn"))
    k = Kernel("divided_kernel", {"m": "grid", "n": "whole"}, {"m": 1}, block)
    return MuGraph(program({"x": "mn"}, "mn", value, "f32"), (k,), {"out": tensor("out", "mn", "f32")})


def split_row() -> MuGraph:
    """x @ w, one row of x in a block, k in parts; the second kernel's loop is over the parts."""
    g, parts = split_matmul(), Dim("k", True)
    one, two = g.kernels
    second = (
        load("partial", [parts, "m", "n"], IN), op("y", "accumulate", "partial", "mn", "k"),
        op("out", "store", "y", "mn"),
    )  # fmt: skip
    first = Kernel(one.name, one.modes, {**one.tiles, "m": 1}, one.operators)
    last = Kernel(two.name, {**two.modes, "k": "loop"}, {"m": 1, "n": 32, "k": 1}, second)
    return MuGraph(g.program, (first, last), g.tensors, g.parts)


def two_loops() -> MuGraph:
    """Attention of queries that the block projects itself: a loop over the columns of x, then one over the keys."""
    x, w, k, v = source("x", "mn"), source("w", "nd"), source("k", "sd"), source("v", "se")
    q = node("sum", node("mul", x, w), attr="n")
    p = node("exp", node("sum", node("mul", q, k), attr="d"))
    value = node("div", node("sum", node("mul", p, v), attr="s"), node("sum", p, attr="s"))
    block = (
        load("x", "mn", IN), load("w", "nd", IN), op("xw", "dot", "x w", "md", "n", IN),
        op("q", "accumulate", "xw", "md", "n"), load("k", "sd", IN), load("v", "se", IN),
        op("z", "dot", "q k", "ms", "d", IN), op("p", "exp", "z", "ms", inside=IN),
        op("pv", "dot", "p v", "me", "s", IN), op("row", "sum", "p", "m", "s", IN),
        op("acc", "accumulate", "pv", "me", "s"), op("total", "accumulate", "row", "m", "s"),
        op("y", "div", "acc total", "me"), op("out", "store", "y", "me"),
    )  # fmt: skip
    modes = {"m": "grid", "n": "loop", "s": "loop", "d": "whole", "e": "whole"}
    tiles = {"m": 16, "n": 32, "s": 32, "d": 64, "e": 64}
    kernel = Kernel("projected_kernel", modes, tiles, block)  # type: ignore[arg-type]
    inputs = {"x": "mn", "w": "nd", "k": "sd", "v": "se"}
    return MuGraph(program(inputs, "me", value), (kernel,), {"out": tensor("out", "me")})
