"""MLIR's generic form, as Triton prints it, to `lift.ttir.ir`.

    line   ::= results = "name"(operands)[^labels] <{properties}> ({        an operation that opens regions
             | results = "name"(operands)[^labels] <{properties}> {attributes} : (types) -> types loc(...)
             | ^label(value: type loc(...), ...):  | }, {  | }) {attributes} : (types) -> types loc(...)

The printer puts one head on one line, so lines are the tokens; types, attributes and signatures repeat: memoised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

from ..errors import Place, Unsupported
from . import attributes
from .ir import Block, Function, Module, Op, Region, Type, Value
from .written_constants import as_written

SENTINEL = "__force_generic__"

_OP = re.compile(r'(?:(%[^"]*?) = )?"([^"]+)"\(([^)]*)\)(?:\[([^\]]*)\])?')
_BLOCK = re.compile(r"(\^\w+)(?:\((.*)\))?:")
_ALIAS = re.compile(r"^(#\w+) = loc\((.*)\)$", re.M)
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_NAMED = re.compile(r'"(?:[^"\\]|\\.)*"\(')
_FUSED = re.compile(r"fused(?:<.*?>)?\[")


def parse(text: str) -> Module:
    """The module in `text`, MLIR generic form with locations; the body-less function that forces the form is dropped.

    Values keep MLIR's names ("%x_ptr"). Successors carry their block arguments: the operands of cf.br, cf.cond_br and
    cf.switch that go to a block are in `successors` and not in `operands`. Attributes are as `lift.ttir.attributes`
    says: numbers, names of enumerations, tuples, dicts, types, numpy arrays. Frames are innermost first: callee,
    then call. Constants of narrow floats are as `written_constants` says. Raises Unsupported at what the grammar does
    not know."""
    return as_written(_Reader(text).module())


class _Reader:
    """One pass over the lines. `values` holds the names in scope; leaving a region restores what it shadowed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: Iterator[str] = iter(text.splitlines())
        self.aliases: dict[str, str] = dict(_ALIAS.findall(text))
        self.frames: dict[str, tuple[Place, ...]] = {}
        self.values: dict[str, Value] = {}
        self.regions: list[list[tuple[str, Value | None]]] = []  # open regions, each its shadowed names
        self.forward: dict[
            str, tuple[Value, list[Any]]
        ] = {}  # used before defined: the value, the regions open at the use

    def module(self) -> Module:
        for line in self.lines:
            if line.startswith('"builtin.module"'):
                op = self.op(line)
                break
        else:
            self.fail("no module in generic form", self.text[:80])
        if self.forward:
            self.fail("a value is used but not defined", next(iter(self.forward)))
        bodies = [o for r in op.regions for b in r.blocks for o in b.ops if o.name == "tt.func"]
        functions = [_function(o) for o in bodies if o.attrs.get("sym_name") != SENTINEL]
        entry = [f for f in functions if f.public] or functions
        if not entry:
            self.fail("no function in the module", self.text[:80])
        return Module({f.name: f for f in functions}, entry[0], self.text)

    def op(self, line: str) -> Op:
        head = _OP.match(line)
        if head is None:
            self.fail("not an operation", line)
        results, name, operands, labels = head.groups()
        inputs = [self.use(v) for v in operands.split(", ")] if operands else []
        regions: list[Region] = []
        first, tail = line[head.end() :], ""
        if first.endswith("({"):
            first = first[:-2]
            regions, tail = self.open_regions()
        body, signature, frames = self.tail(tail or first)
        attrs = attributes.operation(name, first + body if tail else body)
        kinds_in, kinds_out = attributes.signature(signature)
        op = Op(name, inputs, [], dict(attrs), regions, [], frames)
        for value, kind in zip(inputs, kinds_in, strict=True):
            if value.type is _UNKNOWN:
                value.type = kind
        op.results = [self.define(n, k, op, i) for i, (n, k) in enumerate(zip(_names(results), kinds_out, strict=True))]
        if labels:
            _attach(op, labels.split(", "))
        return op

    def open_regions(self) -> tuple[list[Region], str]:
        """The regions up to the line that closes them, and what follows `})` on it."""
        regions = []
        while True:
            region, closing = self.region()
            regions.append(region)
            if closing.startswith("})"):
                return regions, closing[2:]

    def region(self) -> tuple[Region, str]:
        self.regions.append([])
        blocks: list[Block] = []
        for line in self.lines:
            line = line.lstrip()
            if line[0] == "}":
                break
            if line[0] == "^":
                blocks.append(self.block(line))
                continue
            if not blocks:
                blocks.append(Block("", [], []))
            blocks[-1].ops.append(self.op(line))
        else:
            self.fail("a region does not end", self.text[-80:])
        for name, shadowed in reversed(self.regions.pop()):
            if shadowed is None:
                del self.values[name]
            else:
                self.values[name] = shadowed
        return Region(blocks), line

    def block(self, line: str) -> Block:
        """`^bb1(%a: i32 loc(...), %b: tensor<4xf32> loc(...)):  // pred: ^bb0`."""
        head = _BLOCK.match(line)
        if head is None:
            self.fail("not a block label", line)
        block = Block(head[1], [], [])
        for i, part in enumerate(head[2][1:].split(", %") if head[2] else ()):
            name, _, kind = part.partition(": ")
            block.args.append(self.define("%" + name, attributes.type_of(kind.partition(" loc(")[0]), block, i))
        return block

    def tail(self, text: str) -> tuple[str, str, tuple[Place, ...]]:
        """Split ` <{...}> {...} : (types) -> types loc(...)` into attributes, signature, frames."""
        at = text.rfind(" : (")
        if at < 0:
            self.fail("no signature", text)
        signature, _, where = text[at + 3 :].partition(" loc(")
        return text[:at], signature, self.place(where[:-1]) if where else ()

    def use(self, name: str) -> Value:
        value = self.values.get(name)
        if value is not None:
            return value
        if name not in self.forward:
            self.forward[name] = Value(name, _UNKNOWN), list(self.regions)
        return self.forward[name][0]

    def define(self, name: str, kind: Type, owner: Op | Block, index: int) -> Value:
        """A forward reference becomes the value when it is defined in a region that was open at the use."""
        scope = self.regions[-1] if self.regions else []
        value = None
        if name in self.forward and any(scope is r for r in self.forward[name][1]):
            value = self.forward.pop(name)[0]
            value.type, value.owner, value.index = kind, owner, index
        value = value or Value(name, kind, owner, index)
        scope.append((name, self.values.get(name)))
        self.values[name] = value
        return value

    def place(self, text: str) -> tuple[Place, ...]:
        """Frames, innermost first: callsite(a at b) is a's frames, then b's; a fused location its first part's."""
        known = self.frames.get(text)
        if known is None:
            known = self.frames[text] = self.frames_of(text)
        return known

    def frames_of(self, text: str) -> tuple[Place, ...]:
        if text[0] == "#":
            return self.place(self.aliases[text]) if text in self.aliases else ()
        if text.startswith("callsite("):
            inner, outer = _split(text[len("callsite(") : -1], " at ")
            return self.place(inner) + self.place(outer)
        if fused := _FUSED.match(text):
            parts = _split_all(text[fused.end() : -1])
            return next((frames for frames in map(self.place, parts) if frames), ())
        if found := _FILE.match(text):
            return (Place(attributes.unescape(found[1]), int(found[2]), int(found[3])),)
        if named := _NAMED.match(text):
            return self.place(text[named.end() : -1])
        return ()

    def fail(self, what: str, text: str) -> NoReturn:
        raise Unsupported(f"Triton IR text: {what}", why=repr(text.strip()[:200]))


