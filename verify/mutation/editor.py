"""Changes to a module: a copy of it, and an editor that knows where every operation stands.

clone(m)                    a module that shares no operation, block or value with m
Editor(m).before(op, ...)   new operations beside an old one; values replaced; operations taken away
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from trilift.lift.errors import Unsupported
from trilift.lift.terms.term import Term
from trilift.lift.ttir.ir import Block, Function, Module, Op, Region, Type, Value


def clone(module: Module, note: str = "") -> Module:
    """The same module made of new objects; `note` is added to its text, which then is that of no other module."""
    copies: dict[Value, Value] = {}

    def value(v: Value) -> Value:
        if v not in copies:
            copies[v] = Value(v.name, v.type, None, v.index)
        return copies[v]

    def op(o: Op) -> Op:
        successors = [(label, [value(v) for v in vs]) for label, vs in o.successors]
        new = Op(o.name, [value(v) for v in o.operands], [value(v) for v in o.results], dict(o.attrs),
                 [region(r) for r in o.regions], successors, o.frames)  # fmt: skip
        for v in new.results:
            v.owner = new
        return new

    def region(r: Region) -> Region:
        return Region([block(b) for b in r.blocks])

    def block(b: Block) -> Block:
        new = Block(b.label, [value(v) for v in b.args], [op(o) for o in b.ops])
        for v in new.args:
            v.owner = new
        return new

    def function(f: Function) -> Function:
        body = region(f.body)
        return Function(f.name, [value(v) for v in f.args], list(f.results), body, f.public)

    functions = {name: function(f) for name, f in module.functions.items()}
    entry = next(functions[name] for name, f in module.functions.items() if f is module.entry)
    return Module(functions, entry, f"{module.text}\n// {note}" if note else module.text)


class Editor:
    """Where the operations of a module stand. `block_of`: the block of each; `parent`: the operation around a block,
    None for a function's own; `function_of`: the function of each. Operations that an edit inserts are entered too."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.block_of: dict[Op, Block] = {}
        self.parent: dict[Block, Op | None] = {}
        self.function_of: dict[Op, Function] = {}
        self.users: dict[Value, list[Op]] = {}
        for f in module.functions.values():
            self._enter(f, f.body, None)

    def _enter(self, f: Function, region: Region, around: Op | None) -> None:
        for block in region.blocks:
            self.parent[block] = around
            for op in block.ops:
                self.block_of[op], self.function_of[op] = block, f
                for v in uses(op):
                    self.users.setdefault(v, []).append(op)
                for r in op.regions:
                    self._enter(f, r, op)

    def around(self, op: Op) -> Op | None:
        """The operation whose region holds `op`."""
        return self.parent[self.block_of[op]]

    def enclosing(self, op: Op, name: str) -> Op | None:
        """The innermost operation of that name around `op`."""
        found = self.around(op)
        while found is not None and found.name != name:
            found = self.around(found)
        return found

    def is_used(self, value: Value) -> bool:
        return value in self.users

    def before(self, at: Op, name: str, operands: Sequence[Value], t: Type | None, **attrs: Any) -> Value:
        """A new operation in front of `at`, at its place in the source; its result, of type `t`."""
        return self._insert(at, 0, name, operands, t, attrs)

    def after(self, at: Op, name: str, operands: Sequence[Value], t: Type | None, **attrs: Any) -> Value:
        """The same behind `at`."""
        return self._insert(at, 1, name, operands, t, attrs)

    def _insert(
        self, at: Op, shift: int, name: str, operands: Sequence[Value], t: Type | None, attrs: Mapping[str, Any]
    ) -> Value:
        op = Op(name, list(operands), [], dict(attrs), frames=at.frames)
        result = Value("%new", t or Type("none", text="none"), op)
        op.results = [result] if t is not None else []
        block = self.block_of[at]
        block.ops.insert(next(k for k, o in enumerate(block.ops) if o is at) + shift, op)
        self.block_of[op], self.function_of[op] = block, self.function_of[at]
        return result

    def constant(self, at: Op, t: Type, number: Any) -> Value:
        """A constant of type `t` in front of `at`."""
        return self.before(at, "arith.constant", (), t, value=number)

    def replace(self, old: Value, new: Value) -> None:
        """Every use of `old` becomes one of `new`."""
        for op in self.module.walk():
            op.operands = [new if v is old else v for v in op.operands]
            op.successors = [(label, [new if v is old else v for v in vs]) for label, vs in op.successors]

    def remove(self, op: Op) -> None:
        """Take away an operation whose results are not used."""
        ops = self.block_of[op].ops
        del ops[next(k for k, o in enumerate(ops) if o is op)]


def uses(op: Op) -> Iterator[Value]:
    """Operands and block arguments passed on."""
    yield from op.operands
    for _, values in op.successors:
        yield from values


def constant_of(value: Value) -> Any:
    """The number of a constant (an array if its elements differ), None for any other value."""
    if not isinstance(value.owner, Op) or value.owner.name != "arith.constant":
        return None
    if isinstance(value.owner.attrs["value"], Term):
        raise Unsupported("a mutation beside a constant that is a symbol", value.owner.place)
    flat = np.unique(np.asarray(value.owner.attrs["value"]))
    return flat[0].item() if flat.size == 1 else np.asarray(value.owner.attrs["value"])


def backward_slice(value: Value, leaf: Callable[[Op], bool]) -> list[Op]:
    """The operations on the paths from a `leaf` to `value`, operands first; neither block arguments nor operations with
    regions are entered."""
    reaches: dict[Op, bool] = {}
    order: list[Op] = []

    def visit(v: Value) -> bool:
        op = v.owner
        if not isinstance(op, Op) or op.regions:
            return False
        if op not in reaches:
            found = [visit(x) for x in op.operands]
            reaches[op] = leaf(op) or any(found)
            if reaches[op]:
                order.append(op)
        return reaches[op]

    visit(value)
    return order
