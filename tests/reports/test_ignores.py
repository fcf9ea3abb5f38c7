"""Comments that accept findings: where they count, what they need, and what is said of those that do not work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trilift.reports.filters import ignores
from trilift.reports.records import unfinished

RULES = ("out-of-bounds", "write-race", "precision-loss")
pytestmark = pytest.mark.smoke

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(*lines: str) -> str:
        path = tmp_path / f"k{len(list(tmp_path.iterdir()))}.py"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    return put


def record(file: str, *found: tuple[str, int], kinds: tuple[str, ...] = ()) -> dict[str, Any]:
    findings = [
        {"rule": r, "message": "m", "file": file, "line": n, "counterexample": {}, "replay": None} for r, n in found
    ]
    return {**unfinished.empty(file, "case", "", ""), "findings": findings, "errors": [{"kind": k} for k in kinds]}


def applied(file: str, *found: tuple[str, int], **options: Any) -> dict[str, Any]:
    return ignores.applied([record(file, *found)], RULES, [file], **options)[0]


def messages(r: dict[str, Any]) -> list[str]:
    return [f"{f['line']}: {f['message']}" for f in r["findings"] if f["rule"] == ignores.RULE]


@pytest.mark.parametrize(
    ("lines", "at"),
    [
        (("f(x)  # trilift: ignore[out-of-bounds] the tile is padded",), 1),
        (("f(x)  #trilift:ignore[write-race,out-of-bounds]: the tile is padded",), 1),
        (("x = 1", "# trilift: ignore[out-of-bounds] the tile is padded", "# more", "f(x)"), 4),
        (("f(", "    x,  # trilift: ignore[out-of-bounds] the tile is padded", ")"), 1),
        (("f(", "    x,", ")  # trilift: ignore[out-of-bounds] the tile is padded"), 2),
    ],
)
def test_a_comment_with_a_reason_accepts(write: Write, lines: tuple[str, ...], at: int) -> None:
    r = applied(write(*lines), ("out-of-bounds", at))
    assert r["findings"] == []
    (f,) = r["suppressed"]
    assert (f["rule"], f["line"]) == ("out-of-bounds", at)
    assert f["suppression"] == {"kind": "inSource", "justification": "the tile is padded"}


@pytest.mark.parametrize(
    ("lines", "at"),
    [
        (("f(x)  # trilift: ignore[write-race] the tile is padded",), 1),
        (("f(x)  # trilift: ignore[out-of-bounds] the tile is padded", "f(y)"), 2),
        (('s = "# trilift: ignore[out-of-bounds] a text is no comment"',), 1),
        (("f(x)  # ignore[out-of-bounds] the tile is padded",), 1),
        (("f(x)  # trilift: ignore[out-of-bounds]",), 1),
        (("f(x)  # trilift: ignore[out-of-bounds]  :",), 1),
        (("f(x)  # trilift: ignore the tile is padded",), 1),
        (("f(x)  # trilift: ignore[] the tile is padded",), 1),
        (("f((  # trilift: ignore[out-of-bounds] not Python",), 1),
    ],
)
def test_anything_else_does_not(write: Write, lines: tuple[str, ...], at: int) -> None:
    r = applied(write(*lines), ("out-of-bounds", at))
    assert "out-of-bounds" in [f["rule"] for f in r["findings"]] and r["suppressed"] == []


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# trilift: ignore[out-of-bounds]", "gives no reason"),
        ("# trilift: ignore because", "names no rule"),
        ("# trilift: ignore[out-of-bound] because", "out-of-bound, which is not a rule"),
        ("# trilift: ignore[write-race] because", "this comment ignores write-race, which finds nothing here"),
    ],
)
def test_a_comment_that_does_not_work_is_told(write: Write, comment: str, said: str) -> None:
    r = applied(write("x = 1", f"f(x)  {comment}"), ("out-of-bounds", 2))
    (message,) = messages(r)
    assert message.startswith("2: ") and said in message
    (note,) = [f for f in r["findings"] if f["rule"] == ignores.RULE]
    assert (note["level"], note["column"]) == ("warning", 7)


def test_a_near_miss_is_named(write: Write) -> None:
    r = applied(write("f(x)  # trilift: ignore[out-of-bound] because"))
    assert r["findings"][0]["hint"] == "did you mean out-of-bounds?"


def test_unused_is_told_only_where_all_was_checked(write: Write) -> None:
    file = write("f(x)  # trilift: ignore[write-race] because")
    assert messages(ignores.applied([record(file)], RULES, [file])[0])
    assert not messages(ignores.applied([record(file)], RULES)[0])
    assert not messages(ignores.applied([record(file, kinds=("timeout",))], RULES, [file])[0])
    assert not messages(ignores.applied([record(file)], RULES, [file], active={"out-of-bounds"})[0])
    assert messages(ignores.applied([record(file)], RULES, [file], active={"write-race"})[0])


def test_one_use_among_several_cases_is_enough(write: Write) -> None:
    file = write("f(x)  # trilift: ignore[write-race] because")
    first, second = ignores.applied([record(file), record(file, ("write-race", 1))], RULES, [file])
    assert (first["findings"], second["findings"], len(second["suppressed"])) == ([], [], 1)


def test_a_kernel_in_another_file_has_its_own_comments(write: Write) -> None:
    kernel, cases = write("f(x)  # trilift: ignore[write-race] because"), write("import kernel")
    r = record(cases) | {"findings": record(kernel, ("write-race", 1), ("out-of-bounds", 1))["findings"]}
    (out,) = ignores.applied([r], RULES, [cases])
    assert [f["rule"] for f in out["findings"]] == ["out-of-bounds"]
    assert [f["rule"] for f in out["suppressed"]] == ["write-race"]


def test_no_records_no_notes() -> None:
    assert ignores.applied([], RULES) == []
