"""Thread graphs, and what the threads of a block exchange (Mirage, section 4.2).

An elementwise operator joins the thread graph of the operators that use its result, where that is one graph, of the
same tile and in the same loop, or between the same two. Within it values stay in registers. Other values pass between
threads

    a tile loaded in a loop for a product     copied ahead of its use, read by whoever needs it
    a tile loaded elsewhere, read by a product  likewise
    an operand of a product that is computed    stored by those who compute it, read by all; but not where the product
                                                runs asynchronously (wgmma) and this is its only such operand
    a sum or maximum over the tile              parts of it are combined

and need shared memory and a barrier; everything else is read by the thread that made it."""

from __future__ import annotations

from collections import defaultdict

from .graph import Kernel, Operator, ThreadGraph, phases

BLOCK = ("load", "store", "sum", "dot", "accumulate", "max", "accumulate_max")  # of a block, not of its elements
FOLDS = ("sum", "max")
ROWS = 64  # of the first operand of a product that runs asynchronously, which it takes from registers
Unit = ThreadGraph | Operator


def elementwise(o: Operator) -> bool:
    return o.op not in BLOCK


def sides(k: Kernel) -> dict[Operator, int]:
    """0 for what runs before the first loop, 1 in it, 2 after it, 3 in the second one ...: odd in a loop."""
    return {o: side for side, operators in enumerate(phases(k)) for o in operators}


def users(k: Kernel) -> dict[str, list[Operator]]:
    """Who reads each value."""
    out: dict[str, list[Operator]] = defaultdict(list)
    for o in k.operators:
        for a in dict.fromkeys(o.args) if o.op != "load" else ():
            out[a].append(o)
    return out


def fused(k: Kernel) -> tuple[ThreadGraph | Operator, ...]:
    """The operators with the largest thread graphs, in an order in which they can run: each thread graph where its last
    operator is. A graph of one operator stays an operator."""
    side, reads = sides(k), users(k)
    root: dict[Operator, Operator] = {}
    for o in reversed(k.operators):
        if not elementwise(o):
            continue
        roots = {root.get(u) for u in reads[o.out]}
        into = roots.pop() if len(roots) == 1 else None
        joins = into is not None and into.dims == o.dims and side[into] == side[o]
        root[o] = into if joins and into is not None else o
    members: dict[Operator, list[Operator]] = defaultdict(list)
    for o in k.operators:
        if o in root:
            members[root[o]].append(o)
    units: list[ThreadGraph | Operator] = []
    for o in k.operators:
        if o not in root:
            units.append(o)
        elif root[o] is o:
            units.append(ThreadGraph((o.out,), tuple(members[o])) if len(members[o]) > 1 else o)
    return tuple(units)


def operators(u: Unit) -> tuple[Operator, ...]:
    return u.operators if isinstance(u, ThreadGraph) else (u,)


def reads(u: Unit) -> tuple[str, ...]:
    """The values that a unit reads of others."""
    if isinstance(u, ThreadGraph):
        return u.args
    return () if u.op == "load" else u.args


def makes(u: Unit) -> tuple[str, ...]:
    """The values that others may read."""
    if isinstance(u, ThreadGraph):
        return u.outputs
    return () if u.op == "store" else (u.out,)


def copied(k: Kernel) -> frozenset[str]:
    """Loaded tiles that are in shared memory: those in a loop of which a product in it is made, and operands of
    products. Others are loaded by the threads that use them."""
    side, wanted = sides(k), set[tuple[str, int]]()
    direct = {a for o in k.operators if o.op == "dot" for a in o.args}
    for o in reversed(k.operators):
        if side[o] % 2 and o.op != "load" and (o.op == "dot" or (o.out, side[o]) in wanted):
            wanted |= {(a, side[o]) for a in o.args}
    return frozenset(o.out for o in k.loads if o.out in direct or (o.out, side[o]) in wanted)


def exchanged(k: Kernel) -> frozenset[tuple[str, Operator]]:
    """(value, who reads it) where the value passes between threads."""
    made = {o.out: o for o in k.operators if o.op != "store"}
    in_memory = copied(k) | {o.out for o in made.values() if o.op in FOLDS}
    return frozenset(
        (a, o)
        for o in k.operators
        if o.op != "load"
        for a in o.args
        if a in in_memory or (o.op == "dot" and made[a].op != "load" and not _first(k, o, made[a], made))
    )


def _first(k: Kernel, product: Operator, operand: Operator, made: dict[str, Operator]) -> bool:
    """Whether a computed operand of a product can be its first one, in registers."""
    others = [made[a] for a in product.args if a != operand.out]
    rows = max((k.extent(d) for d in operand.dims & product.dims), default=1)
    return rows >= ROWS and len(others) == 1 and others[0].op == "load"
