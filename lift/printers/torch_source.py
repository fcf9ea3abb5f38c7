"""Formulas as PyTorch functions that run at every shape, on every floating dtype, without loops over elements.

Every value has one dimension per free axis of its term, in one global order of axes (the output's first), and is
aligned where it is used by `[:, None]`. Sums of products become @ or einsum, other folds reductions, other reads
advanced indexing with aranges. Values used twice are assigned to a variable."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ..errors import Unsupported
from ..language.case_spec import DTYPES
from ..language.definitions import DEFINITIONS
from ..language.idioms import Cat, cat, certain_reads, scan
from ..language.infix import (
    ADD,
    AND,
    ATOM,
    COMPARE,
    MUL,
    OR,
    POW,
    PRECEDENCE,
    Child,
    Piece,
    arithmetic,
    in_order,
    operands,
    operation,
)
from ..language.unfolding import unfold
from ..terms import construct as T
from ..terms.constants import recover
from ..terms.meanings import Domain
from ..terms.ops import OPS
from ..terms.spec import Formula
from ..terms.term import FOLDS, Axis, Term
from .text import Shapes, index_form, input_shapes, lengths, permuted, placed, product, slice_text

FUNCTIONS = ("sqrt", "exp", "exp2", "log", "log2", "log10", "floor", "ceil", "trunc", "sin", "cos", "tan", "tanh",
             "sinh", "cosh", "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh", "erf")  # fmt: skip
BUILTINS = ("abs", "float", "int", "max", "min", "round")  # which the code calls
MATH = {"pi", "e", "inf", *FUNCTIONS}
TORCH = Domain("PyTorch source", missing="error", error="{op} in PyTorch", column="torch",
               says="its template in PyTorch")  # fmt: skip
TORCH.fill({"sum": "{0}.sum({dim})", "prod": "{0}.prod({dim})", "amax": "{0}.amax({dim})", "amin": "{0}.amin({dim})",
            "argmax": "{0}.argmax({dim})", "argmin": "{0}.argmin({dim})"})  # fmt: skip
TORCH.derive(("add", "mul"), "sums, products and quotients: infix.arithmetic")
NUMBERS = Domain("PyTorch numbers", missing="error", error="{op} in PyTorch", says="its Python on sizes and scalars")
NUMBERS.fill({"max": "max({0}, {1})", "min": "min({0}, {1})", "where": "({1} if {0} else {2})", "abs": "abs({0})",
              "round": "round({0})", "and": "({0} and {1})", "or": "({0} or {1})", "not": "(not {0})",
              **{name: f"{name}({{0}})" for name in FUNCTIONS}, "atan2": "atan2({0}, {1})",
              "next_power_of_2": "(1 << ({0} - 1).bit_length() if {0} > 0 else 0)",
              "bitand": "({0} & {1})", "bitor": "({0} | {1})", "bitxor": "({0} ^ {1})",
              **{f"wrap{n}": f"(({{0}} + {2**n // 2}) % {2**n} - {2**n // 2})" for n in (8, 16, 32)}})  # fmt: skip
NUMBERS.derive(("add", "mul", "recip"), "sums, products and quotients: infix.arithmetic")
NUMBERS.derive(PRECEDENCE, "infix.operation")
NUMBERS.derive((r.name for r in OPS.values() if r.torch is not None), "that of PyTorch, and .item()")
NUMBERS.derive(FOLDS, "that of PyTorch: _over")
# Where the row's template is for Python numbers alone: bit_length(n) is e for n = m * 2 ** e with 1/2 <= m < 1.
ON_TENSORS = {"next_power_of_2": "torch.where({0} > 0, 1 << torch.frexp(({0} - 1).double()).exponent.long(), 0)"}
ON_BITS = ("bitand", "bitor", "bitxor", "shl", "shr", "next_power_of_2")  # which PyTorch has for integers alone
TIGHT = ("next_power_of_2", "wrap8", "wrap16", "wrap32")  # whose template adds to its argument
# How tightly the result of a row binds that is neither a call nor in parentheses: in Python | is loosest, ^ next.
BITS = {"bitor": OR, "bitxor": (OR + AND) / 2, "bitand": AND, **{op: PRECEDENCE[op] for op in ("shl", "shr")}}
BINDS = {**BITS, "cbrt": MUL, "pow": POW}
# Of integers, where PyTorch keeps the 8 bits of an input.
WIDENED = ("add", "mul", "mod", "shl", "abs", "sign", "next_power_of_2")
WIDTH_OF_ARGUMENTS = ("max", "min", "where", "floordiv", "truncdiv", "truncmod", "shr", "bitand", "bitor", "bitxor",
                      "amax", "amin")  # fmt: skip
NARROWEST = range(128)  # what every integer type has
ELEMENT = {T.REAL: "torch.float64", T.INT: "torch.int64", T.BOOL: "torch.bool"}


def torch_source(formula: Formula, shapes: Shapes | None = None) -> str:
    """A PyTorch function `name(inputs, *, scalars and sizes that no input has)`. `shapes` as for
    lift.printers.text.text. Raises Unsupported for an operation that PyTorch does not have."""
    return _Source(formula, input_shapes(formula.term) if shapes is None else shapes, shapes or {}).function()


def parameters(formula: Formula) -> tuple[list[str], list[str]]:
    """Names of the function's inputs, and of its sizes and scalars."""
    seen = _everything([formula.term, *(a.size for a in formula.axes)])
    return sorted({s.attr for s in seen if s.op == "read"}), sorted(
        {s.attr for s in seen if s.op in ("size", "scalar")}
    )


