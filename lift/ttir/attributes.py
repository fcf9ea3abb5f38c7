"""MLIR types and attributes as Python values: `type_of`, `signature`, `operation`. All are memoised by text.

    integer, float     int, float (the exact value in the element type: f32 0.1 is 0.10000000149011612; inf, nan)
    i1, unit, string   bool, True, str
    array<...>, [...]  tuple
    {a = 1}, @name     dict, str without the @
    dense<...>         a Python number if all elements are equal, else a numpy array of the tensor's shape
    enumerations       their names by the table ENUMS: predicate "slt", atomic_rmw_op "fadd"; #kind<word> is "word"
    types              lift.ttir.ir.Type; function types are (operand types, result types)

Arrays are float64, int64 or bool.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from ..errors import Unsupported
from .ir import Type

_INT_PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
_FLOAT_PREDICATES = [
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
]
_ATOMICS = ["none", "and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch"]
_REDUCES = ["none", "add", "min", "max", "inc", "dec", "and", "or", "xor"]
_ORDERS = ["none", "relaxed", "acquire", "release", "acq_rel"]
_SCOPES = ["none", "gpu", "cta", "sys"]

ENUMS: dict[tuple[str, str], list[str]] = {
    ("arith.cmpi", "predicate"): _INT_PREDICATES,
    ("arith.cmpf", "predicate"): _FLOAT_PREDICATES,
    ("tt.atomic_rmw", "atomic_rmw_op"): _ATOMICS,
    ("tt.atomic_rmw", "sem"): _ORDERS,
    ("tt.atomic_rmw", "scope"): _SCOPES,
    ("tt.atomic_cas", "sem"): _ORDERS,
    ("tt.atomic_cas", "scope"): _SCOPES,
    ("tt.descriptor_reduce", "kind"): _REDUCES,
    ("tt.dot", "inputPrecision"): ["tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"],
    ("tt.dot_scaled", "a_elem_type"): ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "bf16", "fp16"],
    ("tt.dot_scaled", "b_elem_type"): ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "bf16", "fp16"],
    ("tt.fp_to_fp", "rounding"): ["rtz", "rtne"],
}

# exponent bits, mantissa bits, bias, and what the top exponent means: "ieee" infinities and nans, "fn" one nan and no
# infinity, "fnuz" the nan is the negative zero, "finite" neither
FLOATS = {
    "f64": (11, 52, 1023, "ieee"),
    "f32": (8, 23, 127, "ieee"),
    "f16": (5, 10, 15, "ieee"),
    "bf16": (8, 7, 127, "ieee"),
    "f8E5M2": (5, 2, 15, "ieee"),
    "f8E4M3": (4, 3, 7, "ieee"),
    "f8E4M3FN": (4, 3, 7, "fn"),
    "f8E5M2FNUZ": (5, 2, 16, "fnuz"),
    "f8E4M3FNUZ": (4, 3, 8, "fnuz"),
    "f8E4M3B11FNUZ": (4, 3, 11, "fnuz"),
    "f4E2M1FN": (2, 1, 1, "finite"),
}


def float_of_bits(bits: int, element: str) -> float:
    """The value of a bit pattern, (-1)^s * 2^(e - bias) * 1.m; the rest by the format's row in FLOATS."""
    exponent_bits, mantissa_bits, bias, special = FLOATS[element]
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) & 1 else 1.0
    exponent, mantissa = bits >> mantissa_bits & ((1 << exponent_bits) - 1), bits & ((1 << mantissa_bits) - 1)
    top, full = exponent == (1 << exponent_bits) - 1, mantissa == (1 << mantissa_bits) - 1
    if special == "ieee" and top:
        return float("nan") if mantissa else sign * float("inf")
    if (special == "fn" and top and full) or (special == "fnuz" and sign < 0 and not exponent and not mantissa):
        return float("nan")
    scale = 2.0 ** (max(exponent, 1) - bias - mantissa_bits)
    return sign * scale * (mantissa + ((1 << mantissa_bits) if exponent else 0))


# --- types ---

_WRAPPER = re.compile(r"(tensor|vector|!tt\.ptr|!tt\.tensordesc)<(.*)>$")
_SHAPE = re.compile(r"((?:\d+x)*)(.*)")


