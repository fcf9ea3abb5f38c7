"""The rules of tile programs, as rows: which statements and expressions do the same to every tensor, in every loop.

Statements are equal when they do the same to all tensors from any start, at any tile of the loops around. So what a
class of equal statements reads, writes and folds is what all of its members do (an analysis by intersection), and two
statements may change places, or share a loop, by what they have to do with each other: their *conflict*, the tensors
that one writes and the other reads or writes.

    independent     no conflict
    aligned on n    every tensor of the conflict has the axis n: a turn of one meets what the same turn of the other did

Of a rule that is wrong as it was published, or as it is often written, `twin` is that form; both are tried on random
programs (`superopt.tile_trials`), and the twin has to fail there."""

from __future__ import annotations

from dataclasses import dataclass

from .abstract import LAWS, law_rules

CONFLICT = """(= wa (W a)) (= ra (R a)) (= wb (W b)) (= rb (R b))
  (= c (set-union (set-intersect wa (set-union rb wb)) (set-intersect ra wb)))"""
INDEPENDENT = f"{CONFLICT} (= 0 (set-length c))"
ALIGNED = f"{CONFLICT} (= h (Having n)) (= 0 (set-length (set-diff c h)))"
WITHOUT = """(= ra (R a)) (= wa (W a)) (= h (Having n)) (= 0 (set-length (set-intersect h (set-union ra wa))))
  (= fa (F a)) (set-not-contains fa n) (= 0 (set-length (set-intersect ra wa)))"""
BESIDE = f"{WITHOUT} (= wb (W b)) (= 0 (set-length (set-intersect wb (set-union ra wa))))"
OTHER = "(= re (Reads e)) (set-not-contains re t)"


@dataclass(frozen=True, slots=True)
class Rule:
    """One law: `text` in egglog; `source`: where it is from; `twin`: a form that does not hold, `why` it does not."""

    name: str
    text: str
    source: str
    twin: str = ""
    why: str = ""


def _rule(name: str, source: str, given: str, then: str, twin: str = "", why: str = "") -> Rule:
    """`given` and `then`: queries and actions; `twin`: other queries."""
    text = f"(rule ({given}) ({then}) :ruleset rules)"
    return Rule(name, text, source, f"(rule ({twin}) ({then}) :ruleset rules)" if twin else "", why)


