"""Terms of a proof in the user's names and the language of formulas: reasons, conditions, invariants, contracts.

le(0, add(N, -1, mul(-1, %1)))     i < N               x[add(mul(N, pid0), %1)]     x[pid0, i]
sum[%1](...) over all numbers      sum(i, ...)         t0                           out
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from trilift.lift.language.infix import SYMMETRIC, in_order, order
from trilift.lift.printers.text import element_text
from trilift.lift.terms import construct as T
from trilift.lift.terms.term import INT, Axis, Term

from ..integers.quotient import divide, expand, to_term
from ..model.configuration import Configuration, View
from ..model.verdict import Clause, Condition, Proof

REASON_CHARACTERS = 400  # characters of a term in a reason
KINDS = (  # the order of a contract
    "size", "shape", "layout", "distinct", "value", "assume", "hint", "clamp", "assert", "float", "nowrap", "config",
)  # fmt: skip
LETTERS = ("i", "j", "k", "l", "p", "q", "r", "s", "t", "u", "v")
MADE = re.compile(r"[%~@#]|.*\.\d+$|a\d+_\d+$|index\d+$")  # axes that no user has named


def words(t: Term, views: Mapping[str, View] | None = None) -> str:
    """A term as text. `views`: tensors whose flat elements are shown by their logical index."""
    try:
        return element_text(named(logical(tidied(t), views or {}))).replace(" < *", "")
    except Exception:  # what has no text
        return repr(t)


def shortened(text: str, limit: int = REASON_CHARACTERS) -> str:
    return text if len(text) <= limit else text[: limit - 4] + " ..."


# ---- comparisons -----------------------------------------------------------------------------------------------------


def tidied(t: Term) -> Term:
    """Comparisons of integers with no negative summand: 0 <= N - 1 - i is i < N. Negated ones are turned."""

    def one(s: Term) -> Term | None:
        if s.op in ("le", "lt") and s.args[0].type == INT:
            return _sides(s)
        if s.op == "not" and s.args[0].op in ("le", "lt") and s.args[0].args[0].type == INT:
            a, b = s.args[0].args
            return _sides(T.node("lt" if s.args[0].op == "le" else "le", (b, a), None, T.BOOL))
        return None

    return T.rewrite(t, one)


def _sides(t: Term) -> Term:
    p = expand(T.sub(t.args[1], t.args[0]))
    if not any(m for m in p):
        return t
    strict = t.op == "lt"
    if not strict and p.get((), 0) == -1:
        strict, p = True, {m: c for m, c in p.items() if m}
    left, right = (to_term({m: s * c for m, c in p.items() if s * c > 0}) for s in (-1, 1))
    return T.node("lt" if strict else "le", (left, right), None, T.BOOL)


# ---- elements --------------------------------------------------------------------------------------------------------


def logical(t: Term, views: Mapping[str, View]) -> Term:
    """x[row * N + column] as x[row, column], for tensors with several dimensions."""

    def one(s: Term) -> Term | None:
        view = views.get(str(s.attr)) if s.op == "read" and len(s.args) == 1 else None
        if view is None or len(view.shape) < 2:
            return None
        return T.node("read", _index(s.args[0], view), s.attr, s.type)

    return T.rewrite(t, one)


def _index(offset: Term, view: View) -> tuple[Term, ...]:
    """The same element: whatever is a multiple of a dimension's stride counts in that dimension."""
    rest = expand(T.sub(offset, view.offset))
    out: dict[int, Term] = {}
    order = sorted(range(len(view.shape)), key=lambda d: (-max(map(len, expand(view.strides[d])), default=0), d))
    for d in order:
        stride = expand(view.strides[d])
        quotient, rest = divide(rest, stride) if stride else ({}, rest)
        out[d] = to_term(quotient)
    return tuple(out[d] for d in range(len(view.shape))) if not rest else (offset,)


# ---- names -----------------------------------------------------------------------------------------------------------


def named(t: Term) -> Term:
    """Axes that the prover has named get letters that nothing else has, in the order in which they occur."""
    taken = {str(s.attr) for s in t.walk() if s.op in ("size", "scalar", "read")}
    axes = list(dict.fromkeys(s.attr for s in t.walk() if isinstance(s.attr, Axis)))
    made = [a for a in axes if MADE.match(a.name)]
    taken |= {a.name for a in axes if a not in made}
    free = (x for x in (*LETTERS, *(f"i{k}" for k in range(1000))) if x not in taken)
    images = {a: Axis(next(free), a.size) for a in _by_place(t, made)}
    return _renamed(t, images, {}) if images else t


