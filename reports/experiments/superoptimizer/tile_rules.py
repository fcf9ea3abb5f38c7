"""The rules of tile programs, each on random programs: ours must never be wrong, and what does not hold is refuted.

For each rule: programs in which what it looks for is planted and to which it applies, what the e-graph made of them,
and what of that does something else to a tensor. For each form that does not hold, published, plausible or the rule
less one of its conditions: after how many such programs it was refuted, and why it does not hold. Then all rules
together on random small programs, against their sources in a finite field and in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from trilift.superopt.tiles.rules import RULES, Rule
from trilift.superopt.tiles.text import text
from trilift.superopt.tiles.trials import Found, Tried, all_rules, refuted, tried

from ...base.progress import Progress
from ...records.options import Options
from .. import summary
from ..experiment import Experiment, Result, Row, by_name, tabled
from ..renderer import FORM, OUTPUT, deliver

TRIALS = 50  # programs that a rule applies to
MOST = 60  # of a form that does not hold
TOGETHER = 2000
EVERY = 100  # programs between two lines of progress
KINDS = {"published": "published", "plausible": "plausible", "weaker": "less a condition"}
RULE = ("rule", "from", "drawn", "programs", "made", "compared", "wrong")
FORM_ROW = ("rule", "form", "refuted after", "by", "why it does not hold")
ALL = ("programs", "made", "compared in a field", "left out", "different")
COLUMNS = {"rules": RULE, "forms that do not hold": FORM_ROW, "all rules together": ALL}
NOTE = (
    "`from`: A.1 and A.2 are Trinity's rules, with our conditions. `drawn`: random programs that contain the left side "
    "of the rule, with random terms in its holes; `programs`: those that the rule applies to; `made`: the other "
    "programs that the e-graph holds afterwards; `compared`: those in which every stored tensor had numbers to "
    "compare; `wrong`: those that differ. Tiles do not divide the sizes, variables start with any value, and some "
    "elements are -inf. `refuted after`: the programs that the form was tried on; if the form is a rule less one "
    "condition, only programs that the rule does not apply to; `by`: a tensor that differs, or a value with an axis "
    "that its tensor lacks. `left out`: programs that divide by 0 of the field, or that the field cannot compute; "
    "these are compared in float64 only. In float64 a run that meets 0 inf, inf / inf or an exp that is too large is "
    "skipped: the laws are those of the reals."
)


@dataclass(frozen=True, slots=True)
class Counts:
    trials: int = TRIALS
    most: int = MOST
    together: int = TOGETHER


def measure(name: str, options: Options, quiet: bool) -> Result:
    """All rules, each with as many programs as its page has."""
    return measured(options, quiet, Counts())


def measured(options: Options, quiet: bool, counts: Counts) -> Result:
    """Rules, forms that do not hold, all rules together. Exit code 1 where a rule of ours is wrong, 2 where a form was
    not refuted or a rule was not tried."""
    with Progress(quiet) as progress:
        rules = list(_rules(options.seed, counts, progress))
        forms = list(_forms(options.seed, counts, progress))
        together = _together(options.seed, counts, progress)
    wrong = together["different"] or any(t.wrong for _, t in rules)
    untried = any(t.applied < counts.trials for _, t in rules) or any(not f["refuted"] for f in forms)
    shown = {
        "rules": [_rule_row(r, t) for r, t in rules],
        "forms that do not hold": [_form_row(f) for f in forms],
        "all rules together": [tuple(str(together[k]) for k in ALL)],
    }
    data = {"rules": [_rule_data(r, t) for r, t in rules], "forms": forms, "together": together}
    code = 1 if wrong else 2 if untried else 0
    return Result("rules of tile programs", tabled(COLUMNS, shown), data, code)


EXPERIMENTS = by_name(Experiment("tile-rules", measure, COLUMNS, (NOTE,), summary.rules))


def _rules(seed: int, counts: Counts, progress: Progress) -> Iterator[tuple[Rule, Tried]]:
    for r in RULES:
        found = tried(r, counts.trials, seed)
        progress.say(f"{r.name}: {found.applied} programs, {found.made} made, {found.wrong} wrong")
        yield r, found


def _forms(seed: int, counts: Counts, progress: Progress) -> Iterator[dict[str, Any]]:
    for r in RULES:
        for t in r.twins:
            found = refuted(r, t, counts.most, seed)
            after = f"refuted after {found.applied}" if found.wrong else f"NOT refuted by {found.applied}"
            progress.say(f"{r.name}, {KINDS[t.kind]}: {after} ({t.why})")
            yield {
                "rule": r.name, "form": KINDS[t.kind], "why": t.why, "text": t.text, "refuted": found.wrong > 0,
                "programs": found.applied, "example": _example(found.found),
            }  # fmt: skip


def _together(seed: int, counts: Counts, progress: Progress) -> dict[str, Any]:
    out: dict[str, Any] = {**dict.fromkeys(ALL, 0), "examples": []}
    for one in all_rules(counts.together, RULES, seed):
        out["programs"] += 1
        out["made"] += one.made
        out["compared in a field"] += one.compared
        out["left out"] += one.made - one.compared
        if one.found:
            out["different"] += 1
            out["examples"].append(_example(one.found))
        if out["programs"] % EVERY == 0:
            progress.say(f"{out['programs']} programs by all rules, {out['made']} made, {out['different']} different")
    return out


def _example(found: Found | None) -> dict[str, Any] | None:
    """A program that differs from its source."""
    if found is None:
        return None
    return {
        "source": text(found.program), "made": text(found.made), "tiles": found.tiles,
        "tensor": found.tensor or "ill-typed",
    }  # fmt: skip


def _rule_row(r: Rule, t: Tried) -> Row:
    return (r.name, r.source, *map(str, (t.drawn, t.applied, t.made, t.told, t.wrong)))


def _rule_data(r: Rule, t: Tried) -> dict[str, Any]:
    return {
        "name": r.name, "text": r.text, "source": r.source, "drawn": t.drawn, "programs": t.applied, "made": t.made,
        "compared": t.told, "wrong": t.wrong, "example": _example(t.found),
    }  # fmt: skip


def _form_row(f: dict[str, Any]) -> Row:
    after = str(f["programs"]) if f["refuted"] else f"not by {f['programs']}"
    return (f["rule"], f["form"], after, f["example"]["tensor"] if f["example"] else "-", f["why"])


# ---- command ---------------------------------------------------------------------------------------------------------


@click.command()
@click.option("--seed", default=0, show_default=True)
@click.option("--trials", default=TRIALS, show_default=True, help="Programs for each rule.")
@click.option("--together", default=TOGETHER, show_default=True, help="Programs for all rules together.")
@FORM
@OUTPUT
def main(seed: int, trials: int, together: int, form: str, output: str | None) -> None:
    """Rules of tile programs on random programs: none may be wrong, and each form that does not hold is refuted."""
    found = measured(Options(seed=seed), False, Counts(trials, MOST, together))
    deliver(EXPERIMENTS["tile-rules"].noted(found), form, output)


if __name__ == "__main__":
    main()
