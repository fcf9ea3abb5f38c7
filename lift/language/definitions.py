"""Known names: softmax, layer_norm, gelu ... One row each, written in the formula language itself.

    name     what terms, text and tests call it
    params   its arguments; the one called `i` is the axis
    body     what it means
    binds    the axis does not occur in the result, as with a sum: mean(i, a); softmax(i, a) keeps it
    latex    {0} {1} are the printed arguments, {axis} the axis
    torch    the same with {0} {1} for tensors, {dim} for the axis' position; None: its body is printed

A name in a term is the node `name(args)` with the axis as its attribute. It is recognised by equality with the body
(a law `body = name(...)` that lift.simplify.saturation adds for each row) and unfolded for evaluation
(`lift.language.unfolding`)."""

from __future__ import annotations

from dataclasses import dataclass

from ..terms import term as T
from ..terms.term import Axis, Term


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
