"""Laws tried on numbers: by how much an output deviates from what a law says of it.

Every function takes the property, `call` (arrays by input name in, the output's array out), the arrays and a random
generator, and returns the largest deviation, relative to the largest number compared with, or None where these shapes
are uninformative. Changed inputs have the elements of the given ones in another order where they are replaced, so that
they meet whatever limits the case states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from trilift.lift.replay.reference import deviation

from .records import Property

Arrays = Mapping[str, np.ndarray]
Call = Callable[[Arrays], np.ndarray]
Trial = Callable[[Property, Call, Arrays, np.random.Generator], float | None]
FACTORS = (0.25, 0.5, 2.0, 4.0)  # powers of two: exact


def _worst(got: np.ndarray, expected: np.ndarray) -> float:
    return float(np.max(deviation(got, expected), initial=0.0))


def _mixed(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same elements in another order."""
    return rng.permutation(x.ravel()).reshape(x.shape)


def _order(n: int, rng: np.random.Generator) -> np.ndarray:
    """A permutation of n >= 2 that moves something."""
    while (order := rng.permutation(n)).tolist() == list(range(n)):
        continue
    return order


def _slice(rank: int, dim: int, at: slice | int | np.ndarray) -> tuple[slice | int | np.ndarray, ...]:
    return tuple(at if d == dim else slice(None) for d in range(rank))


def _length(p: Property, args: Arrays) -> int:
    return min(int(args[x].shape[p.positions[x]]) for x in p.inputs)


def independent(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """All slices but one are replaced: that of the output stays."""
    out, n = call(args), _length(p, args)
    if n < 2:
        return None
    worst = 0.0
    for i in sorted({0, n - 1, int(rng.integers(n))}):
        other = dict(args)
        for x in p.inputs:
            other[x] = _mixed(args[x], rng)
            at = _slice(args[x].ndim, p.positions[x], i)
            other[x][at] = args[x][at]
        here = _slice(out.ndim, p.positions[p.output], i)
        worst = max(worst, _worst(call(other)[here], out[here]))
    return worst


def permuted(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """The inputs are permuted along an axis: so is the output, if it has it."""
    n = _length(p, args)
    if n < 2:
        return None
    order, out = _order(n, rng), call(args)
    other = {**args, **{x: np.take(args[x], order, p.positions[x]) for x in p.inputs}}
    expected = np.take(out, order, p.positions[p.output]) if p.kind == "equivariant" else out
    return _worst(call(other), expected)


def shifted(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """Numbers are added to an input, one for all elements or one for each index of the other dimensions."""
    (x,) = p.inputs
    dim, out = p.positions.get(x), call(args)
    shape = [] if dim is None else [1 if d == dim else n for d, n in enumerate(args[x].shape)]
    c = rng.integers(-24, 25, shape) / 8
    moved = c if dim is None or out.ndim == args[x].ndim or not p.degree else c.squeeze(dim)
    return _worst(call({**args, x: args[x] + c}), out + p.degree * moved if p.degree else out)


def scaled(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """Inputs are multiplied with c > 0."""
    c = float(rng.choice(FACTORS))
    other = {**args, **{x: c * args[x] for x in p.inputs}}
    return _worst(call(other), c ** (p.degree or 0) * call(args))


def negated(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """Inputs change their sign: so does the output, or it stays."""
    other = {**args, **{x: -args[x] for x in p.inputs}}
    return _worst(call(other), -call(args) if p.kind == "odd" else call(args))


def added(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """f(x + x') = f(x) + f(x')."""
    more = {x: _mixed(args[x], rng) for x in p.inputs}
    both = {x: args[x] + more[x] for x in p.inputs}
    return _worst(call({**args, **both}), call(args) + call({**args, **more}))


def summed(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """The sum along an axis is a number."""
    out = call(args)
    if 0 in out.shape or p.value is None:
        return None
    total = out.sum(p.positions[p.output])
    scale = max(1.0, float(np.max(np.abs(out), initial=0.0)))
    return _worst(total / scale, np.full_like(total, p.value / scale))


def causal(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """Inputs are replaced after a position, or before it: the output up to it, or from it on, stays."""
    out, n = call(args), _length(p, args)
    if n < 2:
        return None
    later = p.kind == "causal"
    worst = 0.0
    for i in sorted({0, n - 1, n // 2, int(rng.integers(n))}):
        kept = slice(None, i + 1) if later else slice(i, None)
        other = dict(args)
        for x in p.inputs:
            other[x] = _mixed(args[x], rng)
            at = _slice(args[x].ndim, p.positions[x], kept)
            other[x][at] = args[x][at]
        here = _slice(out.ndim, p.positions[p.output], kept)
        worst = max(worst, _worst(call(other)[here], out[here]))
    return worst


def repeated(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """f(f(x)) = f(x)."""
    (x,) = p.inputs
    out = call(args)
    return _worst(call({**args, x: out}), out)


def bounded(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """By how much an element is below or above its bounds."""
    low, high = p.bounds
    out = call(args)
    return float(np.max(np.fmax(low - out, out - high), initial=0.0))


def ordered(p: Property, call: Call, args: Arrays, rng: np.random.Generator) -> float | None:
    """Inputs grow: no element of the output falls, or none grows."""
    more = {x: np.maximum(args[x], _mixed(args[x], rng)) for x in p.inputs}
    gain = (call({**args, **more}) - call(args)) * (p.degree or 1)
    return float(np.max(np.fmax(-gain, 0), initial=0.0))
