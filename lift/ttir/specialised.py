"""Triton makes an integer argument that is 1 a constant of the kernel, with which Python computes before Triton does:

    x + s        of an i8 tile: i32 if s is an argument, i8 if it is the constant 1
    -s // 2      0 of an argument (C truncates), -1 of the constant (Python rounds down)

The kernel is lowered with the constant, and as it is with 1 for the argument, both folded by MLIR; where the two are
not the same operations on the same operands, the kernel is another one at 1. Arguments with an annotated type, and
those of do_not_specialize, are never made constants; those in tuples always are.

Of an integer that does not fit 32 bits it makes an argument of 64, whose type a kernel may ask for: `s.dtype`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from ..errors import Unsupported
from ..runtime.session import table
from . import lower as L
from .conversions import SPREADS
from .ir import Block, Function, Module, Op, Type, Value
from .kernel_globals import Scope

EFFECTS = ("tt.store", "tt.atomic", "tt.load", "tt.return", "tt.call", "tt.print", "tt.assert", "llvm.", "cf.", "scf.",
           "tt.experimental", "tt.descriptor", "gpu.", "ttg.")  # fmt: skip
CONSTANT = "Triton makes an argument that is 1 a constant of the kernel, with which Python computes"
OF_A_WIDTH = ("tt.mulhiui", "math.ct", "arith.bitcast", "tt.bitcast", "tt.extern_elementwise",
              "tt.elementwise_inline_asm")  # fmt: skip  # whose result is another one for wider operands
WIDENING = ("arith.extsi", "arith.index_cast", *SPREADS)  # a number is widened before it is spread, or after
Signature = Mapping[str, object]
Constexprs = Mapping[object, object]
Path = tuple[int, ...]
_ALIKE: dict[tuple[object, ...], bool] = table("specialised.alike", {})


class Parameter(Protocol):
    """A parameter of a kernel, as Triton has it."""

    annotation_type: str
    do_not_specialize: bool


class Launched(Protocol):
    """A launch as Triton compiles it; `scope`: all that the kernel reads beside its arguments."""

    @property
    def kernel(self) -> object: ...
    @property
    def signature(self) -> Signature: ...
    @property
    def constexprs(self) -> Constexprs: ...
    @property
    def options(self) -> Mapping[str, object]: ...
    @property
    def scope(self) -> Scope: ...


def parts(signature: Signature) -> dict[str, tuple[Path, object]]:
    """The arguments of a kernel with their types, those in tuples alone: `nt.1` is `nt[1]`, at the path (k, 1) if `nt`
    is parameter k. The names are those of the arguments in the IR."""
    return {n: found for k, (name, kind) in enumerate(signature.items()) for n, found in _parts(name, (k,), kind)}


def _parts(name: str, path: Path, kind: object) -> Iterator[tuple[str, tuple[Path, object]]]:
    if not isinstance(kind, tuple):
        yield name, (path, kind)
        return
    for k, inner in enumerate(kind):
        yield from _parts(_inner(name, kind, k), (*path, k), inner)


def _inner(name: str, kind: tuple[object, ...], k: int) -> str:
    """The name of an element of a tuple in the IR: `nt.1`, or `nt.field` of a named one."""
    return f"{name}.{getattr(kind, '_fields', range(len(kind)))[k]}"


def with_kinds(signature: Signature, kinds: Mapping[str, str]) -> dict[str, object]:
    """The signature with other types for some of these arguments."""
    return {name: _with_kinds(name, kind, kinds) for name, kind in signature.items()}


def _with_kinds(name: str, kind: object, kinds: Mapping[str, str]) -> object:
    if not isinstance(kind, tuple):
        return kinds.get(name, kind)
    inner = [_with_kinds(_inner(name, kind, k), each, kinds) for k, each in enumerate(kind)]
    return getattr(type(kind), "_make", tuple)(inner)  # of a named tuple


def at_one(signature: Signature, constexprs: Constexprs, names: Sequence[str]) -> tuple[dict[str, object], Constexprs]:
    """The signature and the compile-time arguments in which these arguments are the constant 1."""
    where = parts(signature)
    return with_kinds(signature, dict.fromkeys(names, "constexpr")), {**constexprs, **{where[n][0]: 1 for n in names}}


def specialised(fn: object, signature: Signature) -> list[str]:
    """The arguments that Triton makes constants where they are 1: of a tuple all, whatever is said of the parameter."""
    params = L.jit_function(fn).params
    free = ((n, path) for n, (path, kind) in parts(signature).items() if kind in ("i32", "i64"))
    return [n for n, path in free if len(path) > 1 or _is_specialised(params[path[0]])]


def _is_specialised(p: Parameter) -> bool:
    return not p.annotation_type and not p.do_not_specialize


def alike_at_one(launch: Launched, names: Sequence[str]) -> bool:
    """Whether the kernel in which these integer parameters are the constant 1 is the general one at 1; False where
    Triton compiles that alone."""

    def alike(general: Module) -> bool:
        of_one = L.text(launch.kernel, *at_one(launch.signature, launch.constexprs, names), launch.options)
        return same(L.folded(of_one), L.folded(_at_one(general.text, names)))

    return not names or _alike(launch, (*names, "one"), alike)


def alike_when_wide(launch: Launched, names: Sequence[str]) -> bool:
    """Whether the kernel in which these integer parameters have 64 bits is the one with 32, but for widths of integers;
    False where Triton compiles that alone."""

    def wide(general: Module) -> bool:
        of_64 = with_kinds(launch.signature, dict.fromkeys(names, "i64"))
        return same(L.lower(launch.kernel, of_64, launch.constexprs, launch.options), general, wide=True)

    return _alike(launch, (*names, "wide"), wide)


def _alike(launch: Launched, what: tuple[str, ...], compared: Callable[[Module], bool]) -> bool:
    """The result of a comparison with the general kernel, once for a kernel, with the globals of the launch. Where that
    cannot be lowered it is True: this is said where the kernel is executed."""
    compiled = launch.kernel, launch.signature, launch.constexprs, launch.options
    with launch.scope.restored():
        key = (L.content_key(*compiled), what)
        if key not in _ALIKE:
            try:
                general = L.lower(*compiled)
            except Unsupported:
                return True
            try:
                _ALIKE[key] = compared(general)
            except (Unsupported, RuntimeError, RecursionError):
                _ALIKE[key] = False
        return _ALIKE[key]


def _at_one(text: str, names: Sequence[str]) -> str:
    """The first function with constants in place of its arguments."""
    head, _, rest = text.partition("\n")
    while "^bb0(" not in head:
        line, _, rest = rest.partition("\n")
        head += "\n" + line
    start = head.rindex("^bb0(")
    entry, ones = head[start:], []
    for n in names:
        found = re.search(rf"%{re.escape(n)}: (i\d+)", entry)
        if found is None:
            raise Unsupported(f"the argument {n} in the text of the kernel")
        entry = entry.replace(found[0], f"%{n}__given: {found[1]}", 1)
        ones.append(f'    %{n} = "arith.constant"() <{{value = 1 : {found[1]}}}> : () -> {found[1]}')
    return "\n".join([head[:start] + entry, *ones, rest])


# ---- two modules -----------------------------------------------------------------------------------------------------


def same(a: Module, b: Module, wide: bool = False) -> bool:
    """Whether two kernels have the same effects in the same order, of the same values. The arguments of the second are
    those of the first by name, and maybe more. `wide`: but for the widths of integers."""
    pairs = zip(a.functions.values(), b.functions.values(), strict=False)
    return len(a.functions) == len(b.functions) and all(_Pairs(wide).functions(f, g) for f, g in pairs)


class _Pairs:
    """Values of one module with those of another."""

    def __init__(self, wide: bool) -> None:
        self.wide = wide
        self.equal: dict[int, Value] = {}

    def type(self, t: Type) -> str:
        return t.text if not self.wide else "i" if t.is_int and t.bits in (32, 64) else t.element

    def form(self, op: Op) -> str:
        types = [] if self.wide and op.name == "arith.constant" else [self.type(v.type) for v in op.results]
        if op.name.startswith(OF_A_WIDTH):
            types = [v.type.text for v in (*op.operands, *op.results)]
        return repr((op.name, sorted((k, str(v)) for k, v in op.attrs.items()), types))

    def source(self, v: Value) -> Value:
        """The value that is widened or spread."""
        while self.wide and isinstance(v.owner, Op) and v.owner.name in WIDENING:
            v = v.owner.operands[0]
        return v

    def functions(self, f: Function, g: Function) -> bool:
        others = {v.name: v for v in g.args}
        if any(v.name not in others for v in f.args):
            return False
        self.equal.update((id(v), others[v.name]) for v in f.args)
        return self.blocks(f.body.blocks, g.body.blocks, skip=True)

    def blocks(self, xs: Sequence[Block], ys: Sequence[Block], skip: bool = False) -> bool:
        if len(xs) != len(ys):
            return False
        for k, (x, y) in enumerate(zip(xs, ys, strict=True)):
            if not (skip and k == 0):
                if [self.type(v.type) for v in x.args] != [self.type(v.type) for v in y.args]:
                    return False
                self.equal.update(zip(map(id, x.args), y.args, strict=True))
        return all(self.block(x, y) for x, y in zip(xs, ys, strict=True))

    def block(self, x: Block, y: Block) -> bool:
        mine, others = list(_effects(x)), list(_effects(y))
        return len(mine) == len(others) and all(self.ops(p, q) for p, q in zip(mine, others, strict=True))

    def ops(self, p: Op, q: Op) -> bool:
        """The same operation on equal values; its results are equal from here on."""
        if p is q:
            return True
        if self.form(p) != self.form(q) or len(p.operands) != len(q.operands) or len(p.regions) != len(q.regions):
            return False
        if not all(self.values(v, w) for v, w in zip(p.operands, q.operands, strict=True)):
            return False
        if [label for label, _ in p.successors] != [label for label, _ in q.successors]:
            return False
        jumps = zip((v for _, vs in p.successors for v in vs), (v for _, vs in q.successors for v in vs), strict=True)
        if not all(self.values(v, w) for v, w in jumps):
            return False
        if not all(self.blocks(r.blocks, s.blocks) for r, s in zip(p.regions, q.regions, strict=True)):
            return False
        self.equal.update(zip(map(id, p.results), q.results, strict=True))
        return True

    def values(self, v: Value, w: Value) -> bool:
        v, w = self.source(v), self.source(w)
        if isinstance(v.owner, Op) and isinstance(w.owner, Op) and v.owner.name == w.owner.name == "arith.constant":
            return self.form(v.owner) == self.form(w.owner)
        if id(v) in self.equal:
            return self.equal[id(v)] is w
        if not isinstance(v.owner, Op) or not isinstance(w.owner, Op) or _is_effect(v.owner):
            return False
        return self.ops(v.owner, w.owner) and self.equal.get(id(v)) is w


def _effects(block: Block) -> Iterator[Op]:
    return (op for op in block.ops if _is_effect(op))


def _is_effect(op: Op) -> bool:
    return bool(op.regions or op.successors) or op.name.startswith(EFFECTS) or op.name.endswith("return")