@lru_cache(maxsize=4096)
def type_of(text: str) -> Type:
    """The Type that MLIR spells `text`. Types of other dialects keep their text as `element`."""
    text = text.strip()
    wrapper = _WRAPPER.match(text)
    if wrapper is None:
        return Type(text, text=text)
    kind, inner = wrapper.group(1), split(wrapper.group(2), ", ")[0]
    if kind == "!tt.ptr":
        return Type("ptr", (), type_of(inner), text)
    if kind == "!tt.tensordesc":
        return Type("tensordesc", (), type_of(inner if inner.startswith("tensor<") else f"tensor<{inner}>"), text)
    if (shape := _SHAPE.fullmatch(inner)) is None:
        raise Unsupported(f"type {text}")
    sizes, element = shape.groups()
    of = type_of(element)
    return Type(of.element, tuple(map(int, sizes.split("x")[:-1])), of.pointee, text)


@lru_cache(maxsize=4096)
def signature(text: str) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
    """`(a, b) -> c` or `(a) -> (b, c)` as operand and result types."""
    left, right = split(text, " -> ")[0], text[len(split(text, " -> ")[0]) + 4 :]
    return _types(left), _types(right) if right.startswith("(") else (type_of(right),)


def _types(text: str) -> tuple[Type, ...]:
    inner = text.strip()[1:-1]
    return tuple(map(type_of, split(inner, ", "))) if inner else ()


_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|->|[<(\[{>)\]}]')


def split(text: str, separator: str) -> list[str]:
    """Cut at every separator outside brackets and strings."""
    parts, depth, start, at = [], 0, 0, 0
    edges = [(m.start(), m.end(), m.group()) for m in _BRACKET.finditer(text)] + [(len(text), len(text), "")]
    for begin, end, mark in edges:
        while depth == 0 and (cut := text.find(separator, at, begin + (len(separator) if mark == "->" else 0))) >= 0:
            parts.append(text[start:cut])
            start = at = cut + len(separator)
        at = max(at, end)
        depth += (mark in "<([{") - (mark in ">)]}") if len(mark) == 1 else 0
    return [*parts, text[start:]]


# --- attributes ---


@lru_cache(maxsize=4096)
def operation(name: str, text: str) -> dict[str, Any]:
    """The attributes in ` <{properties}> {attributes}` of operation `name`, shared: copy before changing."""
    cursor, out = _Cursor(text), {}
    while cursor.at < len(text.rstrip()):
        out.update(cursor.dictionary("}>" if cursor.eat("<{") else cursor.expect("{", "}")))
    for key, value in out.items():
        names = ENUMS.get((name, key))
        if names is not None and type(value) is int and value < len(names):
            out[key] = names[value]
    return out


def unescape(text: str) -> str:
    """MLIR's string escapes: a backslash and two hex digits, a backslash and the character."""
    if "\\" not in text:
        return text
    raw = re.sub(
        rb"\\([0-9A-Fa-f]{2})|\\(.)",
        lambda m: bytes.fromhex(m[1].decode()) if m[1] else {b"n": b"\n", b"t": b"\t"}.get(m[2], m[2]),
        text.encode(),
    )
    return raw.decode(errors="replace")