def _by_place(t: Term, made: list[Axis]) -> list[Axis]:
    """The axes as they occur in the printed term. Ages of terms and numbers in names that were made do not count."""
    if len(made) < 2:
        return made
    images, memo = {a: Axis("", a.size) for a in made}, dict[int, Term]()
    place = lambda s: order(_renamed(s, images, memo))  # noqa: E731
    walked = in_order(t, lambda s: sorted(s.args, key=place) if s.op in SYMMETRIC else s.args)
    return list(dict.fromkeys(s.attr for s in walked if s.attr in made))


def _renamed(t: Term, images: Mapping[Axis, Axis], memo: dict[int, Term]) -> Term:
    """For printing only: nothing is simplified, and sizes of axes are left as they are."""
    if t.id not in memo:
        args = tuple(_renamed(a, images, memo) for a in t.args)
        attr = images.get(t.attr, t.attr) if isinstance(t.attr, Axis) else t.attr
        memo[t.id] = t if args == t.args and attr is t.attr else T.node(t.op, args, attr, t.type)
    return memo[t.id]


def outputs(configuration: Configuration) -> dict[str, str]:
    """The names of the buffers that the host function made: the output that views all of them."""
    made = {b.name for b in configuration.buffers} - {v.buffer.name for v in configuration.inputs.values()}
    return {v.buffer.name: name for name, v in configuration.outputs.items() if v.buffer.name in made}


def called(text: str, names: Mapping[str, str]) -> str:
    """The text with the names of buffers replaced."""
    if not names:
        return text
    pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"(?<![\w(.])({pattern})(?!\w)", lambda m: names[m[1]], text)


# ---- proofs ----------------------------------------------------------------------------------------------------------


def readable(proof: Proof, configurations: Iterable[Configuration]) -> Proof:
    """The proof with its texts in the user's names; terms, verdict and evidence stay."""
    configurations = tuple(configurations)
    names = {k: v for s in configurations for k, v in outputs(s).items()}
    return replace(
        proof,
        conditions=tuple(_condition(c, names) for c in proof.conditions) if names else proof.conditions,
        contract=contract(proof.contract, names, positive(configurations)),
        reason=called(proof.reason, names),
    )


def positive(configurations: Iterable[Configuration]) -> frozenset[Term]:
    """Sizes that every configuration says to be at least 1."""
    at_least = [{f.args[1] for f in s.facts if f.op == "le" and f.args[0] is T.const(1)} for s in configurations]
    return frozenset(set.intersection(*at_least)) if at_least else frozenset()


def _condition(c: Condition, names: Mapping[str, str]) -> Condition:
    what, why = called(c.what, names), called(c.why, names)
    return c if (what, why) == (c.what, c.why) else replace(c, what=what, why=why)


def contract(
    clauses: Sequence[Clause], names: Mapping[str, str] | None = None, ones: frozenset[Term] = frozenset()
) -> tuple[Clause, ...]:
    """Each clause once, by kind; of those about wrapping only what no other implies where `ones` are at least 1."""
    told = [replace(c, text=called(c.text, names or {})) for c in clauses]
    distinct = list({c.text: c for c in reversed(told)}.values())[::-1]
    kept: list[Clause] = []
    for c in distinct:
        if c.kind == "nowrap" and any(_implies(o, c, ones) for o in kept):
            continue
        kept = [o for o in kept if not (c.kind == o.kind == "nowrap" and _implies(c, o, ones))] + [c]
    return tuple(sorted(kept, key=lambda c: KINDS.index(c.kind) if c.kind in KINDS else len(KINDS)))


def _implies(strong: Clause, weak: Clause, ones: frozenset[Term]) -> bool:
    """b < 2^n follows from a < 2^m for m <= n, where each summand of b is at most one of a and what is left of a is not
    negative: N <= M * N."""
    if any(c.kind != "nowrap" or c.term is None or c.term.op != "lt" for c in (strong, weak)):
        return False
    assert strong.term is not None and weak.term is not None
    (a, m), (b, n) = strong.term.args, weak.term.args
    if not (m.is_const and n.is_const and m.attr <= n.attr):
        return False
    left = dict(expand(a))
    for product, c in sorted(expand(b).items(), key=lambda row: (-len(row[0]), sorted(map(order, row[0])))):
        if c < 0:
            return False
        larger = next((k for k, d in left.items() if d >= c and _divides(product, k, ones)), None)
        if larger is None:
            return False
        left[larger] -= c
    return all(d == 0 or (d > 0 and all(t in ones for t in k)) for k, d in left.items())


def _divides(product: Sequence[Term], of: Sequence[Term], ones: frozenset[Term]) -> bool:
    """of = product * factors that are at least 1; the product itself is not negative."""
    rest = list(of)
    for t in product:
        if t not in rest:
            return False
        rest.remove(t)
    return all(t in ones for t in rest) and (not rest or all(t in ones for t in product))
