"""The text of verdicts: one contract for several outputs, clauses that are never cut, colours on a terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest

from trilift.reports.base import colours
from trilift.reports.records import unfinished, verdict_text

LINE = {"file": "f.py", "line": 14, "column": 1}


def clause(kind: str, text: str, why: str = "") -> dict[str, Any]:
    return {"kind": kind, "text": text, "why": why, "place": LINE if why else None}


def proof(output: str, *contract: dict[str, Any], verdict: str = "PROVED") -> dict[str, Any]:
    found = {"output": output, "against": "reference", "verdict": verdict, "bound": None, "samples": 3, "reason": "?"}
    return {**found, "contract": [clause("size", "1 <= N"), *contract], "dims": ["N"]}


def said(*proofs: dict[str, Any]) -> str:
    record = {**unfinished.empty("f.py", "c", "", ""), "errors": [], "verdict": "PROVED", "proofs": list(proofs)}
    return verdict_text.case(record)


FITS = clause("nowrap", "4 * N < 2^31", "integer arithmetic")


@pytest.mark.smoke
def test_outputs_of_one_verdict_share_a_contract() -> None:
    text = said(proof("y", FITS, clause("float", "y is bfloat16")), proof("mean", FITS))
    assert text.count("for all N >= 1 with") == text.count("4 * N < 2^31") == 1
    assert "y = the reference: PROVED\n    mean = the reference: PROVED\n      for all" in text
    assert "\n        for y: y is bfloat16\n" in text


@pytest.mark.smoke
def test_outputs_of_one_name_lose_no_clause() -> None:
    text = said(proof("out", FITS), proof("out", FITS, clause("shape", "N <= 8")))
    assert "        for out: N <= 8\n" in text and text.count("4 * N < 2^31") == 1


@pytest.mark.smoke
def test_other_verdicts_stand_alone() -> None:
    """A clause of a proof is never printed below an output that is not proved."""
    text = said(proof("y", FITS), proof("z", verdict="TESTED"), proof("w", clause("shape", "N <= 8")))
    y, z, w = (text.index(f"{n} = the reference") for n in "yzw")
    assert y < text.index("4 * N < 2^31") < z < w < text.index("N <= 8")
    assert text.count("for all N >= 1") == 2


@pytest.mark.smoke
def test_clauses_of_integer_arithmetic_alone_are_said_in_words() -> None:
    assert "for all N >= 1 where integers do not wrap:\n" in said(proof("y", FITS))
    assert "for all N >= 1 with\n" in said(proof("y", FITS, clause("shape", "N <= 8")))
    assert said(proof("y")).splitlines()[-1].endswith("for all N >= 1")


@pytest.mark.smoke
def test_names_of_programs_and_lanes_are_explained() -> None:
    text = " ".join(said(proof("y", clause("nowrap", "wrap8(x[l0_64 + 64 * pid0]) * n1 < pid0", "it"))).split())
    for name in (
        "pid0 is each program along axis 0",
        "l0_64 is each position in a block of 64",
        "n1 is each iteration",
    ):
        assert name in text
    assert "wrap8(x) is x as an integer of 8 bits" in text
    assert "where" not in said(proof("y", clause("shape", "N <= 8", "it"))), "names of the case explain themselves"


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("clause_text", "read"),
    [
        ("where(l0_64 + 64 * pid0 < N, x[l0_64 + 64 * pid0], undefined) < 2^31", "x[i] < 2^31"),
        ("where(l0_64 + 64 * pid0 < N, x[l0_64 + 64 * pid0], 0) + i < 2^31", "where(j < N, x[j], 0) + i < 2^31"),
        (
            "where(l0_64 + 64 * n0 < N, y[l0_64 + 64 * n0 + N * pid0], 0) < 2^31",
            "where(i < N, y[i + N * pid0], 0) < 2^31",
        ),
        ("x[l0_64 + 64 * pid0] + pid0 < 2^31", "x[l0_64 + 64 * pid0] + pid0 < 2^31"),
        ("x[l0_64 + 64 * pid0] + y[l0_64] < 2^31", "x[l0_64 + 64 * pid0] + y[l0_64] < 2^31"),
        ("x[l0_64 + 32 * pid0] < 2^31", "x[l0_64 + 32 * pid0] < 2^31"),
        ("x[l0_64 + 64 * pid0] + x[l0_64 + 64 * pid1] < 2^31", "x[l0_64 + 64 * pid0] + x[l0_64 + 64 * pid1] < 2^31"),
        ("x[l0_64 + 64 * pid0] + y[l1_64 + 64 * pid1] < 2^31", "x[i] + y[j] < 2^31"),
    ],
)
def test_a_lane_of_a_program_is_a_position(clause_text: str, read: str) -> None:
    assert f"        {read}   needed by it" in said(proof("y", clause("nowrap", clause_text, "it")))


@pytest.mark.smoke
def test_no_clause_is_cut() -> None:
    words = " + ".join(f"n{k}" for k in range(80))
    text = said(proof("y", clause("shape", f"{words} < 2", "the loop"), clause("config", f"seen: {words}")))
    joined = " ".join(text.split())
    assert f"{words} < 2 needed by the loop at line 14" in joined and f"seen: {words}" in joined
    assert "..." not in text and max(map(len, text.splitlines())) <= verdict_text.WIDTH + 8


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("-9223372036854775808 <= n0 * N < 9223372036854775808", "-2^63 <= n0 * N < 2^63"),
        ("N < 2147483648", "N < 2^31"),
        ("N < 12147483648", "N < 12147483648"),
    ],
)  # fmt: skip
def test_powers_of_two_are_read_as_such(text: str, read: str) -> None:
    assert f"        {read}\n" in said(proof("y", clause("shape", text)))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("stream", "variables", "expected"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours_are_for_terminals(
    stream: io.StringIO, variables: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert colours.shows(stream) is expected


@pytest.mark.smoke
def test_verdicts_and_levels_have_colours_and_nothing_else_changes() -> None:
    import click

    text = (
        "f.py::c: REFUTED in 0.10 s\n    y = the reference: PROVED\nerror[race]: two stores of PROVED\n = help: none\n"
    )
    found = colours.coloured(text)
    assert click.unstyle(found) == text
    for word, colour in (("REFUTED", "red"), ("PROVED", "green"), ("error", "red")):
        assert click.style(word, colour, bold=True) in found
    assert found.count(click.style("PROVED", "green", bold=True)) == 1  # not within a message
    assert colours.coloured("nothing: here") == "nothing: here"


def test_a_user_s_escape_is_never_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", terminal)
    colours.echo("c: PROVED in 1 s \x1b]0;title\x07")
    assert "\x1b]0" not in terminal.getvalue() and "\x1b[32m" in terminal.getvalue()