class _Cursor:
    """Recursive descent over the text of an attribute."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fail(self) -> NoReturn:
        raise Unsupported("Triton IR attribute", why=repr(self.text[self.at : self.at + 120]))

    def space(self) -> None:
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1

    def eat(self, mark: str) -> bool:
        self.space()
        found = self.text.startswith(mark, self.at)
        self.at += len(mark) * found
        return found

    def expect(self, mark: str, result: str = "") -> str:
        if not self.eat(mark):
            self.fail()
        return result

    def take(self, pattern: re.Pattern[str]) -> str:
        self.space()
        found = pattern.match(self.text, self.at)
        if found is None:
            self.fail()
        self.at = found.end()
        return found.group()

    def group(self) -> str:
        """The text inside the bracket that opens here; the cursor moves behind it."""
        self.space()
        depth, start = 0, self.at + 1
        for mark in _BRACKET.finditer(self.text, self.at):
            if len(mark.group()) == 1:
                depth += 1 if mark.group() in "<([{" else -1
                if depth == 0:
                    self.at = mark.end()
                    return self.text[start : mark.start()]
        return self.fail()

    def dictionary(self, close: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        while not self.eat(close):
            key = self.take(_KEY).strip('"')
            out[key] = self.value() if self.eat("=") else True
            self.eat(",")
        return out

    def items(self, close: str) -> tuple[Any, ...]:
        out = []
        while not self.eat(close):
            out.append(self.value())
            self.eat(",")
        return tuple(out)

    def type(self) -> Any:
        self.space()
        start = self.at
        if self.text[start] == "(":
            self.group()
            self.expect("->")
            self.space()
            self.group() if self.text[self.at] == "(" else self.type()
            return signature(self.text[start : self.at])
        self.take(_WORD)
        if self.text[self.at : self.at + 1] == "<":
            self.group()
        return type_of(self.text[start : self.at])

    def value(self) -> Any:
        self.space()
        for mark, reader in _READERS:
            if mark.match(self.text, self.at):
                return reader(self)
        return self.type()

    def number(self) -> Any:
        digits = self.take(_NUMBER)
        return number(digits, self.type().element if self.eat(":") else "")

    def string(self) -> str:
        text = unescape(self.take(_STRING)[1:-1])
        if self.eat(":"):
            self.type()
        return text

    def symbol(self) -> str:
        return self.take(_SYMBOL)[1:].strip('"')

    def hashed(self) -> str:
        """`#arith.fastmath<none>` is "none"; anything longer keeps its text."""
        start = self.at
        self.take(_HASH)
        inner = self.group() if self.text[self.at : self.at + 1] == "<" else ""
        return inner if inner and _WORD.fullmatch(inner) else self.text[start : self.at]

    def array(self) -> tuple[Any, ...]:
        self.take(_WORD)
        element, _, body = self.group().partition(":")
        return tuple(number(x.strip(), element.strip()) for x in body.split(",")) if body else ()

    def dense(self) -> Any:
        self.take(_WORD)
        body = self.group()
        self.expect(":")
        return dense(body, self.type())

    def word(self) -> Any:
        return self.take(_WORD) != "false"

    def braces(self) -> dict[str, Any]:
        self.expect("{")
        return self.dictionary("}")

    def brackets(self) -> tuple[Any, ...]:
        self.expect("[")
        return self.items("]")


_KEY = re.compile(r'"[^"]*"|[A-Za-z_][\w$.\-]*')
_WORD = re.compile(r"!?[A-Za-z_][\w$.\-]*")
_NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SYMBOL = re.compile(r'@(?:"[^"]*"|[\w$.\-]+)')
_HASH = re.compile(r"#[\w$.\-]+")
_READERS = (
    (_NUMBER, _Cursor.number),
    (_STRING, _Cursor.string),
    (re.compile(r"dense<"), _Cursor.dense),
    (re.compile(r"array<"), _Cursor.array),
    (re.compile(r"(?:true|false|unit)\b"), _Cursor.word),
    (_SYMBOL, _Cursor.symbol),
    (_HASH, _Cursor.hashed),
    (re.compile(r"\{"), _Cursor.braces),
    (re.compile(r"\["), _Cursor.brackets),
)


def number(digits: str, element: str) -> Any:
    """A literal of the element type; hexadecimal digits of a float type are its bits."""
    if digits in ("true", "false"):
        return digits == "true"
    if element in FLOATS:
        return float_of_bits(int(digits, 16), element) if digits.startswith("0x") else rounded(float(digits), element)
    if digits.startswith(("0x", "-0x")):
        return int(digits, 16)
    return float(digits) if any(c in digits for c in ".eE") else int(digits)


def rounded(value: float, element: str) -> float:
    """The printer shows just enough digits: the value is the nearest number of the type."""
    if element in ("f32", "f16"):
        return float(np.dtype({"f32": np.float32, "f16": np.float16}[element]).type(value))
    if element == "f64" or value == 0.0 or value in (float("inf"), float("-inf")):
        return value
    _, mantissa_bits, bias, _ = FLOATS[element]
    exponent = max(int(np.floor(np.log2(abs(value)))), 1 - bias)
    step = 2.0 ** (exponent - mantissa_bits)
    return float(np.round(value / step) * step)


def dense(body: str, of: Type) -> Any:
    """The elements of `dense<body>`: one number if the literal is one; "0x..." is raw little-endian bytes."""
    body = body.strip()
    if body.startswith('"0x'):
        return _raw(bytes.fromhex(body[3:-1]), of)
    if not body.startswith("["):
        return number(body, of.element) if body else np.zeros(of.shape)
    flat = [number(x, of.element) for x in re.findall(r"[^\s,\[\]]+", body)]
    kind = np.float64 if of.is_float else np.bool_ if of.element == "i1" else np.int64
    return np.array(flat, kind).reshape(of.shape)


def _raw(data: bytes, of: Type) -> np.ndarray:
    if of.element == "i1":
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[: int(np.prod(of.shape))]
        return bits.astype(np.bool_).reshape(of.shape)
    words = np.frombuffer(data, np.dtype(f"<{'u' if of.is_float else 'i'}{max(1, of.bits // 8)}"))
    if not of.is_float:
        return words.astype(np.int64).reshape(of.shape)
    return np.array([float_of_bits(int(w), of.element) for w in words], np.float64).reshape(of.shape)