def _everything(terms: Sequence[Term]) -> set[Term]:
    out = {s for t in terms for s in t.walk()}
    return out | {s for t in out if isinstance(t.attr, Axis) for s in t.attr.size.walk()}


def _axes_of(t: Term) -> list[Axis]:
    out: dict[Axis, None] = {}
    for s in in_order(t):
        if isinstance(s.attr, Axis):
            out.setdefault(s.attr)
    return list(out)


def _natural_order(t: Term, axes: Sequence[Axis]) -> list[Axis]:
    """All axes, in an order that the output and the reads follow as far as they agree: x[m, k] * w[k, n] gives m, k,
    n."""
    after: dict[Axis, set[Axis]] = {a: set() for a in (*axes, *_axes_of(t))}
    reads = [[i.attr for i in r.args if i.op == "axis"] for r in in_order(t) if r.op == "read"]
    for sequence in [list(axes), *sorted(reads, key=lambda r: -len(r))]:
        for a, b in pairwise(sequence):
            if not _reaches(after, b, a):
                after[a].add(b)
    out: list[Axis] = []
    while after:
        first = next(a for a in after if not any(a in later for later in after.values()))
        out.append(first)
        del after[first]
    return out


def _reaches(after: dict[Axis, set[Axis]], a: Axis, b: Axis) -> bool:
    return a == b or any(_reaches(after, c, b) for c in after[a])


def _uses(t: Term) -> Counter[int]:
    """How often each subterm is printed: a shared 1 / a is printed by its a."""
    out = Counter(a.id for s in t.walk() for a in s.args)
    for s in t.walk():
        if s.op == "recip":
            out[s.args[0].id] += out[s.id] - 1
    return out