_UNKNOWN = Type("unknown", text="?")


def _names(results: str | None) -> list[str]:
    """`%a:2, %b` names %a#0, %a#1, %b."""
    out = []
    for part in results.split(", ") if results else ():
        name, _, count = part.partition(":")
        out += [f"{name}#{i}" for i in range(int(count))] if count else [name]
    return out


def _attach(op: Op, labels: list[str]) -> None:
    """Give each label its block arguments, as the segment sizes say; cf.br passes all its operands on."""
    if op.name == "cf.br":
        keep, counts = 0, [len(op.operands)]
    elif op.name == "cf.cond_br":
        keep, *counts = op.attrs["operandSegmentSizes"]
    elif op.name == "cf.switch":
        keep, default, _ = op.attrs["operandSegmentSizes"]
        counts = [default, *op.attrs["case_operand_segments"]]
    else:
        raise Unsupported(op.name, op.place, "a terminator with successors that is not of the cf dialect")
    given = iter(op.operands[keep:])
    op.successors = [(label, [next(given) for _ in range(n)]) for label, n in zip(labels, counts, strict=True)]
    op.operands = op.operands[:keep]


def _function(op: Op) -> Function:
    attrs, body = op.attrs, op.regions[0]
    args = body.blocks[0].args if body.blocks else []
    public = attrs.get("sym_visibility", "public") == "public"
    return Function(attrs["sym_name"], args, list(attrs["function_type"][1]), body, public)


def _split(text: str, separator: str) -> tuple[str, str]:
    """Cut at the first separator outside brackets and strings."""
    parts = _split_all(text, separator)
    return parts[0], separator.join(parts[1:])


def _split_all(text: str, separator: str = ", ") -> list[str]:
    return attributes.split(text, separator)
