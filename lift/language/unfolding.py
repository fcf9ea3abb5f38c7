"""The meanings of known names: softmax(n, x[m, n]) is exp(x[m, n]) / sum(n, exp(x[m, n])), by the rows of
`lift.language.definitions`."""

from __future__ import annotations

from collections.abc import Mapping

from ..runtime.session import memo
from ..terms import construct as T
from ..terms.term import FOLDS, Axis, Term
from .definitions import DEFINITIONS
from .parse import pattern


def unfold(t: Term) -> Term:
    """The meaning of the outermost name of t: softmax(n, x[m, n]) -> exp(x[m, n]) / sum(n, exp(x[m, n]))."""
    if t.op == "take":
        return T.substitute(t.args[0], {t.attr: t.args[1]})
    row = DEFINITIONS[t.op]
    return instantiate(
        _body(row.name), dict(zip(row.arguments, t.args, strict=True)), {} if t.attr is None else {"i": t.attr}
    )


def meaningful(t: Term) -> Term:
    """The term without names over an axis that their argument does not have: softmax(n, c) is 1 / N."""
    odd = lambda s: s.op in DEFINITIONS and s.attr is not None and s.attr not in s.args[0].free  # noqa: E731
    return T.rewrite(t, lambda s: meaningful(unfold(s)) if odd(s) else None)


def expand(t: Term) -> Term:
    """The term without known names."""
    return T.rewrite(t, lambda s: expand(unfold(s)) if s.op in DEFINITIONS else None)


@memo
def _body(name: str) -> Term:
    return pattern(DEFINITIONS[name].body)


def instantiate(p: Term, terms: Mapping[str, Term], axes: Mapping[str, Axis]) -> Term:
    """The pattern with terms for its variables and axes for its axis variables. Binders capture on purpose: in
    `sum(i, a)` the axis i that `a` mentions is the one bound."""
    match p.op:
        case "scalar":
            return terms[p.attr]
        case "size":
            return axes[p.attr].size
        case "axis":
            return T.axis(axes[p.attr.name])
    args = tuple(instantiate(a, terms, axes) for a in p.args)
    if p.op == "take":
        return T.substitute(args[0], {axes[p.attr.name]: args[1]})
    if p.op in FOLDS or (p.op in DEFINITIONS and p.attr is not None):
        return T.make(p.op, *args, attr=axes[p.attr.name])
    return T.make(p.op, *args, attr=p.attr) if p.args else p


T.UNFOLD.update(dict.fromkeys(DEFINITIONS, unfold))