class _Source:
    def __init__(self, formula: Formula, shapes: Shapes, told: Shapes) -> None:
        self.formula, self.shapes, self.told = formula, shapes, told
        self.term = _printable(formula.term)
        self.rank = {a: k for k, a in enumerate(_natural_order(self.term, formula.axes))}
        self.inputs, self.sizes = parameters(formula)
        self.uses = _uses(self.term)
        self.certain = certain_reads(self.term)
        self.lines: list[str] = []
        self.done: dict[int, Piece] = {}
        self.named_constants = not MATH & {*self.inputs, *self.sizes}

    # ---- the function

    def function(self) -> str:
        result = self.result()
        code = [self.outside(line) for line in (*self.lines, f"return {result}")]
        read, given = self.numbers(code)
        head = ", ".join(self.inputs + (["*", *given] if given else []))
        body = [f'"""{index_form(self.formula, self.shapes)}"""', *read, *code]
        used = (
            [name for name in sorted(MATH) if any(re.search(rf"(?<![\w.\"]){name}(?!\w)", line) for line in body[1:])]
            if self.named_constants
            else []
        )
        imports = [f"from math import {', '.join(used)}", ""] if used else []
        imports = ["import builtins", *imports] if any("builtins." in line for line in code) else imports
        name = self.formula.name if self.formula.name not in (*self.inputs, *self.sizes) else f"{self.formula.name}_"
        return "\n".join(
            [*imports, "import torch", "", "", f"def {name}({head}):", *(f"    {line}" for line in body), ""]
        )

    def outside(self, line: str) -> str:
        """A line where calls of Python's own functions are that also where an argument has such a name. Raises
        Unsupported for an argument that has the name of a module."""
        names = {*self.inputs, *self.sizes}
        if hidden := sorted({"torch", "builtins"} & names):
            raise Unsupported(f"an argument named {hidden[0]} in PyTorch")
        calls = [n for n in BUILTINS if n in names]
        return re.sub(rf"(?<![\w.])({'|'.join(calls)})\(", r"builtins.\1(", line) if calls else line

    def numbers(self, code: Sequence[str]) -> tuple[list[str], list[str]]:
        """Of the sizes and scalars in the code: lines that read them off shapes that were told, and the others."""
        needed = [n for n in self.sizes if any(re.search(rf"(?<![\w.\"]){n}(?!\w)", line) for line in code)]
        dims = ((x, d, e) for x in self.inputs for d, e in enumerate(self.told.get(x, ())) if e is not None)
        source = {e.attr: f"{x}.shape[{d}]" for x, d, e in reversed(list(dims)) if e.op == "size"}
        return [f"{n} = {source[n]}" for n in needed if n in source], [n for n in needed if n not in source]

    def result(self) -> str:
        out, axes = self.value(self.term), self.formula.axes
        shape = ", ".join(self.size(a) for a in axes)
        kind, dtype = self.term.type, self.formula.dtype
        real = dtype in DTYPES and dtype[0] in "fb" and dtype != "bool"
        if not self.is_tensor(self.term):
            return (
                f"torch.full(({shape}{',' * (len(axes) == 1)}), {out.text}, dtype={ELEMENT[T.REAL if real else kind]})"
            )
        missing = [a for a in axes if a not in self.term.free]
        aligned = self.align(self.term, tuple(axes))
        if kind != T.REAL and real:
            aligned = _suffixed(aligned, f".to(torch.{DTYPES[dtype]})")
        return _suffixed(aligned, f".expand({shape})").text if missing else aligned.at(ADD)

    # ---- values

    def axes(self, t: Term) -> tuple[Axis, ...]:
        """The dimensions of the value of t."""
        return tuple(sorted(t.free, key=self.rank.__getitem__))

    def size(self, a: Axis) -> str:
        """The number of elements of an axis."""
        return self.value(a.size).text

    def is_tensor(self, t: Term) -> bool:
        return any(s.op in ("read", "axis") for s in t.walk())

    def is_whole(self, t: Term) -> bool:
        """Whether its value is of an integer type: a quotient of reals that is rounded is not."""
        kept = t.type == T.INT and t.op in ("mod", *WIDTH_OF_ARGUMENTS)
        return all(self.is_whole(a) for a in t.args if a.type != T.BOOL) if kept else t.type == T.INT

    def is_narrow(self, t: Term) -> bool:
        """Whether its value may be of the integer type of an input, which has 8 bits at least."""
        if t.type != T.INT or not self.is_tensor(t):
            return False
        return t.op == "read" or (
            t.op in WIDTH_OF_ARGUMENTS and not self.widens(t) and any(map(self.is_narrow, t.args))
        )

    def widens(self, t: Term) -> bool:
        """Whether the value, or a number that it is computed with, may not be of the integer type of an input: PyTorch
        takes the type of the tensor that has dimensions."""
        numbers = [a for a in t.args if a.type == T.INT and not a.free]
        negated = t.op in ("floordiv", "truncdiv") and not t.args[1].is_const  # -128 // -1
        return t.op in WIDENED or negated or any(not (a.is_const and a.attr in NARROWEST) for a in numbers)

    def value(self, t: Term) -> Piece:
        if t.id not in self.done:
            piece = self._value(t)
            if self.uses[t.id] > 1 and not piece.text.replace("_", "").isalnum() and t.op != "const":
                piece = self._variable(piece)
            self.done[t.id] = piece
        return self.done[t.id]

    def _variable(self, piece: Piece) -> Piece:
        taken = {*self.inputs, *self.sizes}
        name = next(
            n
            for k in range(10**6)
            if (n := f"t{k}") not in taken and not any(line.startswith(f"{n} =") for line in self.lines)
        )
        self.lines.append(f"{name} = {_bare(piece.text)}")
        return Piece(name)

    def align(self, t: Term, frame: tuple[Axis, ...]) -> Piece:
        """The value of t with its dimensions at their places in `frame`, broadcastable against it."""
        piece = self.value(t)
        if self.axes(t) == frame[len(frame) - len(t.free) :]:
            return piece
        return placed(piece.at(ATOM), list(self.axes(t)), frame)

    def _value(self, t: Term) -> Piece:
        match t.op:
            case "size" | "scalar":
                return Piece(t.attr)
            case "axis":
                return Piece(f"torch.arange({_bare(self.size(t.attr))})")
            case "read":
                return self._read(t)
            case "undef":
                return Piece('float("nan")')
        if (joined := cat(t)) is not None:
            return self._cat(joined)
        if t.op in FOLDS or (t.op in DEFINITIONS and t.attr is not None):
            return self._over(t)
        return self._elementwise(t)

    def _elementwise(self, t: Term) -> Piece:
        frame = self.axes(t)
        real = t.type == T.REAL
        carried = (
            t.op in ("add", "mul")
            and any(a.type == T.REAL and self.is_tensor(a) and a.op != "recip" for a in t.args)
            and not any(a.op == "recip" for a in t.args)
        )

        def child(a: Term) -> Piece:
            piece = self.align(a, frame)
            if not real and self.is_narrow(a) and self.widens(t):
                return _suffixed(piece, ".long()")
            if t.op in ON_BITS and not self.is_whole(a):
                return self._whole(a, piece)
            double = real and a.type == T.INT and self.is_tensor(a) and not carried
            return _suffixed(piece, ".double()") if double else piece

        if (out := arithmetic(t, child, self._number)) is not None:
            return out
        if not self.is_tensor(t):
            return self._python(t, child)
        return self._row(t, child)

    def _whole(self, t: Term, piece: Piece) -> Piece:
        """The value of t, a rounded real, of an integer type."""
        return _suffixed(piece, ".long()") if self.is_tensor(t) else Piece(f"int({piece.text})")

    def _number(self, v: float | int) -> str:
        if v == float("inf"):
            return "inf" if self.named_constants else 'float("inf")'
        return recover(v)[1] if isinstance(v, float) and self.named_constants else repr(v)

    def _python(self, t: Term, child: Child) -> Piece:
        """An operation on sizes and scalars alone is one on Python numbers."""
        if t.op in NUMBERS and (self.named_constants or t.op not in MATH):
            return Piece(_folded(NUMBERS[t.op], [child(a).at(ADD if t.op in TIGHT else 0) for a in operands(t)]))
        if t.op in PRECEDENCE:
            return operation(t, child)
        return _suffixed(self._row(t, child), ".item()")

    def _row(self, t: Term, child: Child) -> Piece:
        """The row's own template. Numbers become tensors where the function takes nothing else."""
        row = DEFINITIONS.get(t.op) or OPS[t.op]
        if row.torch is None:
            raise Unsupported(f"{t.op} in PyTorch")
        if t.op in ("eq", "ne") and t.args[0] is t.args[1]:  # said as a person would
            number = f"torch.isnan({_bare(self._argument(t, 0, child))})"
            return Piece(f"(~{number})" if t.op == "eq" else number)
        if row.torch == "{0}" and self.is_tensor(t):
            return child(t.args[0])
        out = _folded(ON_TENSORS.get(t.op, row.torch), [self._argument(t, k, child) for k in self._places(t)])
        return Piece(_bare(out) if t.op in BITS else out, BINDS.get(t.op, ATOM))

    def _places(self, t: Term) -> list[int]:
        """The places of the arguments, in the order in which they are printed."""
        return [t.args.index(a) for a in operands(t)]

    def _argument(self, t: Term, k: int, child: Child) -> str:
        """Argument k with the parentheses that its place in the row's template needs."""
        a, piece = t.args[k], child(t.args[k])
        free = t.op == "where" and k > 0 and (t.type == T.INT or self.is_tensor(t.args[3 - k]))  # may be a number
        if not (self.is_tensor(a) or free or t.op in ON_TENSORS or t.op in PRECEDENCE):
            return f"torch.tensor({piece.text}, dtype={ELEMENT[a.type]})"
        row = DEFINITIONS.get(t.op) or OPS[t.op]
        if (row.torch or "").startswith("{0}."):
            return _primary(piece)
        level = self._level(t, k)
        return _bare(piece.text) if level is None else piece.at(level)

    def _level(self, t: Term, k: int) -> float | None:
        """How tightly argument k must bind beside the operators of the row's template, None in a call."""
        if t.op in ON_TENSORS or (t.op == "pow" and k == 0):
            return ATOM
        if t.op in PRECEDENCE:
            return ADD if PRECEDENCE[t.op] == COMPARE else POW
        return BITS.get(t.op)

    # ---- elements

    def _read(self, t: Term) -> Piece:
        """x, x.T, x[:, :K], x[:, 0], w[ids], or advanced indexing in every dimension."""
        if not t.args:
            return Piece(t.attr)
        number = lambda s: self.value(s).text  # noqa: E731
        certain, sizes = t.id in self.certain, lengths(t, self.shapes)
        spans = [slice_text(i, n, certain, number) for i, n in zip(t.args, sizes, strict=True)]
        axes = [a for i in t.args for a in self.axes(i)]
        if spans.count(None) <= 1 and len(set(axes)) == len(axes):
            parts = [s or self._index(t, k, self.axes(t.args[k])) for k, s in enumerate(spans)]
            while parts and parts[-1] == ":":
                parts.pop()
            name = f"{t.attr}[{', '.join(parts)}]" if parts else t.attr
            return Piece(permuted(name, sorted(range(len(axes)), key=lambda k: self.rank[axes[k]])))
        return Piece(f"{t.attr}[{', '.join(self._index(t, k, self.axes(t)) for k in range(len(t.args)))}]")

    def _index(self, t: Term, k: int, frame: tuple[Axis, ...]) -> str:
        """Index k of a read. Where the read is guarded, its index may lie outside: it is clamped."""
        piece = self.align(t.args[k], frame)
        if not self.is_whole(t.args[k]):
            piece = self._whole(t.args[k], piece)
        if t.args[k].op == "axis" and t.args[k].attr.size is lengths(t, self.shapes)[k]:
            return piece.text
        if t.args[k].op == "const" and t.args[k].attr >= 0 and t.id in self.certain:
            return piece.text
        if t.id in self.certain or not self.is_tensor(t.args[k]):
            return piece.text if t.id in self.certain else f"min(max({piece.text}, 0), {t.attr}.shape[{k}] - 1)"
        return _suffixed(piece, f".clamp(0, {t.attr}.shape[{k}] - 1)").text

    # ---- folds

    def _cat(self, t: Cat) -> Piece:
        self.rank |= {t.first: self.rank[t.over], t.second: self.rank[t.over]}
        self.certain |= certain_reads(t.a) | certain_reads(t.b)
        return Piece(f"torch.cat(({self.value(t.a).text}, {self.value(t.b).text}), {self.axes(t.a).index(t.first)})")

    def _over(self, t: Term) -> Piece:
        body, over = t.args[0], t.attr
        if (found := scan(t)) is not None:
            values = ".values" if found.name in ("cummax", "cummin") else ""
            dim = self.axes(found.body).index(found.over)
            return _suffixed(self.value(found.body), f".{found.name}({dim}){values}")
        if t.op == "sum" and (out := self._contraction(t)) is not None:
            return out
        if over not in body.free:
            return self._constant_fold(t)
        template = DEFINITIONS[t.op].torch if t.op in DEFINITIONS else TORCH[t.op]
        dim = self.axes(body).index(over)
        x = self.value(body)
        function = (template or "").startswith("torch")
        return Piece((template or "").format(x.text if function else _primary(x), dim=dim))

    def _constant_fold(self, t: Term) -> Piece:
        """A fold of what does not depend on its axis, which has at least one element."""
        body, n = self.value(t.args[0]), self.value(t.attr.size)
        match t.op:
            case "sum":
                return Piece(f"{body.at(MUL)} * {n.at(POW)}", MUL)
            case "prod":
                return Piece(f"{body.at(ATOM)} ** {n.at(POW)}", POW)
            case "argmax" | "argmin":
                return Piece("0")
        return body

    def _contraction(self, t: Term) -> Piece | None:
        """sum(k, a * b) as @ or einsum, where neither factor has all the axes."""
        bound, body = [t.attr], t.args[0]
        while body.op == "sum" and self.uses[body.id] < 2 and body.attr not in bound:
            bound.append(body.attr)
            body = body.args[0]
        factors = [a for a in operands(body) if a.free] if body.op == "mul" else []
        scalars = [a for a in body.args if not a.free] if body.op == "mul" else []
        every = frozenset().union(*(a.free for a in factors)) if factors else frozenset()
        if len(factors) < 2 or any(a.type != T.REAL or a.free == every for a in factors) or not set(bound) <= every:
            return None
        if scalars or any(not self._dense(a) for a in factors):
            return None
        return self._matmul(t, factors, bound) or self._einsum(t, factors)

    def _dense(self, a: Term) -> bool:
        return self.is_tensor(a)

    def _matmul(self, t: Term, factors: list[Term], bound: list[Axis]) -> Piece | None:
        out = self.axes(t)
        if len(factors) != 2 or len(bound) != 1 or len(out) < 2:
            return None
        row, column = out[-2:]
        a, b = factors if row in factors[0].free else factors[::-1]
        batch = set(out[:-2])
        if a.free != batch | {row, bound[0]} or b.free != batch | {bound[0], column}:
            return None
        left, right = self._ordered(a, (*out[:-2], row, bound[0])), self._ordered(b, (*out[:-2], bound[0], column))
        return product(left, right)

    def _ordered(self, t: Term, axes: tuple[Axis, ...]) -> Piece:
        piece, have = self.value(t), self.axes(t)
        order = [have.index(a) for a in axes]
        if order == list(range(len(order))):
            return piece
        swapped = order == [*range(len(order) - 2), len(order) - 1, len(order) - 2]
        return Piece((_undo_transpose(piece.text) if swapped else None) or permuted(piece.at(ATOM), order))

    def _einsum(self, t: Term, factors: list[Term]) -> Piece:
        letters = _letters(sorted({a for f in factors for a in f.free}, key=self.rank.__getitem__))
        spell = lambda s: "".join(letters[a] for a in self.axes(s))  # noqa: E731
        values = ", ".join(self.value(f).text for f in factors)
        return Piece(f'torch.einsum("{",".join(map(spell, factors))}->{spell(t)}", {values})')


