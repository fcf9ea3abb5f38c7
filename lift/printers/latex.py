"""Formulas as LaTeX, in index notation: \\mathrm{out}_{m,n} = \\operatorname{softmax}_{n}(x_{m,n})."""

from __future__ import annotations

import re

from ..language.definitions import DEFINITIONS
from ..language.infix import (
    ADD,
    AND,
    ATOM,
    COMPARE,
    MUL,
    NEG,
    POW,
    PRECEDENCE,
    Piece,
    negative,
    number_parts,
    operands,
    order,
    split,
)
from ..language.infix import number as infix_number
from ..language.unfolding import meaningful
from ..terms.meanings import Domain
from ..terms.ops import OPS
from ..terms.spec import Formula
from ..terms.term import Axis, Term

LATEX = Domain("LaTeX", missing="call", column="latex", says="its template in LaTeX, a fold's head")
LATEX.fill({
    "sum": r"\sum", "prod": r"\prod", "amax": r"\max", "amin": r"\min",
    "argmax": r"\operatorname{argmax}", "argmin": r"\operatorname{argmin}",
})  # fmt: skip
LATEX.derive(("add", "mul", "where"), "a form of its own: _sum, _product, cases")
ON_BITS = ("bitand", "bitor", "bitxor")
# Readers know no order among the operations on bits, nor between a product and a remainder: parentheses tell it.
BINDS = {**PRECEDENCE, **dict.fromkeys(ON_BITS, PRECEDENCE["shl"]), "mod": MUL - 0.25}
OPERANDS: dict[float, float] = {COMPARE: AND + 0.5}  # elsewhere more than the operation binds itself
GREEK = {
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "theta",
    "lambda",
    "mu",
    "sigma",
    "tau",
    "omega",
    "phi",
    "rho",
    "eta",
    "kappa",
}


def latex(formula: Formula) -> str:
    """`name_{axes} = formula`, for amsmath."""
    axes = ",".join(_axis(a) for a in formula.axes)
    return f"{symbol(formula.name)}{f'_{{{axes}}}' if axes else ''} = {_piece(meaningful(formula.term)).text}"


def symbol(name: str) -> str:
    """A name as a symbol: x, \\alpha, \\mathrm{weight}."""
    if name in GREEK or name == "eps":
        return r"\varepsilon" if name in ("eps", "epsilon") else f"\\{name}"
    return name if len(name) == 1 else rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}"


def _axis(a: Axis) -> str:
    return a.name if re.fullmatch(r"\w'*", a.name) else symbol(a.name)


def _piece(t: Term) -> Piece:
    match t.op:
        case "const":
            return _constant(t)
        case "size" | "scalar":
            return Piece(symbol(t.attr))
        case "axis":
            return Piece(_axis(t.attr))
        case "undef":
            return Piece(r"\mathrm{nan}" if t.attr == "nan" else r"\bot")
        case "read":
            return Piece(
                f"{symbol(t.attr)}_{{{','.join(_piece(i).text for i in t.args)}}}" if t.args else symbol(t.attr)
            )
        case "add":
            return _sum(t)
        case "mul" | "recip":
            return _product(t)
        case "where":
            p, a, b = (_piece(s).text for s in t.args)
            return Piece(rf"\begin{{cases}} {a} & \text{{if }} {p} \\ {b} & \text{{otherwise}} \end{{cases}}", ADD)
    if isinstance(t.attr, Axis):
        return _over(t)
    return _operation(t)


def _constant(t: Term) -> Piece:
    if isinstance(t.attr, bool):
        return Piece(rf"\mathrm{{{str(t.attr).lower()}}}")
    v = abs(t.attr)
    text, minus = r"\infty" if v == float("inf") else number(v), t.attr < 0
    return Piece(f"-{text}", NEG) if minus else Piece(text)


def number(v: float | int) -> str:
    """A recovered constant: 0.7978845608 is \\sqrt{2 / \\pi}."""
    head, tail = number_parts(infix_number(v))
    return rf"\frac{{{_words(head)}}}{{{_words(tail)}}}" if tail else _words(head)


