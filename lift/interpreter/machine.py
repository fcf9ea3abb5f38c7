"""Machine values: numpy types of IR types, poison, bit casts, and terms that turned out to be known numbers.

A value of an IR type is a numpy array (floats float64; integers and pointers signed, of their width; i1 np.bool_) or,
in the symbolic domain, `Ids`. Symbolic integers are congruent to the machine's modulo 2^bits: a u8 element is a term
in 0..255 though its IR type is i8, and whoever cares for the sign asks `signed` or `unsigned`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import takewhile
from typing import Any

import numpy as np

from ..errors import Unsupported
from ..runtime.session import after_drop
from ..terms import term as T
from ..terms.bits import cell_size, from_bits, to_bits
from ..terms.domain import Float64, Ids, Symbolic, shaped
from ..ttir.ir import Type

Domain = Float64 | Symbolic
_INTS = {
    1: np.dtype(np.bool_),
    8: np.dtype(np.int8),
    16: np.dtype(np.int16),
    32: np.dtype(np.int32),
    64: np.dtype(np.int64),
}


@lru_cache(maxsize=4096)
def machine(t: Type) -> np.dtype:
    """The numpy type of a value of IR type `t`. Raises Unsupported for types that have none."""
    if t.is_float:
        return np.dtype(np.float64)
    if (t.is_int or t.element == "ptr") and t.bits in _INTS:
        return _INTS[t.bits]
    raise Unsupported(f"values of type {t.text or t.element}")


def kind(t: Type) -> str:
    """The type of a term for a value of IR type `t`: real, int or bool."""
    return T.REAL if t.is_float else T.BOOL if t.element == "i1" else T.INT


@lru_cache(maxsize=4096)
def cell(t: Type) -> str:
    """How memory names an element of IR type `t`: "f32", "bf16", "f8e4m3fn", "i8" (also i1), "i64" (also pointers)."""
    if t.is_float:
        return t.element.lower()
    return f"i{max(8, t.bits)}"


def cell_of_dtype(dtype: str) -> str:
    """The same for the dtype of a TensorRef: "bool" and "u8" live in i8 cells."""
    if dtype == "bool":
        return "i8"
    return "i" + dtype[1:] if dtype[0] == "u" else dtype.lower()


@lru_cache(maxsize=256)
def cell_type(name: str) -> Type:
    return Type(name, text=name)


def undefined(domain: Domain, shape: tuple[int, ...], t: Type, label: str) -> Any:
    """Poison: undef(label) terms; else what the domain has for it: in float64 NaN, and for integers bytes 0x5a."""
    if isinstance(domain, Symbolic):
        return Ids(np.broadcast_to(np.int32(T.undef(label, kind(t)).id), shape))
    dtype = machine(t)
    if dtype.kind == "f":
        return np.broadcast_to(domain.reals(np.asarray(domain.poison(label))), shape)
    value = True if dtype.kind == "b" else domain.integer_poison(label, dtype)
    return np.broadcast_to(dtype.type(value), shape)


# ---- terms that are known numbers ------------------------------------------------------------------------------------


class _Constants:
    """Which ids are constants: flags by id, of as many terms as `term.TERMS` had when it was asked last."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, with the terms that there are."""
        self.flags, self.filled, self.terms = np.zeros(1 << 12, np.bool_), 0, 0

    def __getitem__(self, ids: np.ndarray) -> np.ndarray:
        if len(T.TERMS) != self.terms:
            self._fill()
        out: np.ndarray = self.flags[ids]
        return out

    def _fill(self) -> None:
        """The terms since the last time, from the youngest back. Flags of dropped ids take address space, no memory."""
        end = (next(reversed(T.TERMS)) if self.filled else max(T.TERMS)) + 1
        if end > len(self.flags):
            self.flags, self.filled = np.zeros(2 * end, np.bool_), 0
        known = self.filled
        new = takewhile(lambda t: t.id >= known, reversed(T.TERMS.values())) if known else T.TERMS.values()
        self.flags[[t.id for t in new if t.op == "const"]] = True
        self.filled, self.terms = end, len(T.TERMS)


is_const = _Constants()
after_drop(is_const.forget)


def converted(x: Any, t: Type) -> np.ndarray:
    """Numbers as the machine numbers of an IR type; reals of another kind than float64 stay."""
    a = np.asarray(x)
    return a if a.dtype.kind == "V" else a.astype(machine(t), copy=False)


def settle(x: Any, t: Type) -> Any:
    """The numpy array if every element is a known number, else x."""
    if not isinstance(x, Ids) or x.size == 0:
        return np.zeros(x.shape, machine(t)) if isinstance(x, Ids) else x
    if T.TERMS[x.ids.flat[0]].op != "const" or not is_const[x.ids].all():
        return x
    return from_constants(x.ids, t)


def from_constants(ids: np.ndarray, t: Type) -> np.ndarray:
    """Constants as machine numbers: integers wrap, true is 1."""
    distinct, inverse = np.unique(ids, return_inverse=True)
    dtype, values = machine(t), [T.TERMS[i].attr for i in distinct]
    if dtype.kind == "i":
        half = 1 << (dtype.itemsize * 8 - 1)
        values = [(int(v) + half) % (2 * half) - half for v in values]
    out: np.ndarray = np.array(values, dtype)[inverse].reshape(ids.shape)
    return out


def numbers(x: Any, t: Type) -> np.ndarray | None:
    """The known numbers of a value, or None if it depends on data."""
    out = settle(x, t)
    return None if isinstance(out, Ids) else np.asarray(out)


def take(x: Any, index: Any) -> Any:
    """x[index], an index of numpy, in any domain."""
    return shaped(x, lambda a: a[index])


# ---- bit casts -------------------------------------------------------------------------------------------------------


def bitcast(domain: Domain, x: Any, source: str, target: str) -> Any:
    """The value of cell type `target` that has the bits of `x`, of cell type `source`. Floats are rounded to `source`
    first."""
    if source == target:
        return x
    if cell_size(source) != cell_size(target):
        raise Unsupported(f"bit cast from {source} to {target}", why="the sizes differ")
    if isinstance(x, Ids):
        steps = [f"bits_{source}"] * (source[0] != "i") + [f"from_bits_{target}"] * (target[0] != "i")
        for step in steps:
            x = domain.apply(step, x)
        return x
    return from_bits(to_bits(np.asarray(x), source), target)
