"""Rules of tile programs tried on random programs: what the e-graph makes of one has to do the same to every tensor.

tried(rule, count)          a rule alone, on programs in which what it looks for is planted and it applies
refuted(rule, twin, most)   a form that does not hold, until a program shows that it does not
all_rules(count, rules)     all rules together, on programs from the grammar and planted ones by turns

The programs of an e-graph are compared in float64 and in a random field. A program that is not well-typed, or that
stores a value with an axis that its tensor lacks, is wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trilift.lift.errors import CaseError
from trilift.lift.simplify.egraph import bindings
from trilift.lift.terms.domain import FLOAT64, Float64
from trilift.verify.fields.field import Field
from trilift.verify.fields.pairs import LOST, NotTestable, Redraw

from .draws import SIZES, Drawer, around, loaded, numbers, tiles_of
from .rules import Rule, Twin
from .run import run
from .saturate import Classes, Words, declarations, run_rules, saturated
from .tile_program import Loop, Statement, Store, TileProgram, check, statements, stores

NEAR = 1e-7
LARGE = 1e6  # numbers beyond it are not compared: exp of them is no number, and their differences lose digits
EXPONENT = 300.0  # of which exp, and the product of two, is a number
DEPTHS = (3, 6, 10, 14)  # of what is drawn, beyond the least
RULE_ROUNDS, NODES = 6, 2000  # of a rule alone
AIMS = 300  # programs drawn until a rule applies to one
DRAWS = 3  # for each program that is to differ from its source


@dataclass(frozen=True)
class Found:
    """A program that differs from the one that it was made of: at `tiles`, in `tensor`, or in its types ("")."""

    program: TileProgram
    made: TileProgram
    tiles: dict[str, int]
    tensor: str


# ---- comparison ------------------------------------------------------------------------------------------------------


def ill_typed(p: TileProgram) -> bool:
    try:
        check(p)
    except CaseError:
        return True
    return False


def differing(p: TileProgram, q: TileProgram, xs: Mapping[str, Any], tiles: Mapping[str, int]) -> str:
    """The first tensor in which two programs leave other numbers; "" for none."""
    return _differing(run(p, xs, tiles), run(q, xs, tiles), FLOAT64)[0]


def _differing(left: Mapping[str, Any], right: Mapping[str, Any], domain: Float64) -> tuple[str, frozenset[str]]:
    """The first tensor that differs; of which tensors anything was compared. A value that is known only on the left
    differs among numbers; in a field, where equal rational functions are equal, a lost residue is not compared."""
    told = set()
    for name, x in left.items():
        for known, same in _residues(x, right[name]) if isinstance(domain, Field) else [_near(x, right[name])]:
            if np.any(known & ~same):
                return name, frozenset(left)
            told |= {name} if np.any(known) else set()
    return "", frozenset(told)


def _near(x: Any, y: Any) -> tuple[Any, Any]:
    """Which numbers can be compared, and which are equal."""
    return np.asarray(np.isfinite(x) & (np.abs(x) < LARGE)), np.isclose(x, y, rtol=NEAR, atol=0)


def _residues(x: Any, y: Any) -> list[tuple[Any, Any]]:
    return [((x[k] >= 0) & (y[k] >= 0), x[k] == y[k]) for k in "pq"]


class _Numbers(Float64):
    """float64, and Redraw where it does not follow the reals: the laws of products do not hold for 0 inf and inf / inf,
    and exp of a large number is none. -inf may be added, compared, and under an exp, as what a mask hides."""

    def apply(self, op: str, *xs: Any) -> Any:
        out = super().apply(op, *xs)
        if op == "exp" and np.any(np.isfinite(xs[0]) & (np.abs(xs[0]) > EXPONENT)):
            raise Redraw
        if op in ("mul", "div") and np.any(np.isnan(out) & ~np.isnan(xs[0]) & ~np.isnan(xs[1])):
            raise Redraw
        return out


class _Field(Field):
    """A field in which exp of a value that has lost its second residue is unknown, as an exp has: it is a hash there,
    of which exp(a + b) = exp(a) exp(b) does not hold."""

    def apply(self, op: str, *xs: Any) -> Any:
        out = super().apply(op, *xs)
        if op == "exp":
            x = self.reals(np.asarray(xs[0]))
            out = np.where((x["q"] == LOST) & ~np.isinf(x["v"]), self.reals(np.asarray(np.nan)), out)
        return out


# ---- one rule --------------------------------------------------------------------------------------------------------


@dataclass
class Tried:
    """The results of trials: programs that were drawn for it, of these what it applied to, programs that were made of
    them, of which every tensor that is stored was compared somewhere, those that differ, and the first of these."""

    name: str
    drawn: int = 0
    applied: int = 0
    made: int = 0
    told: int = 0
    wrong: int = 0
    found: Found | None = None


def tried(rule: Rule, count: int, seed: int = 0, each: int = 4) -> Tried:
    """A rule alone on so many random programs that it applies to."""
    out = Tried(rule.name)
    for rng, p, classes in _aimed(rule, count, seed, out):
        _compare(out, rng, p, classes, each)
    return out


def refuted(rule: Rule, twin: Twin, most: int, seed: int = 0, each: int = 4) -> Tried:
    """A form that does not hold, on at most so many programs that it applies to, until one made by it differs. A form
    that lacks a condition is tried where the rule does not apply."""
    out = Tried(rule.name)
    form = replace(rule, text=twin.text, looks=twin.looks, twins=())
    for rng, p, classes in _aimed(form, most, seed, out, rule if twin.kind == "weaker" else None):
        _compare(out, rng, p, classes, each)
        if out.found:
            break
    return out


class _Aim:
    """Whether a rule applies to a program, and another does not."""

    def __init__(self, rule: Rule, unless: Rule | None) -> None:
        self.graph = bindings().EGraph()
        named = {"unless": unless, "aim": rule}
        self.rulesets = [name for name, r in named.items() if r]
        laws = [r.text.replace(":ruleset rules", f":ruleset {name}") for name, r in named.items() if r]
        anywhere = declarations(around(Store("r", loaded("e"))), SIZES)
        self._do([*anywhere, *(f"(ruleset {n})" for n in self.rulesets), *laws])

    def _do(self, lines: Sequence[str]) -> None:
        self.graph.run_program(*self.graph.parse_program("\n".join(lines)))

    def fits(self, p: TileProgram) -> bool:
        self._do(["(push)", f"(let $root {Words(p).statement(p.body)})"])
        run_rules(self.graph, "facts")
        applied = [run_rules(self.graph, name) for name in self.rulesets]
        self._do(["(pop)"])
        return applied[-1] and not any(applied[:-1])


def _aimed(
    rule: Rule, count: int, seed: int, out: Tried, unless: Rule | None = None
) -> Iterator[tuple[random.Random, TileProgram, Classes]]:
    """Programs that a rule applies to, and another does not, each from some that are drawn for it."""
    rng, aim = random.Random(f"{rule.name} {seed}"), _Aim(rule, unless)
    for _ in range(count):
        for _ in range(AIMS):
            p = Drawer(rng).planted(rule.looks)
            out.drawn += 1
            if aim.fits(p):
                out.applied += 1
                yield rng, p, saturated(p, [rule], RULE_ROUNDS, NODES)
                break


def _compare(out: Tried, rng: random.Random, p: TileProgram, classes: Classes, each: int) -> None:
    for made in _made(classes, rng, each):
        out.made += 1
        tiles, generator = tiles_of(p, rng), np.random.default_rng(rng.randrange(1 << 30))
        with suppress(Redraw):
            found, told = _Source(p, tiles, generator, _Numbers()).against(made)
            out.told += told
            out.wrong += found is not None
            out.found = out.found or found


def _made(classes: Classes, rng: random.Random, count: int) -> Iterator[TileProgram]:
    """Programs of the e-graph that are not its source."""
    least, own = classes.depth[classes.root], [*_said(classes.program.body)]
    for _ in range(count):
        for _ in range(DRAWS):
            made = classes.drawn(rng, least + rng.choice(DEPTHS))
            if [*_said(made.body)] != own:
                yield made
                break


def _said(s: Statement) -> Iterator[Store | str]:
    """A statement as its text has it, however its sequences are nested."""
    for one in statements(s):
        if isinstance(one, Loop):
            yield f"for {one.axis}"
            yield from _said(one.body)
            yield "end"
        elif isinstance(one, Store):
            yield one


class _Source:
    """A program that was run on something at these tiles. Raises Redraw, NotTestable."""

    def __init__(self, p: TileProgram, tiles: dict[str, int], rng: np.random.Generator, domain: Float64) -> None:
        self.p, self.tiles, self.domain = p, tiles, domain
        self.start = numbers(p, rng, domain)
        self.left = run(p, self.start, tiles, domain)
        self.stored = {s.tensor for s in stores(p.body)}

    def against(self, made: TileProgram) -> tuple[Found | None, bool]:
        """How a program differs from it; whether anything was compared of every tensor that is stored."""
        if ill_typed(made):
            return Found(self.p, made, self.tiles, ""), True
        tensor, told = _differing(self.left, run(made, self.start, self.tiles, self.domain), self.domain)
        return Found(self.p, made, self.tiles, tensor) if tensor else None, self.stored <= told


# ---- all rules -------------------------------------------------------------------------------------------------------


@dataclass
class Together:
    """The programs that all rules made of one program: `made` programs, those `compared` in a field in every tensor
    that is stored (the others were left out: a division by 0 of the field, or a tensor of unknown values), and one that
    differs, in the field or among numbers."""

    made: int = 0
    compared: int = 0
    found: Found | None = None


def all_rules(
    count: int, rules: Sequence[Rule], seed: int = 0, rounds: int = 3, nodes: int = 3000, each: int = 3
) -> Iterator[Together]:
    """All rules together, for each of so many random programs."""
    rng = random.Random(seed)
    for k in range(count):
        drawer = Drawer(rng)
        p = drawer.planted(rng.choice([*rules]).looks) if k % 2 else drawer.program()
        classes = saturated(p, rules, rounds, nodes)
        yield _together(
            [*_made(classes, rng, each)], p, tiles_of(p, rng), np.random.default_rng(rng.randrange(1 << 30))
        )


def _together(
    every: Sequence[TileProgram], p: TileProgram, tiles: dict[str, int], rng: np.random.Generator
) -> Together:
    """A program against what was made of it, in float64 and in a field."""
    out = Together(len(every))
    for domain in (_Numbers(), _Field(rng)):
        with suppress(Redraw, NotTestable):
            source = _Source(p, tiles, rng, domain)
            for made in every:
                with suppress(Redraw, NotTestable):
                    found, told = source.against(made)
                    out.found = out.found or found
                    out.compared += told and isinstance(domain, Field)
    return out
