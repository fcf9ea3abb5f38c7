"""µGraphs by hand: attention to tokens of a cache and to new ones, whose scores have an exponential each."""

from __future__ import annotations

from collections.abc import Sequence

from mugraphs import IN, load, op, program, tensor

from superopt.mugraph import Dim, Kernel, MuGraph, Operator
from superopt.program import Node, node, source

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
        op(f"acc{suffix}", "accumulate", f"pv{suffix}", [*parts, "m", "e"], axis),
        op(f"total{suffix}", "accumulate", f"row{suffix}", [*parts, "m"], axis),
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
