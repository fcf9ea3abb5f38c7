"""Known names: softmax, layer_norm, gelu ... One row each, written in the formula language itself.

    name     what terms, text and tests call it
    params   its arguments; the one called `i` is the axis
    body     what it means
    binds    the axis does not occur in the result, as with a sum: mean(i, a); softmax(i, a) keeps it
    latex    {0} {1} are the printed arguments, {axis} the axis
    torch    the same with {0} {1} for tensors, {dim} for the axis' position; None: its body is printed

A name in a term is the node `name(args)` with the axis as its attribute. It is recognised by equality with the body
(a law `body = name(...)` that lift.simplify adds for each row) and unfolded for evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from . import term as T
from .term import FOLDS, Axis, Term


@dataclass(frozen=True, slots=True)
class Definition:
    name: str
    params: tuple[str, ...]
    body: str
    latex: str
    torch: str | None
    binds: bool = False

    @property
    def on_axis(self) -> bool:
        return "i" in self.params

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(p for p in self.params if p != "i")


def _row(call: str, body: str, latex: str | None = None, torch: str | None = None, binds: bool = False) -> Definition:
    name, _, params = call.rstrip(")").partition("(")
    names = tuple(p.strip() for p in params.split(","))
    under = "_{{{axis}}}" if "i" in names else ""
    slots = ", ".join(f"{{{k}}}" for k in range(len(names) - bool(under)))
    return Definition(
        name,
        names,
        body,
        latex or rf"\operatorname{{{{{name}}}}}{under}({slots})".replace("_", r"\_", name.count("_")),
        torch,
        binds,
    )


F = "torch.nn.functional"
ROWS = [
    # elementwise
    _row("sigmoid(a)", "1 / (1 + exp(-a))", r"\sigma({0})", "torch.sigmoid({0})"),
    _row("silu(a)", "a / (1 + exp(-a))", None, f"{F}.silu({{0}})"),
    _row("relu(a)", "max(a, 0)", None, "torch.relu({0})"),
    _row("leaky_relu(a, b)", "where(0 < a, a, a * b)"),
    _row("elu(a, b)", "where(0 < a, a, b * (exp(a) - 1))"),
    _row("softplus(a)", "log(1 + exp(a))", None, "torch.logaddexp({0}, torch.zeros_like({0}))"),
    _row("gelu(a)", "a * (1 + erf(a / sqrt(2))) / 2", None, f"{F}.gelu({{0}})"),
    _row("gelu_tanh(a)", "a * (1 + tanh(sqrt(2 / pi) * (a + 0.044715 * a ** 3))) / 2", None,
         f'{F}.gelu({{0}}, approximate="tanh")'),
    _row("quick_gelu(a)", "a / (1 + exp(-1.702 * a))"),
    _row("mish(a)", "a * tanh(log(1 + exp(a)))", None, f"{F}.mish({{0}})"),
    # over an axis, which stays
    _row("softmax(i, a)", "exp(a) / sum(i, exp(a))", None, "torch.softmax({0}, {dim})"),
    _row("log_softmax(i, a)", "a - log(sum(i, exp(a)))", None, "torch.log_softmax({0}, {dim})"),
    _row("layer_norm(i, a, eps)", "(a - mean(i, a)) / sqrt(var(i, a) + eps)"),
    _row("rms_norm(i, a, eps)", "a / sqrt(mean(i, a * a) + eps)"),
    _row("normalize(i, a)", "a / sqrt(sum(i, a * a))"),
    # over an axis, which disappears; take(i, a, t) is a at i = t, and stands in bodies and laws only
    _row("take(i, a, t)", "take(i, a, t)", binds=True),
    _row("cross_entropy(i, a, t)", "logsumexp(i, a) - take(i, a, t)", binds=True),
    _row("mean(i, a)", "sum(i, a) / size(i)", None, "{0}.mean({dim})", binds=True),
    _row("var(i, a)", "sum(i, (a - sum(i, a) / size(i)) ** 2) / size(i)", None, "{0}.var({dim}, correction=0)",
         binds=True),
    _row("logsumexp(i, a)", "log(sum(i, exp(a)))", None, "torch.logsumexp({0}, {dim})", binds=True),
    _row("norm(i, a)", "sqrt(sum(i, a * a))", r"\lVert {0} \rVert_{{{axis}}}",
         "torch.linalg.vector_norm({0}, dim={dim})", binds=True),
]  # fmt: skip

DEFINITIONS: dict[str, Definition] = {row.name: row for row in ROWS}
T.NAMED.update((row.name, row.binds) for row in ROWS)


def named(name: str, *args: Term, over: Axis | None = None) -> Term:
    """The node `name(over, args...)`."""
    return T.node(name, args, over)


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


@cache
def _body(name: str) -> Term:
    from .parse import pattern

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
