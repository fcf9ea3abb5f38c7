"""The laws. One row each: name, left, right, condition; `=` rewrites both ways, `->` only from left to right.

The sides are in the formula language: i, j are axes, p, q conditions, u, v numbers, t an index, every other letter
a real value. A value may depend on every axis in scope, also on one that is bound around it, unless the condition
says `c without i`. The other conditions are signs (`a > 0`, `a >= 0`, `a != 0`) and `c defined`: c reads no element
that only a mask keeps inside. A conditional law is applied only where the condition was derived (signs: by the rows
of FACTS), never on trust; sizes count as positive.

Associativity, commutativity and units are not rows: they are the normal form of lift.terms.construct. The rows `body ->
name(...)` of the known names come from lift.language.definitions."""

from __future__ import annotations

from dataclasses import dataclass

from ..language.definitions import ROWS as DEFINITIONS


@dataclass(frozen=True, slots=True)
class Law:
    name: str
    left: str
    arrow: str
    right: str
    condition: str = ""

    def __str__(self) -> str:
        return f"{self.left} {self.arrow} {self.right}" + (f"  if {self.condition}" if self.condition else "")


def _laws(*rows: tuple[str, ...]) -> list[Law]:
    return [Law(*row) for row in rows]


ARITHMETIC = _laws(
    ("add-same",            "a + a",                     "->", "2 * a"),
    ("add-like",            "u * a + v * a",             "->", "(u + v) * a"),
    ("add-like-one",        "a + u * a",                 "->", "(1 + u) * a"),
    ("factor",              "a * b + a * c",             "->", "a * (b + c)"),
    ("factor-one",          "a + a * b",                 "->", "a * (1 + b)"),
    ("factor-number",       "u + u * b",                 "->", "u * (1 + b)"),
    ("distribute-number",   "u * (a + b)",               "->", "u * a + u * b"),
    ("recip-mul",           "1 / (a * b)",               "=",  "(1 / a) * (1 / b)"),
    ("cancel",              "a * (1 / a)",               "->", "1",                          "a != 0"),
    ("square-difference",   "(a - b) * (a + b)",         "->", "a * a - b * b"),
    ("pow-half",            "a ** 0.5",                  "->", "sqrt(a)"),
    ("pow-minus-half",      "a ** -0.5",                 "->", "1 / sqrt(a)"),
    ("pow-minus-one",       "a ** -1",                   "->", "1 / a"),
    ("pow-minus-two",       "a ** -2",                   "->", "1 / (a * a)"),
)  # fmt: skip

FUNCTIONS = _laws(
    ("exp-sum",             "exp(a + b)",                "=",  "exp(a) * exp(b)"),
    ("exp-negative",        "1 / exp(a)",                "=",  "exp(-a)"),
    ("exp-log",             "exp(log(a))",               "->", "a",                          "a > 0"),
    ("log-exp",             "log(exp(a))",               "->", "a"),
    ("log-product",         "log(a * b)",                "->", "log(a) + log(b)",            "a > 0, b > 0"),
    ("log-recip",           "log(1 / a)",                "->", "-log(a)",                    "a > 0"),
    ("exp2",                "exp2(a)",                   "->", "exp(log(2) * a)"),
    ("log2",                "log2(a)",                   "->", "log2(e) * log(a)"),
    ("log10",               "log10(a)",                  "->", "log10(e) * log(a)"),
    ("sqrt-square",         "sqrt(a) * sqrt(a)",         "->", "a",                          "a >= 0"),
    ("sqrt-of-square",      "sqrt(a * a)",               "->", "abs(a)"),
    ("sqrt-product",        "sqrt(a * b)",               "->", "sqrt(a) * sqrt(b)",          "a >= 0, b >= 0"),
    ("sqrt-recip",          "sqrt(1 / a)",               "->", "1 / sqrt(a)"),
    ("over-sqrt",           "a / sqrt(a)",               "->", "sqrt(a)",                    "a > 0"),
    ("abs-positive",        "abs(a)",                    "->", "a",                          "a >= 0"),
    ("sigmoid-negative",    "1 / (1 + exp(a))",          "=",  "sigmoid(-a)"),
    ("sigmoid-quotient",    "exp(a) / (1 + exp(a))",     "->", "sigmoid(a)"),
    ("sigmoid-branches",    "where(p, sigmoid(a), exp(a) / (1 + exp(a)))", "->", "sigmoid(a)"),
    ("sigmoid-complement",  "1 - sigmoid(a)",            "->", "sigmoid(-a)"),
    ("sigmoid-log",         "log(sigmoid(a))",           "->", "-softplus(-a)"),
    ("tanh-sigmoid",        "1 + tanh(a)",               "=",  "2 * sigmoid(2 * a)"),
    ("tanh-as-sigmoid",     "2 * sigmoid(2 * a) - 1",    "->", "tanh(a)"),
    ("tanh-exp",            "(exp(a) - exp(-a)) / (exp(a) + exp(-a))", "->", "tanh(a)"),
    ("tanh-negative",       "tanh(-a)",                  "->", "-tanh(a)"),
    ("silu-sigmoid",        "a * sigmoid(a)",            "->", "silu(a)"),
    ("quick-gelu",          "a * sigmoid(1.702 * a)",    "->", "quick_gelu(a)"),
    ("mish-softplus",       "a * tanh(softplus(a))",     "->", "mish(a)"),
    ("softplus-stable",     "max(a, 0) + log(1 + exp(-abs(a)))", "->", "softplus(a)"),
)  # fmt: skip