def _joined(pieces: list[Piece], between: str, level: float) -> str:
    return between.join(_at(p, level) for p in pieces)


def _at(p: Piece, level: float) -> str:
    return p.text if p.binds >= level else rf"\left({p.text}\right)"


def _sum(t: Term) -> Piece:
    out = ""
    for a in sorted(t.args, key=lambda a: (negative(a) is not None, *order(negative(a) or a))):
        minus = negative(a)
        text = _at(_piece(a if minus is None else minus), ADD if minus is None else MUL)
        out += f" + {text}" if out and minus is None else f" - {text}" if out else text if minus is None else f"-{text}"
    return Piece(out, ADD)


def _product(t: Term) -> Piece:
    value, up, down = split(t)
    head, tail = number_parts(infix_number(abs(value)))
    above, below = _factors(up), _factors(down)
    if head != "1" or not above:
        above = [Piece(_words(head)), *above]
    if tail:
        below = [Piece(_words(tail)), *below]
    sign = "-" if value < 0 else ""
    if below:
        top, bottom = (p[0].text if len(p) == 1 else _joined(p, r" \, ", MUL) for p in (above, below))
        return Piece(rf"{sign}\frac{{{top}}}{{{bottom}}}", NEG if sign else ATOM)
    return Piece(sign + _joined(above, r" \, ", MUL), NEG if sign else MUL)


def _words(text: str) -> str:
    """The LaTeX of a piece of a constant's text."""
    text = re.sub(r"sqrt\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"\blog(2|10)\(([^()]*)\)", r"\\log_{\1} \2", text)
    text = re.sub(r"\blog\(([^()]*)\)", r"\\log \1", text)
    text = re.sub(r"\bpi\b", r"\\pi", text).replace(" ** 2", "^2").replace(" * ", r" \, ")
    if m := re.fullmatch(r"(\d(?:\.\d+)?)e([-+]\d+)", text):
        return rf"{m[1]} \cdot 10^{{{int(m[2])}}}" if m[1] != "1" else f"10^{{{int(m[2])}}}"
    return text


def _factors(ts: list[Term]) -> list[Piece]:
    out = []
    for f in sorted(set(ts), key=order):
        p, n = _piece(f), ts.count(f)
        out.append(p if n == 1 else Piece(f"{_power_base(f, p)}^{{{n}}}", POW))
    return out


def _power_base(t: Term, p: Piece) -> str:
    return p.text if t.op in ("scalar", "size") else rf"{{{p.text}}}" if t.op == "read" else rf"\left({p.text}\right)"


def _over(t: Term) -> Piece:
    axis, args = _axis(t.attr), [_piece(a) for a in t.args]
    if t.op in LATEX:
        return Piece(f"{LATEX[t.op]}_{{{axis}}} {_at(args[0], MUL)}", MUL - 0.5)
    return Piece(DEFINITIONS[t.op].latex.format(*(a.text for a in args), axis=axis))


def _operation(t: Term) -> Piece:
    row = DEFINITIONS.get(t.op) or OPS[t.op]
    level = BINDS.get(t.op)
    args = [_piece(a) for a in _in_chain(t)]
    texts = [_at(a, OPERANDS.get(level, level + 0.5)) if level else a.text for a in args]
    slots = ", ".join(f"{{{k}}}" for k in range(len(args)))
    template = row.latex or rf"\operatorname{{{{{t.op}}}}}({slots})".replace("_", r"\_")
    bracketed = template.startswith(r"\lfloor")
    return Piece(_chained(template, texts), ATOM if level is None or bracketed else level)


def _in_chain(t: Term) -> list[Term]:
    """The operands, those of a nested operation on bits of the same name too: a & b & c."""
    nested = lambda a: t.op in ON_BITS and a.op == t.op  # noqa: E731
    return [b for a in operands(t) for b in (_in_chain(a) if nested(a) else [a])]


def _chained(template: str, texts: list[str]) -> str:
    """A template of two arguments joined over more; function calls take a list."""
    if "{1}" not in template or len(texts) == 2 or "{2}" in template:
        return template.format(*texts)
    out = texts[0]
    for text in texts[1:]:
        out = template.format(out, text)
    return out
