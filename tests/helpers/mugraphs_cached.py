"""µGraphs by hand: attention to tokens of a cache and to new ones, whose scores have an exponential each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mugraphs import IN, load, op, program, tensor

from trilift.lift.terms import construct as T
from trilift.superopt.mugraph.graph import Dim, Kernel, MuGraph, Operator
from trilift.superopt.program.abstract import function
from trilift.superopt.program.program import Input, Node, Program, node, source

INPUTS = {"q": "md", "keys": "sd", "values": "se", "new_keys": "ld", "new_values": "le"}
PARTS = Dim("s", True)


def exponential(keys: str, axis: str) -> Node:
    return node("exp", node("sum", node("mul", source("q", "md"), source(keys, f"{axis}d")), attr="d"))


def weighed(e: Node, values: str, axis: str) -> Node:
    return node("sum", node("mul", e, source(values, f"{axis}e")), attr=axis)


def attended() -> Node:
    """(sum_s exp(q keys) values + sum_l exp(q new_keys) new_values) / (sum_s exp(q keys) + sum_l exp(q new_keys))"""
    old, new = exponential("keys", "s"), exponential("new_keys", "l")
    top = node("add", weighed(old, "values", "s"), weighed(new, "new_values", "l"))
    return node("div", top, node("add", node("sum", old, attr="s"), node("sum", new, attr="l")))


def scores(keys: str, values: str, axis: str, inside: bool, suffix: str) -> tuple[Operator, ...]:
    """Of the tokens of one tile: p v and the sum of p."""
    s, p, pv, row = (f"{n}{suffix}" for n in ("s", "p", "pv", "row"))
    return (
        op(s, "dot", f"q {keys}", ["m", axis], "d", inside), op(p, "exp", s, ["m", axis], inside=inside),
        op(pv, "dot", f"{p} {values}", "me", axis, inside), op(row, "sum", p, "m", axis, inside),
    )  # fmt: skip


def looped(axis: str, keys: str, values: str, suffix: str, parts: Sequence[Dim] = ()) -> tuple[Operator, ...]:
    """The same in a loop."""
    return (
        *scores(keys, values, axis, IN, suffix),
        op(f"acc{suffix}", "accumulate", f"pv{suffix}", [*parts, "m", "e"], axis, IN),
        op(f"total{suffix}", "accumulate", f"row{suffix}", [*parts, "m"], axis, IN),
    )


ADDED = (
    op("both", "add", "acc_s pv_l", "me"), op("all", "add", "total_s row_l", "m"),
    op("y", "div", "both all", "me"), op("out", "store", "y", "me"),
)  # fmt: skip
WHOLE = {"d": "whole", "e": "whole"}
TILES = {"m": 16, "s": 32, "l": 16, "d": 64, "e": 32}


def kernel(name: str, modes: dict[str, str], operators: Sequence[Operator], **tiles: int) -> Kernel:
    return Kernel(name, modes, {a: (TILES | tiles)[a] for a in modes}, tuple(operators))  # type: ignore[arg-type]


def cached() -> MuGraph:
    """One kernel: a loop over the cache, the new tokens in one tile after it."""
    block = (
        load("q", "md"), load("keys", "sd", IN), load("values", "se", IN), load("new_keys", "ld"),
        load("new_values", "le"), *looped("s", "keys", "values", "_s"),
        *scores("new_keys", "new_values", "l", False, "_l"), *ADDED,
    )  # fmt: skip
    k = kernel("cached_kernel", {"m": "grid", "s": "loop", "l": "whole"} | WHOLE, block)
    return MuGraph(program(INPUTS, "me", attended()), (k,), {"out": tensor("out", "me")})


def cached_split() -> MuGraph:
    """The cache in parts; a second kernel adds them and the new tokens."""
    first = (
        load("q", "md"), load("keys", "sd", IN), load("values", "se", IN),
        *looped("s", "keys", "values", "", [PARTS]),
        op("partial", "store", "acc", ["m", PARTS, "e"]), op("totals", "store", "total", ["m", PARTS]),
    )  # fmt: skip
    second = (
        load("partial", ["m", PARTS, "e"]), load("totals", ["m", PARTS]), load("q", "md"), load("new_keys", "ld"),
        load("new_values", "le"), op("acc_s", "sum", "partial", "me", "s"), op("total_s", "sum", "totals", "m", "s"),
        *scores("new_keys", "new_values", "l", False, "_l"), *ADDED,
    )  # fmt: skip
    one = kernel("cached_kernel", {"m": "grid", "s": "split"} | WHOLE, first)
    two = kernel("combine_kernel", {"m": "grid", "s": "whole", "l": "whole"} | WHOLE, second, s=4)
    tensors = {
        "partial": tensor("partial", ["m", PARTS, "e"], "f32"), "totals": tensor("totals", ["m", PARTS], "f32"),
        "out": tensor("out", "me"),
    }  # fmt: skip
    return MuGraph(program(INPUTS, "me", attended()), (one, two), tensors, {"s": 4})


def cached_apart() -> MuGraph:
    """Both in loops, in two kernels; a third one adds."""
    kernels, tensors = [], {"out": tensor("out", "me")}
    for axis, keys, values in (("s", "keys", "values"), ("l", "new_keys", "new_values")):
        block = (
            load("q", "md"), load(keys, [axis, "d"], IN), load(values, [axis, "e"], IN),
            *looped(axis, keys, values, ""), op(f"acc_{axis}", "store", "acc", "me"),
            op(f"total_{axis}", "store", "total", "m"),
        )  # fmt: skip
        kernels.append(kernel(f"{keys}_kernel", {"m": "grid", axis: "loop"} | WHOLE, block))
        tensors |= {n: tensor(n, d, "f32") for n, d in ((f"acc_{axis}", "me"), (f"total_{axis}", "m"))}
    last = (
        load("acc_s", "me"), load("total_s", "m"), load("acc_l", "me"), load("total_l", "m"),
        op("both", "add", "acc_s acc_l", "me"), op("all", "add", "total_s total_l", "m"), *ADDED[2:],
    )  # fmt: skip
    kernels.append(kernel("added_kernel", {"m": "grid", "e": "whole"}, last))
    return MuGraph(program(INPUTS, "me", attended()), tuple(kernels), tensors)


# ---- other groups ----------------------------------------------------------------------------------------------------

SOFTMAX = {"q": "md", "keys": "sd", "values": "se"}
READ = (load("q", "md"), load("keys", "sd", IN), load("values", "se", IN))
LOOP = {"m": "grid", "s": "loop"} | WHOLE


def graph(of: Program, *kernels: Kernel, **stored: str) -> MuGraph:
    """Outputs in their types, what is between kernels in 32 bits."""
    types = {name: dtype for name, *_, dtype in of.outputs}
    return MuGraph(of, kernels, {n: tensor(n, axes, types.get(n, "f32")) for n, axes in stored.items()})


def softmax(e: Node, axis: str = "s") -> Node:
    return node("div", weighed(e, "values", axis), node("sum", e, attr=axis))


def with_importance() -> MuGraph:
    """Attention to a cache and new tokens, and what each token of the cache weighs over all queries, in a second kernel
    that has its exponentials anew."""
    old, new = exponential("keys", "s"), exponential("new_keys", "l")
    total = node("add", node("sum", old, attr="s"), node("sum", new, attr="l"))
    importance = node("sum", node("div", old, total), attr="m")
    of = program(INPUTS, "me", attended())
    of = replace(of, outputs=(*of.outputs, ("importance", ("s",), importance, "f32")))
    (first,) = cached().kernels
    first = replace(first, operators=(*first.operators, op("totals", "store", "all", "m")))
    second = (
        load("q", "md", IN), load("totals", "m", IN), load("keys", "sd"), op("s_s", "dot", "q keys", "ms", "d", IN),
        op("p", "exp", "s_s", "ms", inside=IN), op("w", "div", "p totals", "ms", inside=IN),
        op("row", "sum", "w", "s", "m", IN), op("acc", "accumulate", "row", "s", "m", IN),
        op("importance", "store", "acc", "s"),
    )  # fmt: skip
    two = kernel("importance_kernel", {"m": "loop", "s": "grid", "d": "whole"}, second)
    return graph(of, first, two, out="me", totals="m", importance="s")


def at_two_temperatures() -> MuGraph:
    """Two softmaxes of one loop, an output each: two groups."""
    old = exponential("keys", "s")
    half = node("scale", old.args[0], attr=T.const(0.5))
    warm = node("exp", half)
    of = program(SOFTMAX, "me", softmax(old))
    of = replace(of, outputs=(*of.outputs, ("warm", ("m", "e"), softmax(warm), "f16")))
    block = (
        *READ, *looped("s", "keys", "values", ""), op("half", function(half), "s", "ms", inside=IN),
        op("p2", "exp", "half", "ms", inside=IN), op("pv2", "dot", "p2 values", "me", "s", IN),
        op("row2", "sum", "p2", "m", "s", IN), op("acc2", "accumulate", "pv2", "me", "s", IN),
        op("total2", "accumulate", "row2", "m", "s", IN),
        op("y", "div", "acc total", "me"), op("y2", "div", "acc2 total2", "me"),
        op("out", "store", "y", "me"), op("warm", "store", "y2", "me"),
    )  # fmt: skip
    return graph(of, kernel("temperatures_kernel", LOOP, block), out="me", warm="me")


def gated() -> MuGraph:
    """A softmax times 1 / (1 + exp(x)): no factor of the second exponential leaves the output as it is."""
    one = node(
        "map", node("add", node("exp", source("gate", "me")), source("ones", "me")), attr=T.div(1, T.scalar("a0"))
    )
    of = program(SOFTMAX | {"gate": "me", "ones": "me"}, "me", node("mul", softmax(exponential("keys", "s")), one))
    block = (
        *READ, load("gate", "me"), load("ones", "me"), *looped("s", "keys", "values", ""),
        op("x", "exp", "gate", "me"), op("more", "add", "x ones", "me"), op("less", function(one), "more", "me"),
        op("y", "div", "acc total", "me"), op("z", "mul", "y less", "me"), op("out", "store", "z", "me"),
    )  # fmt: skip
    return graph(of, kernel("gated_kernel", LOOP, block), out="me")


def with_sink() -> MuGraph:
    """A softmax with one more score that has no value: an exponential that nothing sums."""
    old, sink = exponential("keys", "s"), node("exp", source("sink", "m"))
    value = node("div", weighed(old, "values", "s"), node("add", node("sum", old, attr="s"), sink))
    block = (
        *READ, load("sink", "m"), *looped("s", "keys", "values", ""), op("more", "exp", "sink", "m"),
        op("all", "add", "total more", "m"), op("y", "div", "acc all", "me"), op("out", "store", "y", "me"),
    )  # fmt: skip
    return graph(program(SOFTMAX | {"sink": "m"}, "me", value), kernel("sink_kernel", LOOP, block), out="me")


def squared() -> MuGraph:
    """The sum of squares of the weights of a softmax, in whole rows."""
    old = exponential("keys", "s")
    value = node("div", node("sum", node("sqr", old), attr="s"), node("sqr", node("sum", old, attr="s")))
    block = (
        load("q", "md"), load("keys", "sd"), op("s_s", "dot", "q keys", "ms", "d"), op("p", "exp", "s_s", "ms"),
        op("p2", "sqr", "p", "ms"), op("a", "sum", "p2", "m", "s"), op("b", "sum", "p", "m", "s"),
        op("b2", "sqr", "b", "m"), op("y", "div", "a b2", "m"), op("out", "store", "y", "m"),
    )  # fmt: skip
    k = kernel("squared_kernel", {"m": "grid", "s": "whole", "d": "whole"}, block)
    return graph(program({"q": "md", "keys": "sd"}, "m", value), k, out="m")


def of_twice_the_scores() -> MuGraph:
    """The squares of the weights of a softmax, summed over queries: exp(2 S) / (sum of exp(S))^2."""
    old = exponential("keys", "s")
    twice = node("scale", old.args[0], attr=T.const(2))
    weights = node("div", node("exp", twice), node("sqr", node("sum", old, attr="s")))
    block = (
        load("q", "md"), load("keys", "sd"), op("s_s", "dot", "q keys", "ms", "d"),
        op("twice", function(twice), "s_s", "ms"), op("r", "exp", "twice", "ms"), op("p", "exp", "s_s", "ms"),
        op("b", "sum", "p", "m", "s"), op("b2", "sqr", "b", "m"), op("w", "div", "r b2", "ms"),
        op("y", "sum", "w", "s", "m"), op("out", "store", "y", "s"),
    )  # fmt: skip
    k = kernel("twice_kernel", {"m": "whole", "s": "whole", "d": "whole"}, block)
    of = program({"q": "md", "keys": "sd"}, "s", node("sum", weights, attr="m"))
    return graph(of, k, out="s")


def two_keys() -> MuGraph:
    """Two exponentials that are added in the loop which sums them."""
    other = node("exp", node("sum", node("mul", source("q", "md"), source("others", "sd")), attr="d"))
    e = node("add", exponential("keys", "s"), other)
    block = (
        *READ, load("others", "sd", IN),
        op("s_s", "dot", "q keys", "ms", "d", IN), op("p", "exp", "s_s", "ms", inside=IN),
        op("t_s", "dot", "q others", "ms", "d", IN), op("r", "exp", "t_s", "ms", inside=IN),
        op("pr", "add", "p r", "ms", inside=IN), op("pv", "dot", "pr values", "me", "s", IN),
        op("row", "sum", "pr", "m", "s", IN), op("acc", "accumulate", "pv", "me", "s", IN),
        op("total", "accumulate", "row", "m", "s", IN),
        op("y", "div", "acc total", "me"), op("out", "store", "y", "me"),
    )  # fmt: skip
    return graph(program(SOFTMAX | {"others": "sd"}, "me", softmax(e)), kernel("keys_kernel", LOOP, block), out="me")


def masked() -> MuGraph:
    """Attention to tokens of a cache before a query, of which the first has none, and to new tokens up to it; the cache
    in parts."""
    m, s, l = (T.axis(T.Axis(a, T.size(a.upper()))) for a in "msl")  # noqa: E741
    masks = {"before": T.where(T.make("lt", s, m), 0.0, -math.inf), "upto": T.where(T.make("le", l, m), 0.0, -math.inf)}
    shifted = T.add(T.scalar("a0"), T.scalar("a1"))
    exps = {}
    for name, keys, axis in (("before", "keys", "s"), ("upto", "new_keys", "l")):
        qk = node("sum", node("mul", source("q", "md"), source(keys, f"{axis}d")), attr="d")
        exps[axis] = node("exp", node("map", qk, source(name, f"m{axis}"), attr=shifted))
    top = node("add", weighed(exps["s"], "values", "s"), weighed(exps["l"], "new_values", "l"))
    value = node("div", top, node("add", *(node("sum", exps[a], attr=a) for a in "sl")))
    of = program(INPUTS, "me", value)
    axes = {"before": ("m", "s"), "upto": ("m", "l")}
    of = replace(of, inputs=(*of.inputs, *(Input(n, n, axes[n], "f32", t) for n, t in masks.items())))
    g = cached_split()
    one, two = g.kernels
    kernels = (_masked(one, "s", "before", "s"), _masked(two, "s_l", "upto", "l"))
    return replace(g, program=of, kernels=kernels)


def _masked(k: Kernel, s: str, mask: str, axis: str) -> Kernel:
    """The kernel with a mask added to its scores."""
    template = node("map", source("x", ""), source("y", ""), attr=T.add(T.scalar("a0"), T.scalar("a1")))
    out = [load(mask, ["m", axis], axis == "s")]
    for o in k.operators:
        out.append(replace(o, args=tuple("placed" if a == s else a for a in o.args)))
        if o.out == s:
            out.append(Operator("placed", function(template), (s, mask), o.dims, inside=o.inside))
    return replace(k, operators=tuple(out))