ORDER = _laws(
    ("max-where",           "where(a < b, b, a)",        "->", "max(a, b)"),
    ("max-where-le",        "where(a <= b, b, a)",       "->", "max(a, b)"),
    ("min-where",           "where(a < b, a, b)",        "->", "min(a, b)"),
    ("min-where-le",        "where(a <= b, a, b)",       "->", "min(a, b)"),
    ("max-nonnegative",     "max(a, 0)",                 "->", "a",                          "a >= 0"),
    ("abs-max",             "max(a, -a)",                "->", "abs(a)"),
    ("leaky-relu-le",       "where(0 <= a, a, a * b)",   "->", "leaky_relu(a, b)"),
    ("relu-scaled",         "max(a, 0) + b * min(a, 0)", "->", "leaky_relu(a, b)"),
    ("elu-le",              "where(a <= 0, b * (exp(a) - 1), a)", "->", "elu(a, b)"),
    ("leaky-relu-flipped",  "where(a <= 0, a * b, a)",   "->", "leaky_relu(a, b)"),
)  # fmt: skip

FOLDS = _laws(
    ("sum-factor",          "sum(i, a * c)",             "=",  "c * sum(i, a)",              "c without i"),
    ("sum-add",             "sum(i, a + b)",             "->", "sum(i, a) + sum(i, b)"),
    ("sum-subtract",        "sum(i, a) + u * sum(i, b)", "->", "sum(i, a + u * b)"),
    ("sum-constant",        "sum(i, c)",                 "->", "size(i) * c",                "c without i"),
    ("prod-exp",            "prod(i, exp(a))",           "->", "exp(sum(i, a))"),
    ("amax-shift",          "amax(i, a + c)",            "->", "c + amax(i, a)",             "c without i"),
    ("amin-shift",          "amin(i, a + c)",            "->", "c + amin(i, a)",             "c without i"),
    ("amax-scale",          "amax(i, a * c)",            "=",  "c * amax(i, a)",             "c without i, c > 0"),
    ("amax-exp",            "amax(i, exp(a))",           "=",  "exp(amax(i, a))"),
    ("amin-scale",          "amin(i, a * c)",            "->", "c * amin(i, a)",             "c without i, c > 0"),
    ("amax-constant",       "amax(i, c)",                "->", "c",                          "c without i"),
    ("amax-negative",       "amax(i, -a)",               "->", "-amin(i, a)"),
    ("amin-negative",       "amin(i, -a)",               "->", "-amax(i, a)"),
)  # fmt: skip

STABILITY = _laws(
    ("softmax-shift",       "softmax(i, a + c)",         "->", "softmax(i, a)",              "c without i"),
    ("log-softmax-shift",   "log_softmax(i, a + c)",     "->", "log_softmax(i, a)",          "c without i"),
    ("logsumexp-shift",     "logsumexp(i, a + c)",       "->", "c + logsumexp(i, a)",        "c without i"),
    ("log-of-softmax",      "log(softmax(i, a))",        "->", "log_softmax(i, a)"),
    ("exp-of-log-softmax",  "exp(log_softmax(i, a))",    "->", "softmax(i, a)"),
    ("log-softmax",         "a - logsumexp(i, a)",       "->", "log_softmax(i, a)"),
    ("exp-logsumexp",       "exp(a - logsumexp(i, a))",  "->", "softmax(i, a)"),
)  # fmt: skip