SEQUENCES = (
    _rule("nested to the right", "A.1", "(= s (Seq (Seq a b) c))", "(union s (Seq a (Seq b c)))"),
    _rule(
        "commute", "A.1", f"(= s (Seq a (Seq b d))) {INDEPENDENT}", "(union s (Seq b (Seq a d)))",
        "(= s (Seq a (Seq b d)))", "one may read what the other writes",
    ),
    _rule("commute at the end", "A.1", f"(= s (Seq a b)) {INDEPENDENT}", "(union s (Seq b a))", "(= s (Seq a b))",
          "one may read what the other writes"),
)  # fmt: skip
LOOPS = (
    _rule(
        "fuse", "A.1", f"(= s (Seq (Loop n a) (Seq (Loop n b) d))) {ALIGNED}", "(union s (Seq (Loop n (Seq a b)) d))",
        "(= s (Seq (Loop n a) (Seq (Loop n b) d)))", "a turn would read what later turns write",
    ),
    _rule("fuse at the end", "A.1", f"(= s (Seq (Loop n a) (Loop n b))) {ALIGNED}", "(union s (Loop n (Seq a b)))",
          "(= s (Seq (Loop n a) (Loop n b)))", "a turn would read what later turns write"),
    _rule("part", "A.1", f"(= s (Loop n (Seq a b))) {ALIGNED}", "(union s (Seq (Loop n a) (Loop n b)))",
          "(= s (Loop n (Seq a b)))", "a variable without the axis holds what the last turn left"),
    _rule(
        "interchange", "A.1",
        """(= s (Loop n (Loop m a))) (!= n m) (= wa (W a)) (= hn (Having n)) (= hm (Having m))
        (= 0 (set-length (set-diff wa (set-union hn hm))))""",
        "(union s (Loop m (Loop n a)))",
        "(= s (Loop n (Loop m a))) (!= n m)", "what has neither axis is stored in another order",
    ),
    _rule("sink", "A.1", f"(= s (Seq a (Loop n b))) {BESIDE}", "(union s (Loop n (Seq a b)))",
          "(= s (Seq a (Loop n b)))", "what is done again is not the same where the loop changes what it reads"),
    _rule("hoist", "A.1", f"(= s (Loop n (Seq a b))) {BESIDE}", "(union s (Seq a (Loop n b)))",
          "(= s (Loop n (Seq a b)))", "what differs from turn to turn cannot be done once"),
    _rule("tiles of tiles", "ours", "(= s (Loop n (Loop n a)))", "(union s (Loop n a))"),
    _rule("a loop over nothing", "ours", f"(= s (Loop n a)) {WITHOUT}", "(union s a)", "(= s (Loop n a))",
          "what adds to itself does so in each turn"),
    _rule(
        "tile", "A.1", "(= s (Store t e)) (= h (Having n)) (set-contains h t) (= fe (Folds e)) (set-not-contains fe n)",
        "(union s (Loop n (Store t e)))",
        "(= s (Store t e)) (= h (Having n)) (set-contains h t)", "a fold over the axis would be over a tile of it",
    ),
)  # fmt: skip
SPLITS = (
    _rule(
        "sum in a loop", "A.1",
        f"(= s (Store t (Sum n e))) (= h (Having n)) (set-not-contains h t) {OTHER}",
        '(union s (Seq (Store t (Const "0")) (Loop n (Store t (Add (Var t) (Sum n e))))))',
    ),
    _rule(
        "sum in a loop, from what is there", "A.1",
        f"(= s (Store t (Add (Var t) (Sum n e)))) (= h (Having n)) (set-not-contains h t) {OTHER}",
        "(union s (Loop n (Store t (Add (Var t) (Sum n e)))))",
        f"(= s (Store t (Sum n e))) (= h (Having n)) (set-not-contains h t) {OTHER}",
        "the variable is assumed to be 0 at first",
    ),
    _rule(
        "maximum in a loop", "ours",
        f"(= s (Store t (Max n e))) (= h (Having n)) (set-not-contains h t) {OTHER}",
        '(union s (Seq (Store t (Const "-inf")) (Loop n (Store t (Fun2 "max" (Var t) (Max n e))))))',
    ),
    _rule(
        "quotient after the sum", "ours", "(= s (Store t (Div (Sum n e) d))) (= rd (Reads d)) (set-not-contains rd t)",
        "(union s (Seq (Store t (Sum n e)) (Store t (Div (Var t) d))))",
        "(= s (Store t (Div (Sum n e) d)))", "the divisor may be what was just stored over",
    ),
    _rule(
        "product after the sum", "ours", "(= s (Store t (Mul (Sum n e) d))) (= rd (Reads d)) (set-not-contains rd t)",
        "(union s (Seq (Store t (Sum n e)) (Store t (Mul (Var t) d))))",
        "(= s (Store t (Mul (Sum n e) d)))", "the factor may be what was just stored over",
    ),
)  # fmt: skip
FORWARD = (
    _rule(
        "load what was stored", "A.2", f"(= s (Seq (Store t e) b)) (= rb (R b)) (set-contains rb t) {OTHER}",
        "(union s (Seq (Store t e) (Put t e b)))",
        "(= s (Seq (Store t e) b)) (= rb (R b)) (set-contains rb t)", "the value has changed with the store",
    ),
    _rule(
        "load what was stored, at first", "A.2",
        f"(= s (Seq (Store t e) (Seq b d))) (= rb (R b)) (set-contains rb t) {OTHER}",
        "(union s (Seq (Store t e) (Seq (Put t e b) d)))",
        "(= s (Seq (Store t e) (Seq b d))) (= rb (R b)) (set-contains rb t)", "the value has changed with the store",
    ),
)  # fmt: skip
# (Put t e s): what s does where t holds e. (In t e f): the value of f where t holds e.
PUT = """
(rule ((= p (Put t e (Store u f)))) ((union p (Store u (In t e f)))) :ruleset rules)
(rule ((= p (Put t e (Seq a b))) (= wa (W a)) (= re (Reads e)) (set-not-contains wa t)
  (= 0 (set-length (set-intersect wa re)))) ((union p (Seq (Put t e a) (Put t e b)))) :ruleset rules)
(rule ((= p (Put t e (Loop n b))) (= wb (W b)) (= re (Reads e)) (set-not-contains wb t)
  (= 0 (set-length (set-intersect wb re))) (= fe (Folds e)) (set-not-contains fe n))
  ((union p (Loop n (Put t e b)))) :ruleset rules)
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


def _laws() -> tuple[Rule, ...]:
    """The laws of values, one by one."""
    out = []
    for line in LAWS.strip().splitlines():
        law, _, condition = line.partition(" if ")
        (text,) = law_rules(line, "rules")
        twin = law_rules(law, "rules")[0] if condition else ""
        out.append(Rule(law, text, "A.2", twin, "the factor may have the axis of the sum" if condition else ""))
    return tuple(out)


ALGEBRA = _laws()
RULES: tuple[Rule, ...] = (*SEQUENCES, *LOOPS, *SPLITS, *FORWARD, *ALGEBRA)
