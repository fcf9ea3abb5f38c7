"""Inline assembly that is straight-line PTX on floats: each instruction is a row of `lift.terms.ops`.

    text        ::= [{] (declaration | instruction)* [}]
    instruction ::= [@[!]predicate] opcode.modifier*.type destination, source, ... ;

A guarded instruction is where(predicate, new, old). `$0`, `$1` ... are the results, then the operands.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Unsupported
from ...terms.domain import Ids
from ...ttir.ir import Op
from ..machine import settle, undefined
from ..registry import CHECKS, handles

if TYPE_CHECKING:
    from ..interpret import Run

ROWS = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "min": "min", "max": "max", "neg": "neg", "abs": "abs",
    "ex2": "exp2", "lg2": "log2", "rcp": "recip", "rsqrt": "rsqrt", "sqrt": "sqrt", "sin": "sin", "cos": "cos",
    "tanh": "tanh",
}  # fmt: skip
ORDER = ("griddepcontrol.", "bar.sync", "barrier.sync", "membar.", "fence.")  # between threads and kernels: no values
COMPARISONS = {"gt", "lt", "ge", "le", "eq", "ne"}
ROUNDINGS = {"approx", "full", "ftz", "rn", "rz", "rm", "rp", "rna"}
TYPES = {"f32", "f64", "f16", "bf16", "tf32"}
_INSTRUCTION = re.compile(r"(?:@(!?)([\w%]+)\s+)?([a-z]\w*(?:\.\w+)*)\s+(.*)")


@dataclass(frozen=True, slots=True)
class Instruction:
    guard: str
    negated: bool
    opcode: str
    comparison: str
    operands: tuple[str, ...]


@lru_cache(maxsize=256)
def parse(text: str) -> tuple[Instruction, ...] | None:
    """The instructions of a text, None if one of them is not float arithmetic."""
    out = []
    body = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S).replace("{", " ").replace("}", " ")
    for part in body.split(";"):
        line = " ".join(part.split())
        if not line or line.startswith((".reg", *ORDER)):
            continue
        instruction = _instruction(line)
        if instruction is None:
            return None
        out.append(instruction)
    return tuple(out)


def _instruction(line: str) -> Instruction | None:
    found = _INSTRUCTION.fullmatch(line)
    if found is None:
        return None
    negated, guard, mnemonic, rest = found.groups()
    opcode, *modifiers = mnemonic.split(".")
    comparison = next((m for m in modifiers if m in COMPARISONS), "")
    known = all(m in ROUNDINGS or m in TYPES or m == comparison for m in modifiers)
    arities = {"mov": 2, "cvt": 2, "fma": 4, "mad": 4, "setp": 3, "selp": 4}
    operands = tuple(x.strip() for x in rest.split(","))
    unary = {"neg", "abs", "ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh"}
    arity = arities.get(opcode, 2 if opcode in unary else 3 if opcode in ROWS else 0)
    if (
        not known
        or not any(m in TYPES for m in modifiers)
        or len(operands) != arity
        or (opcode == "setp") != bool(comparison)
    ):
        return None
    return Instruction(guard or "", negated == "!", opcode, comparison, operands)


def number(text: str) -> float | None:
    """A PTX float literal: decimal, or the bits as 0f3F800000 and 0d..."""
    try:
        if text[:2].lower() == "0f":
            return float(struct.unpack(">f", bytes.fromhex(text[2:]))[0])
        if text[:2].lower() == "0d":
            return float(struct.unpack(">d", bytes.fromhex(text[2:]))[0])
        return float(text)
    except (ValueError, struct.error):
        return None


def _instructions(op: Op) -> tuple[Instruction, ...] | None:
    code = parse(op.attrs["asm_string"])
    floats = op.attrs.get("packed_element", 1) == 1 and all(v.type.is_float for v in (*op.operands, *op.results))
    return code if floats or not code else None


@handles("tt.elementwise_inline_asm")
def _assembly(run: Run, op: Op, *xs: Any) -> list[Any]:
    code = _instructions(op)
    if code is None:
        raise Unsupported("inline assembly", op.place, " ".join(op.attrs["asm_string"].split()))
    n = len(op.results)
    if not code:
        return [
            undefined(run.domain, v.type.shape, v.type, f"result of the assembly at {op.place}") for v in op.results
        ]
    registers: dict[str, Any] = {f"${n + k}": x for k, x in enumerate(xs)}
    for i in code:
        new = _value(run, i, [_source(registers, s, op) for s in i.operands[1:]])
        target = i.operands[0]
        if i.guard and target in registers:
            old, p = registers[target], registers[i.guard]
            new = run.domain.apply("where", p, *((old, new) if i.negated else (new, old)))
        registers[target] = new
    out = [_source(registers, f"${k}", op) for k in range(n)]
    return [_shaped(x, v) for x, v in zip(out, op.results, strict=True)]


def _shaped(x: Any, v: Any) -> Any:
    x = settle(x, v.type)
    return x if isinstance(x, Ids) else np.broadcast_to(x, v.type.shape)


def _source(registers: dict[str, Any], text: str, op: Op) -> Any:
    if text in registers:
        return registers[text]
    value = number(text)
    if value is None:
        raise Unsupported(
            "inline assembly", op.place, f"{text} is not defined in {' '.join(op.attrs['asm_string'].split())}"
        )
    return np.float64(value)


def _value(run: Run, i: Instruction, xs: list[Any]) -> Any:
    do = run.domain.apply
    match i.opcode:
        case "mov" | "cvt":
            return xs[0]
        case "fma" | "mad":
            return do("add", do("mul", xs[0], xs[1]), xs[2])
        case "setp":
            return do(i.comparison, *xs)
        case "selp":
            return do("where", xs[2], xs[0], xs[1])
    return do(ROWS[i.opcode], *xs)


CHECKS["tt.elementwise_inline_asm"] = lambda op: (
    None if _instructions(op) is not None else f"inline assembly {' '.join(op.attrs['asm_string'].split())[:60]!r}"
)
