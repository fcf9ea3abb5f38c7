"""The rules of tile programs, as rows: which statements and expressions do the same to every tensor, in every loop.

Statements are equal when they do the same to all tensors from any start, at any tile of the loops around. So what a
class of equal statements reads, writes and folds is what all of its members do (an analysis by intersection), and two
statements may change places, or share a loop, by what they have to do with each other: their *conflict*, the tensors
that one writes and the other reads or writes.

    independent     no conflict
    aligned on n    every tensor of the conflict has the axis n: a turn of one meets what the same turn of the other did

Each condition of a rule says what goes wrong without it. The rule without one of its conditions is a *twin*, and so is
a form that was published or is often written and does not hold. Rules and twins are tried on random programs in which
what they look for is planted (`superopt.tiles.trials`): a rule must never be wrong there, and each twin has to be."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..program.abstract import FORMS, LAWS, law_rules

OLD, NEW = T.pinned(T.scalar("a0")), T.pinned(T.scalar("a1"))
LEAST = T.const(-math.inf)
# Functions that rules write: below(x, top) = x - top, -inf where top is -inf, so that exp of it is 0 and never exp(nan)
FUNCTIONS: dict[str, tuple[str, Term]] = {
    "max": ("map", T.pinned(T.make("max", OLD, NEW))),
    "below": ("map", T.pinned(T.where(T.make("eq", NEW, LEAST), LEAST, T.sub(OLD, NEW)))),
    "scale:-1": ("scale", T.const(-1)),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A query of egglog; `why`: what goes wrong without it; `apart`: pairs of names that it keeps from being one."""

    text: str
    why: str
    apart: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Twin:
    """A form of a rule that does not hold, and why; `looks`: what it rewrites; `kind`: as it stands in a paper or its
    code, as one may write it, or the rule less one of its conditions."""

    text: str
    why: str
    looks: tuple[str, ...]
    kind: Literal["published", "plausible", "weaker"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One law: `text` in egglog; `source`: where it is from; `looks`: the terms that it rewrites, in the language of
    the e-graph, small letters standing for anything."""

    name: str
    text: str
    source: str
    looks: tuple[str, ...] = ()
    twins: tuple[Twin, ...] = field(default=(), hash=False)

    @property
    def twin(self) -> str:
        """The text of the first twin; "" for none."""
        return self.twins[0].text if self.twins else ""


# ---- conditions ------------------------------------------------------------------------------------------------------


def independent(a: str, b: str, why: str) -> Condition:
    return Condition(f"(= 0 (set-length {_conflict(a, b)}))", why)


def aligned(a: str, b: str, why: str) -> Condition:
    return Condition(f"(= 0 (set-length (set-diff {_conflict(a, b)} (Having n))))", why)


def unread(t: str, e: str, why: str) -> Condition:
    """The value of e does not depend on the tensor t."""
    return Condition(f"(set-not-contains (Reads {e}) {t})", why)


def unfolded(e: str, why: str = "a fold over the axis within it would be over a tile") -> Condition:
    """e has no fold over n: at a tile of n it is the tile of what it is."""
    return Condition(f"(set-not-contains (Folds {e}) n)", why)


def distinct(*pairs: tuple[str, str]) -> Condition:
    return Condition(" ".join(f"(!= {a} {b})" for a, b in pairs), "one is stored over", pairs)


def whole(t: str) -> Condition:
    return Condition(f"(set-not-contains (Having n) {t})", "a turn would see and store a tile of the sum")


def fits(lacked: str, t: str, why: str) -> Condition:
    """A value that lacks these axes can be stored to t."""
    return Condition(f"(= 0 (set-length (set-diff (Lacking (Var {t})) {lacked})))", why)


def _conflict(a: str, b: str) -> str:
    return f"(set-union (set-intersect (W {a}) (set-union (R {b}) (W {b}))) (set-intersect (R {a}) (W {b})))"


TOUCHED = "(set-union (R a) (W a))"
ONCE = (  # the turns of a loop over n do together what statement a does once: the same, or each its tile of it
    Condition("(set-not-contains (F a) n)", "a fold over the axis would be over a tile of it"),
    Condition("(= 0 (set-length (set-intersect (R a) (W a))))", "what adds to itself does so in each turn"),
)
BESIDE = (
    *ONCE,
    Condition(f"(= 0 (set-length (set-intersect (W b) {TOUCHED})))", "turns see what earlier turns of the loop did"),
)

# ---- rows ------------------------------------------------------------------------------------------------------------


def _rule(
    name: str, source: str, given: str, then: str, *conditions: Condition, also: str = "", twins: Sequence[Twin] = ()
) -> Rule:
    """`given` and `then`: terms; `also`: a query that is not a condition, without it the rule is only slower."""
    every = [_text(given, then, also, conditions)]
    for c in conditions:
        every.append(_text(given, then, also, [d for d in conditions if d is not c]))
    own = (Twin(text, c.why, _merged(given, c.apart), "weaker") for text, c in zip(every[1:], conditions, strict=True))
    return Rule(name, every[0], source, (given,), (*twins, *own))


def _merged(given: str, pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The term, or where pairs of names are told the terms in which one of them stands for both."""
    return tuple(re.sub(rf"\b{b}\b", a, given) for a, b in pairs) or (given,)


def _text(given: str, then: str, also: str, conditions: Sequence[Condition]) -> str:
    return f"(rule ((= s {given}) {also} {' '.join(c.text for c in conditions)}) ((union s {then})) :ruleset rules)"


def _wrong(given: str, then: str, why: str, *conditions: Condition, published: bool = False) -> Twin:
    return Twin(_text(given, then, "", conditions), why, (given,), "published" if published else "plausible")


def _seq(*parts: str) -> str:
    """One statement, nested to the right."""
    return parts[0] if len(parts) == 1 else f"(Seq {parts[0]} {_seq(*parts[1:])})"


def _anywhere(
    name: str,
    source: str,
    given: Sequence[str],
    then: Sequence[str],
    *conditions: Condition,
    twins: Sequence[Twin] = (),
) -> tuple[Rule, Rule]:
    """Of statements in a sequence: before another one, and at the end."""
    first = _rule(name, source, _seq(*given, "d"), _seq(*then, "d"), *conditions)
    return first, _rule(f"{name}, at the end", source, _seq(*given), _seq(*then), *conditions, twins=twins)


SEQUENCES = (
    _rule("nested to the right", "A.1", "(Seq (Seq a b) c)", "(Seq a (Seq b c))"),
    *_anywhere("commute", "A.1", ["a", "b"], ["b", "a"], independent("a", "b", "one may read what the other writes")),
)  # fmt: skip
OVER = _anywhere(  # a statement may stand before it any number of times: what counts programs leaves it out
    "stored over", "A.1", ["a", "(Store t e)"], ["(Store t e)"],
    Condition("(= 0 (set-length (set-remove (W a) t)))", "it stores to another tensor too"),
    unread("t", "e", "the value that is lost is read first"),
)  # fmt: skip
CONSTANT = "(Store t (Const x))"
STARTS = _anywhere(  # commute, one way, for what sums and maxima start from: sequences keep their order, and stay few
    "a start comes first", "ours", ["a", CONSTANT], [CONSTANT, "a"],
    independent("a", CONSTANT, "it would be stored over before it is read"),
)  # fmt: skip
LATER = "a turn would read what later turns write"
LOOPED = "(Looped n)"  # axes that are looped over at all: those that fit into a tile need no loop
LOOPS = (
    *_anywhere("fuse", "A.1", ["(Loop n a)", "(Loop n b)"], ["(Loop n (Seq a b))"], aligned("a", "b", LATER)),
    _rule("part", "A.1", "(Loop n (Seq a b))", "(Seq (Loop n a) (Loop n b))",
          aligned("a", "b", "a variable without the axis holds what the last turn left")),
    _rule("interchange", "A.1", "(Loop n (Loop m a))", "(Loop m (Loop n a))",
          Condition("(= 0 (set-length (set-diff (W a) (set-union (Having n) (Having m)))))",
                    "what has neither axis is stored in another order")),
    _rule("sink", "A.1", "(Seq a (Loop n b))", "(Loop n (Seq a b))", *BESIDE),
    _rule("hoist", "A.1", "(Loop n (Seq a b))", "(Seq a (Loop n b))", *BESIDE),
    _rule("tiles of tiles", "ours", "(Loop n (Loop n a))", "(Loop n a)"),
    _rule("a loop over nothing", "ours", "(Loop n a)", "a", *ONCE),
    _rule("tile", "A.1", "(Store t e)", "(Loop n (Store t e))", unfolded("e"),
          Condition("(set-contains (Having n) t)", "what reads itself does so in each turn"), also=LOOPED),
)  # fmt: skip
EARLIER = "it changes with what is summed so far"
STEP = "(Store t (Add (Var t) (Sum n e)))"
TOP = '(Store t (Fun2 "max" (Var t) (Max n e)))'
FOLDED = (whole("t"), unread("t", "e", EARLIER), unfolded("e"))
ASSUMED = "the variable is assumed to be 0 at first"
SPLITS = (
    _rule("sum in a loop", "A.1", "(Store t (Sum n e))", f'(Seq (Store t (Const "0")) (Loop n {STEP}))', *FOLDED,
          also=LOOPED, twins=[_wrong("(Store t (Sum n e))", f"(Loop n {STEP})", ASSUMED, *FOLDED, published=True)]),
    _rule("sum in a loop, from what is there", "A.1", STEP, f"(Loop n {STEP})", *FOLDED, also=LOOPED),
    _rule("sum that a loop makes", "A.1", f"(Loop n {STEP})", STEP, *FOLDED,
          twins=[_wrong(f"(Loop n {STEP})", "(Store t (Sum n e))", "the variable is assumed to be 0 at first", *FOLDED,
                        published=True)]),
    _rule("maximum in a loop", "ours", "(Store t (Max n e))", f'(Seq (Store t (Const "-inf")) (Loop n {TOP}))', *FOLDED,
          also=LOOPED, twins=[_wrong("(Store t (Max n e))", f'(Seq (Store t (Const "0")) (Loop n {TOP}))',
                        "0 may be larger than all of them", *FOLDED)]),
    _rule("maximum in a loop, from what is there", "ours", TOP, f"(Loop n {TOP})", *FOLDED, also=LOOPED),
    *(
        _rule(f"{name} after the sum", "ours", f"(Store t ({op} (Sum n e) d))",
              f"(Seq (Store t (Sum n e)) (Store t ({op} (Var t) d)))",
              unread("t", "d", f"the {what} may be what was just stored over"))
        for name, op, what in (("quotient", "Div", "divisor"), ("product", "Mul", "factor"))
    ),
)  # fmt: skip
NO_ROOM, TOO_WIDE = "the tensor of the parts lacks an axis", "the parts have an axis that the whole lacks"
LOST = "what the tensor of the parts held is lost"


def _parts(name: str, op: str) -> tuple[Rule, ...]:
    """A fold over an axis that was declared as two, by way of a tensor that is stored over later."""
    part, rest = f"({op} j e)", f"(Store t ({op} i (Var c)))"
    narrow = fits("(set-insert (Lacking (Var c)) i)", "t", TOO_WIDE)
    return (
        *_anywhere(f"{name} in two steps", "ours", [f"(Store t ({op} i {part}))", "(Store c f)"],
                   [f"(Store c {part})", rest, "(Store c f)"],
                   fits(f"(Lacking {part})", "c", NO_ROOM), narrow, unread("c", "f", LOST)),
        *_anywhere(f"{name} of what was stored", "ours", ["(Store c e)", f"(Store t ({op} i e))"],
                   ["(Store c e)", rest], unread("c", "e", "the value has changed with the store"), narrow),
    )  # fmt: skip


PARTS = (*_parts("sum", "Sum"), *_parts("maximum", "Max"))


# ---- sums under a running maximum (online softmax) -------------------------------------------------------------------


MINUS = '(Add x (Fun "scale:-1" (Var t)))'


def _under(name: str, sums: Sequence[tuple[str, str]]) -> tuple[Rule, Rule]:
    """t = max(n, x); c = sum(n, exp(x - t) v) ... as one loop that corrects the sums so far, after t = -inf, c = 0:

        c = c exp(t - new) + sum(n, exp(x - new) v)     for each c
        t = new                                         new = max(t, max(n, x))

    `sums`: each tensor and its factor v, "" for none."""
    new = '(Fun2 "max" (Var t) (Max n x))'
    given = ["(Store t (Max n x))", *(f"(Store {c} (Sum n {_term('(Exp ' + MINUS + ')', v)}))" for c, v in sums)]
    start = ['(Store t (Const "-inf"))', *(f'(Store {c} (Const "0"))' for c, _ in sums)]
    steps = [_step(c, v, f'(Exp (Fun2 "below" (Var t) {new}))', f'(Exp (Fun2 "below" x {new}))') for c, v in sums]
    last = f"(Store t {new})"
    held = ["t", *(c for c, _ in sums)]
    values = ["x", *dict.fromkeys(v for _, v in sums if v)]
    conditions = (
        distinct(*combinations(held, 2)),
        _all([whole(t) for t in held]),
        _all([unread(t, e, EARLIER) for t in held for e in values]),
        _all([unfolded(e) for e in values]),
    )
    unguarded = [
        _step(c, v, f'(Exp (Add (Var t) (Fun "scale:-1" {new})))', f'(Exp (Add x (Fun "scale:-1" {new})))')
        for c, v in sums
    ]
    forgotten = [_step(c, v, "", f'(Exp (Fun2 "below" x {new}))') for c, v in sums]
    loops = (
        (start, unguarded, "-inf - (-inf) is not a number, where the first tiles are -inf"),
        (start, forgotten, "the sum so far is under an earlier maximum"),
        (start[1:], steps, "the maximum is assumed to be -inf at first"),
    )
    twins = [_wrong(_seq(*given), _seq(*s, f"(Loop n {_seq(*b, last)})"), why, *conditions) for s, b, why in loops]
    return _anywhere(name, "ours", given, [*start, f"(Loop n {_seq(*steps, last)})"], *conditions, twins=twins)


def _all(conditions: Sequence[Condition]) -> Condition:
    return Condition(" ".join(c.text for c in conditions), conditions[0].why)


def _term(exp: str, v: str) -> str:
    return f"(Mul {exp} {v})" if v else exp


def _step(c: str, v: str, correction: str, exp: str) -> str:
    return f"(Store {c} (Add {_term(f'(Var {c})', correction)} (Sum n {_term(exp, v)})))"


ONLINE = (
    *_under("sum under a running maximum", [("c", "")]),
    *_under("weighted sum under a running maximum", [("c", "v")]),
    *_under("two sums under a running maximum", [("c", ""), ("o", "v")]),
)

UNDER = f"(Sum j (Mul (Exp {MINUS}) v))"
DECODING = _anywhere(  # of each part its own maximum p, and the sum q under it; then they are joined
    "weighted sum under a maximum, in two steps", "ours",
    ["(Store t (Max i (Max j x)))", f"(Store c (Sum i {UNDER}))", "(Store p f)", "(Store q g)"],
    ["(Store p (Max j x))", "(Store t (Max i (Var p)))", '(Store q (Sum j (Mul (Exp (Fun2 "below" x (Var p))) v)))',
     '(Store c (Sum i (Mul (Exp (Fun2 "below" (Var p) (Var t))) (Var q))))', "(Store p f)", "(Store q g)"],
    distinct(("p", "q"), ("q", "t")),
    Condition("(set-not-contains (Having j) t)", "the maximum differs along what is summed"),
    _all([fits("(Lacking (Max j x))", "p", NO_ROOM), fits(f"(Lacking {UNDER})", "q", NO_ROOM),
          fits("(Lacking (Var p))", "q", NO_ROOM)]),
    _all([fits("(set-insert (Lacking (Var p)) i)", "t", TOO_WIDE),
          fits("(set-insert (Lacking (Var q)) i)", "c", TOO_WIDE)]),
    _all([unread("p", e, "it is read after the maxima of the parts are stored there") for e in "xv"]),
    _all([unread("p", "f", LOST), unread("q", "f", LOST), unread("q", "g", LOST)]),
)  # fmt: skip

# ---- loads of what was stored ----------------------------------------------------------------------------------------

# (Put t e s): what s does where t holds e. (In t e f): the value of f where t holds e.
INTO_REST = """
(rule ((= p (Put t e (Seq a b))) {given}) ((union p (Seq (Put t e a) (Put t e b)))) :ruleset rules)"""
INTO_LOOP = """
(rule ((= p (Put t e (Loop n b))) {given}) ((union p (Loop n (Put t e b)))) :ruleset rules)"""
KEPT = "(set-not-contains (W {s}) t) (= 0 (set-length (set-intersect (W {s}) (Reads e))))"
PUT = (
    INTO_REST.format(given=KEPT.format(s="a"))
    + INTO_LOOP.format(given=f"{KEPT.format(s='b')} (set-not-contains (Folds e) n)")
    + """
(rule ((= p (Put t e (Store u f)))) ((union p (Store u (In t e f)))) :ruleset rules)
(rule ((= p (In t e (Var t)))) ((union p e)) :ruleset rules)
(rule ((= p (In t e f)) (= rf (Reads f)) (set-not-contains rf t)) ((union p f)) :ruleset rules)
(rule ((= p (In t e (Add a b)))) ((union p (Add (In t e a) (In t e b)))) :ruleset rules)
(rule ((= p (In t e (Mul a b)))) ((union p (Mul (In t e a) (In t e b)))) :ruleset rules)
(rule ((= p (In t e (Div a b)))) ((union p (Div (In t e a) (In t e b)))) :ruleset rules)
(rule ((= p (In t e (Exp a)))) ((union p (Exp (In t e a)))) :ruleset rules)
(rule ((= p (In t e (Sum n a)))) ((union p (Sum n (In t e a)))) :ruleset rules)
(rule ((= p (In t e (Max n a)))) ((union p (Max n (In t e a)))) :ruleset rules)
(rule ((= p (In t e (Fun f a)))) ((union p (Fun f (In t e a)))) :ruleset rules)
(rule ((= p (In t e (Fun2 f a b)))) ((union p (Fun2 f (In t e a) (In t e b)))) :ruleset rules)
(rule ((= p (In t e (Fun3 f a b c)))) ((union p (Fun3 f (In t e a) (In t e b) (In t e c)))) :ruleset rules)
"""
)
CHANGED = unread("t", "e", "the value has changed with the store")
READ = "(set-contains (R b) t)"
STORED = ("(Seq (Store t e) b)", "(Seq (Store t e) (Put t e b))")


def _through(given: str, more: str, why: str) -> Twin:
    """Loads replaced further than they may be: `given` what is planted."""
    return Twin(_text(*STORED, READ, [CHANGED]) + more, why, (given,), "plausible")


FORWARD = (
    _rule(
        "load what was stored", "A.2", *STORED, CHANGED, also=READ,
        twins=[
            _through("(Seq (Store t e) (Seq (Store u f) (Store v (Add g (Var t)))))", INTO_REST.format(given=""),
                     "it is stored to before it is loaded, or what its value was made of is"),
            _through("(Seq (Store t e) (Loop n (Store u (Mul f (Var t)))))",
                     INTO_LOOP.format(given=KEPT.format(s="b")), "a fold over the axis of a loop would be over a tile"),
            _through("(Seq (Store t e) (Loop n (Store u (Mul f (Var t)))))",
                     INTO_LOOP.format(given="(set-not-contains (Folds e) n)"),
                     "turns of the loop change what its value was made of"),
        ],
    ),
    _rule("load what was stored, at first", "A.2", "(Seq (Store t e) (Seq b d))",
          "(Seq (Store t e) (Seq (Put t e b) d))", CHANGED, also=READ),
)  # fmt: skip

# ---- laws of values --------------------------------------------------------------------------------------------------

MORE_LAWS = "(Max i (Max j a)) = (Max j (Max i a))"
PUBLISHED = {  # of a law: a form of it in which anything may stand
    "(Sum i (Mul a b)) = (Mul (Sum i a) b)": (
        "(Mul (Sum i (Mul a b)) c) = (Sum i (Mul (Mul a c) b))",
        "a product of matrices and one by elements change places: the factor may have the axis of the sum",
    )
}


def _laws(lines: str, source: str) -> tuple[Rule, ...]:
    """The laws of values, one by one."""
    out = []
    for line in lines.strip().splitlines():
        law, _, condition = line.partition(" if ")
        twins = [_loose(*PUBLISHED[law], "published")] if law in PUBLISHED else []
        twins += [_loose(law, "it may have the axis of the fold", "weaker")] if condition else []
        out.append(Rule(law, law_rules(line, "rules")[0], source, tuple(law.split(" = ")), tuple(twins)))
    return tuple(out)


def _loose(law: str, why: str, kind: Literal["published", "weaker"]) -> Twin:
    return Twin(law_rules(law, "rules")[0], why, tuple(law.split(" = ")), kind)


ALGEBRA = (
    *_laws(LAWS, "A.2"),
    *_laws(MORE_LAWS, "ours"),
    Rule("0 + a = a", '(rewrite (Add (Const "0") a) a :ruleset rules)', "A.2", ('(Add (Const "0") a)',)),
)
# What a value lacks: of its axes those that are told of. `Lacking` of a load is known before any rule is applied.
FACTS = """
(function Lacking (E) Names :merge (set-union old new))
(rule ((= e (Var x))) ((set (Lacking e) (set-empty))) :ruleset facts)
(rule ((= e (Const c))) ((set (Lacking e) (set-empty))) :ruleset facts)
(rule ((Lacks e i)) ((set (Lacking e) (set-of i))) :ruleset facts)
""" + "\n".join(
    f"(rule ((= e {form})) ((set (Lacking e) (set-empty))) :ruleset facts)"
    for form in [*FORMS, "(Sum i a)", "(Max i a)"]
)
RULES: tuple[Rule, ...] = (*SEQUENCES, *OVER, *STARTS, *LOOPS, *SPLITS, *PARTS, *ONLINE, *DECODING, *FORWARD, *ALGEBRA)
