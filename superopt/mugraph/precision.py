"""Products whose operands, unless they are loaded 16 bits, stay in 32.

exp(s + d) = exp(s) exp(d): what 16 bits leave out of an operand is in d, which grows as s does. And a sum that is
divided by a norm only afterwards has terms that may be larger than the largest number of f16.
"""

from __future__ import annotations

from .graph import MuGraph

HALF = ("f16", "bf16")
BYTES = ("i8", "u8")  # integers that each float type holds exactly
Value = tuple[str, str]  # kernel, what it makes


def exponents(g: MuGraph) -> frozenset[Value]:
    """The values of which some exponential is made, in their kernel or through memory in a later one."""
    out: set[Value] = set()
    memory: set[str] = set()
    for k in reversed(g.kernels):
        for o in reversed(k.operators):
            wanted = o.out in memory if o.op == "store" else o.op == "exp" or (k.name, o.out) in out
            if wanted and o.op == "load":
                memory |= {*o.args}
            elif wanted:
                out |= {(k.name, a) for a in o.args}
    return frozenset(out)


def precise(g: MuGraph) -> dict[Value, str]:
    """The products whose operands are taken in 32 bits, with how tensor cores multiply these: under an exponential as
    exactly as a sum in 32 bits, elsewhere, in a graph that is `wide`, with as many digits as 16 bits have."""
    wanted = exponents(g)
    return {
        (k.name, o.out): "tf32x3" if (k.name, o.out) in wanted else "tf32"
        for k in g.kernels
        for loaded in [{x.out for x in k.loads if g.memory[x.args[0]].dtype in (*HALF, *BYTES)}]
        for o in k.operators
        if o.op == "dot" and (g.wide or (k.name, o.out) in wanted) and not loaded.issuperset(o.args)
    }