def _primary(piece: Piece) -> str:
    """The text where an attribute, a call or an index may follow: digits would take the dot for their own."""
    text = piece.at(ATOM)
    return f"({text})" if text[:1].isdigit() else text


def _suffixed(piece: Piece, suffix: str) -> Piece:
    """The value with an attribute or a method's call behind it."""
    return Piece(f"{_primary(piece)}{suffix}")


def _undo_transpose(text: str) -> str | None:
    name, _, last = text.rpartition(".")
    return name if last in ("T", "mT") and name.isidentifier() else None


def _bare(text: str) -> str:
    """An argument of a call without parentheses around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for k, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if depth == 0 or (depth == 1 and c == ","):
            return text[1:-1] if depth == 0 and k == len(text) - 1 else text
    return text


def _letters(axes: list[Axis]) -> dict[Axis, str]:
    """One letter per axis, its own first letter if that is free."""
    out: dict[Axis, str] = {}
    for a in axes:
        wish = [
            c
            for c in a.name[:1] + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
            if c.isascii() and c.isalpha()
        ]
        out[a] = next(c for c in wish if c not in out.values())
    return out


def _folded(template: str, texts: list[str]) -> str:
    """An operation of two arguments applied to a list of them."""
    if "{2}" in template or "{1}" not in template:
        return template.format(*texts)
    out = texts[0]
    for text in texts[1:]:
        out = template.format(out, text)
    return out


def _printable(t: Term) -> Term:
    """Names that PyTorch does not have, or whose argument does not have the axis, by their meaning."""

    def known(s: Term) -> Term | None:
        row = DEFINITIONS.get(s.op)
        if row is None:
            return None
        if (
            row.torch is None
            or (row.on_axis and s.attr not in s.args[0].free)
            or (not row.on_axis and not s.args[0].free)
        ):
            return _printable(unfold(s))
        return None

    return T.rewrite(t, known)