STATISTICS = _laws(
    ("mean-factor",         "mean(i, a * c)",            "->", "c * mean(i, a)",             "c without i"),
    ("mean-shift",          "mean(i, a + c)",            "->", "c + mean(i, a)",             "c without i"),
    ("var-mean",            "mean(i, (a - mean(i, a)) * (a - mean(i, a)))", "->", "var(i, a)"),
    ("var-of-squares",      "mean(i, a * a) - mean(i, a) * mean(i, a)", "->", "var(i, a)"),
    ("rms-of-norm",         "a / norm(i, a)",            "->", "normalize(i, a)"),
)  # fmt: skip

MASKS = _laws(
    ("where-common",        "where(p, a + b, a)",        "->", "a + where(p, b, 0)"),
    ("where-common-else",   "where(p, a, a + b)",        "->", "a + where(p, 0, b)"),
    ("where-nested",        "where(p, where(q, a, b), b)", "->", "where(p & q, a, b)"),
    ("where-again",         "where(p, where(p, a, b), c)", "->", "where(p, a, c)"),
    ("where-scale",         "where(p, a, 0) * c",        "->", "where(p, a * c, 0)"),
    ("where-scale-out",     "where(p, a * c, 0)",        "->", "where(p, a, 0) * c",         "c defined"),
    ("where-add-low",       "where(p, a, -inf) + c",     "->", "where(p, a + c, -inf)"),
    ("where-add-low-out",   "where(p, a + c, -inf)",     "->", "where(p, a, -inf) + c",      "c defined"),
    ("where-scale-low",     "where(p, a, -inf) * c",     "->", "where(p, a * c, -inf)",      "c > 0"),
    ("exp-low",             "exp(where(p, a, -inf))",    "=",  "where(p, exp(a), 0)"),
    ("where-sum",           "where(p, a, 0) + where(p, b, 0)", "->", "where(p, a + b, 0)"),
    ("sum-where",           "sum(i, where(p, a, 0))",    "=",  "where(p, sum(i, a), 0)",     "p without i"),
)  # fmt: skip

TAKES = _laws(
    ("take-factor",         "take(i, a, t) * c",         "->", "take(i, a * c, t)",         "c without i, t without i"),
    ("log-likelihood",      "take(i, a, t) - logsumexp(i, a)", "->", "-cross_entropy(i, a, t)", "t without i"),
)  # fmt: skip

NAMES = [
    Law(row.name, row.body, "->", f"{row.name}({', '.join(row.params)})", "t without i" if "t" in row.params else "")
    for row in DEFINITIONS
    if row.name != "take"
]

LAWS: list[Law] = ARITHMETIC + FUNCTIONS + ORDER + FOLDS + STABILITY + STATISTICS + MASKS + TAKES + NAMES

FACTS: list[tuple[str, str]] = [
    # derived             from
    ("size(i) > 0",       ""),
    ("exp(a) > 0",        ""),
    ("sigmoid(a) > 0",    ""),
    ("a * b > 0",         "a > 0, b > 0"),
    ("a * b >= 0",        "a >= 0, b >= 0"),
    ("a * a >= 0",        ""),
    ("a + b > 0",         "a > 0, b >= 0"),
    ("a + b >= 0",        "a >= 0, b >= 0"),
    ("1 / a > 0",         "a > 0"),
    ("1 / a >= 0",        "a >= 0"),
    ("abs(a) >= 0",       ""),
    ("sqrt(a) >= 0",      ""),
    ("sqrt(a) > 0",       "a > 0"),
    ("sum(i, a) > 0",     "a > 0"),
    ("sum(i, a) >= 0",    "a >= 0"),
    ("amax(i, a) > 0",    "a > 0"),
    ("amax(i, a) >= 0",   "a >= 0"),
    ("mean(i, a) >= 0",   "a >= 0"),
    ("var(i, a) >= 0",    ""),
    ("max(a, b) > 0",     "a > 0"),
    ("max(a, b) >= 0",    "a >= 0"),
    ("where(p, a, b) > 0",  "a > 0, b > 0"),
    ("where(p, a, b) >= 0", "a >= 0, b >= 0"),
]  # fmt: skip
