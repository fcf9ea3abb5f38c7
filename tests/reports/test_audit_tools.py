"""`trilift audit` with what accepts findings: comments, baselines, the configuration; the runs are made up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trilift.reports import cli
from trilift.reports.base.targets import Target
from trilift.reports.discovery import scan
from trilift.reports.records import unfinished
from trilift.reports.records.options import Options
from trilift.reports.runner import local

SOURCE = """
from trilift import case

@case()
def f():  # line 5
    a = 1
    b = 2  # trilift: ignore[write-race] every program writes the same
    c = 3
"""
Trilift = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "k.py").write_text(SOURCE)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Rule and line of the findings that each run gives, in every file."""
    out = [("out-of-bounds", 6), ("write-race", 7), ("precision-loss", 8)]

    def run(targets: Sequence[Target], options: Options, *_: Any) -> Iterator[dict[str, Any]]:
        seen.append(options)
        for t in targets:
            base = {**unfinished.empty(t.file, "f", "", ""), "errors": [], "verdict": "UNKNOWN"}
            rules = ", ".join(sorted({r for r, _ in out}))
            reason = f"the kernel has the finding {rules}" if out else "no closed form"
            yield {**base, "reason": reason, "findings": [finding(t.file, r, n) for r, n in out]}

    seen: list[Options] = []
    monkeypatch.setattr(local, "run", run)
    monkeypatch.setattr(scan, "_run", lambda *_: iter(()))
    monkeypatch.setattr(run, "seen", seen, raising=False)
    return out


def finding(file: str, rule: str, line: int) -> dict[str, Any]:
    where = {"file": file, "line": line, "column": 5, "level": "error", "hint": "", "steps": [], "script": ""}
    return {"rule": rule, "message": f"{rule} at {line}", "counterexample": {"N": line}, "replay": None, **where}


@pytest.fixture
def trilift(folder: Path, found: object) -> Trilift:
    def call(*args: str) -> Result:
        return CliRunner().invoke(cli.main, ["audit", "-q", "--no-cache", *args])

    return call


def rules(result: Result) -> list[str]:
    """The rules of the findings that count, in the JSON."""
    return [f["rule"] for c in json.loads(result.stdout)["cases"] for f in c["findings"]]


def test_a_comment_accepts(trilift: Trilift) -> None:
    done = trilift("kernels", "--format", "json")
    assert (rules(done), done.exit_code) == (["out-of-bounds", "precision-loss"], 1)
    (case,) = json.loads(done.stdout)["cases"]
    assert [f["suppression"]["justification"] for f in case["suppressed"]] == ["every program writes the same"]


def test_a_comment_that_is_not_needed_is_found(trilift: Trilift, found: list[tuple[str, int]]) -> None:
    del found[1]
    done = trilift("kernels", "--format", "json")
    assert rules(done) == ["out-of-bounds", "precision-loss", "ignore-comment"]
    assert rules(trilift("kernels", "--format", "json", "--select", "out-of-bounds")) == ["out-of-bounds"]
    assert rules(trilift("kernels", "--format", "json", "--ignore", "ignore-comment")) == rules(done)[:2]


def test_a_verdict_that_says_no_more_than_accepted_findings_is_no_failure(
    trilift: Trilift, found: list[tuple[str, int]]
) -> None:
    found[:] = [("write-race", 7)]
    assert trilift("kernels").exit_code == 0
    found.clear()
    assert trilift("kernels", "--ignore", "ignore-comment").exit_code == 4


def test_a_baseline_is_written_and_read(trilift: Trilift, found: list[tuple[str, int]], folder: Path) -> None:
    first = trilift("kernels", "--write-baseline", "b.json")
    assert first.exit_code == 0 and "b.json: 2 findings" in first.stderr
    assert trilift("kernels", "--baseline", "b.json").exit_code == 0
    (folder / "kernels" / "k.py").write_text("# a new line\n" + SOURCE)
    found[:] = [(r, n + 1) for r, n in found]
    assert trilift("kernels", "--baseline", "b.json").exit_code == 0
    found.append(("nan-risk", 9))
    again = trilift("kernels", "--baseline", "b.json", "--format", "json")
    assert (rules(again), again.exit_code) == (["nan-risk"], 1)
    assert len(json.loads(again.stdout)["cases"][0]["suppressed"]) == 3
    only = trilift("kernels", "--baseline", "b.json", "--new-only", "--format", "json")
    assert (rules(only), json.loads(only.stdout)["cases"][0]["suppressed"]) == (["nan-risk"], [])
    assert trilift("kernels", "--baseline", "b.json", "--write-baseline", "b.json").exit_code == 0
    assert trilift("kernels", "--baseline", "b.json").exit_code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--baseline", "no.json"], "--baseline: cannot read no.json"),
        (["--baseline", "pyproject.toml"], "--baseline: pyproject.toml is not JSON"),
        (["--write-baseline", "no/such/b.json"], "--write-baseline: cannot write no/such/b.json"),
        (["--write-baseline", "kernels"], "--write-baseline: cannot write kernels"),
        (["--new-only"], "--new-only needs --baseline FILE"),
        (["--select", "races"], "no rule is called races"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_runs(trilift: Trilift, args: list[str], said: str) -> None:
    done = trilift("kernels", *args)
    assert done.exit_code == 2 and said in done.stderr and local.run.seen == []  # type: ignore[attr-defined]
    assert "Traceback" not in done.stderr


def configure(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.trilift]\n{text}\n")


def test_the_configuration_says_what_the_command_line_does_not(trilift: Trilift, folder: Path) -> None:
    configure(folder, 'targets = ["kernels"]\nselect = ["out-of-bounds"]\ntimeout = 7\njobs = 3\nformats = ["json"]')
    done = trilift()
    assert (rules(done), done.exit_code) == (["out-of-bounds"], 1)
    options = local.run.seen[-1]  # type: ignore[attr-defined]
    assert (options.proving.timeout, options.jobs) == (7.0, 3)
    done = trilift("--select", "precision-loss", "--timeout", "9")
    assert rules(done) == ["precision-loss"]
    assert local.run.seen[-1].proving.timeout == 9.0  # type: ignore[attr-defined]


def test_paths_in_the_configuration_are_beside_it(
    trilift: Trilift, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(folder, 'targets = ["kernels/k.py"]\nformats = ["json=out.json"]')
    monkeypatch.chdir(folder / "kernels")
    assert trilift().exit_code == 1
    assert json.loads((folder / "out.json").read_text())["cases"]


def test_rules_by_file(trilift: Trilift, folder: Path) -> None:
    configure(folder, 'formats = ["json"]\nper-file-ignores = { "kernels/*.py" = ["precision-loss"] }')
    assert rules(trilift("kernels")) == ["out-of-bounds"]


def test_unknown_is_allowed_by_the_configuration(trilift: Trilift, found: list, folder: Path) -> None:
    found.clear()
    configure(folder, 'allow-unknown = true\nignore = ["ignore-comment"]')
    assert trilift("kernels").exit_code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [("tiemout = 3", "has no key tiemout; did you mean timeout?"), ("jobs = 'two'", "jobs is a whole number above 0")],
)
def test_a_wrong_configuration_is_a_usage_error(trilift: Trilift, folder: Path, text: str, said: str) -> None:
    configure(folder, text)
    done = trilift("kernels")
    assert done.exit_code == 2 and said in done.stderr


def test_without_targets_it_says_so(trilift: Trilift) -> None:
    done = trilift()
    assert done.exit_code == 2 and "no TARGET given" in done.stderr


# ---- what is no case -------------------------------------------------------------------------------------------------

KERNEL = "import triton\n@triton.jit\ndef k(x):\n    pass\n"


def test_a_kernel_without_a_case_is_listed(trilift: Trilift, folder: Path) -> None:
    (folder / "plain").mkdir()
    (folder / "plain" / "k.py").write_text(KERNEL)
    done = trilift("plain")
    assert done.exit_code == 0, done.output
    assert "kernels: 1; no case was seen to launch 1 of them" in done.stdout
    assert "plain/k.py:3 k" in done.stdout
    assert trilift("plain", "--cases-only").exit_code == 0
    assert "kernels" not in trilift("plain", "--cases-only").stdout


def test_a_note_on_such_a_kernel_is_no_failure(trilift: Trilift, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "plain").mkdir()
    (folder / "plain" / "k.py").write_text(KERNEL)
    level = "note"

    def rows(found: Sequence[Any], *_: Any) -> list[dict[str, Any]]:
        return [{**scan._row(k), "findings": [{**finding(k.file, "nan-risk", 4), "level": level}]} for k in found]

    monkeypatch.setattr(scan, "scanned", rows)
    done = trilift("plain", "--format", "concise")
    assert (done.stdout, done.exit_code) == ("plain/k.py:4:5: nan-risk nan-risk at 4\n", 0)
    level = "warning"
    assert trilift("plain").exit_code == 1


def test_a_folder_with_nothing_in_it(trilift: Trilift, folder: Path) -> None:
    (folder / "empty").mkdir()
    assert trilift("empty").exit_code == 3
    assert trilift("empty", "--cases-only").exit_code == 0


def test_a_file_in_a_folder_that_is_no_python_is_a_warning(trilift: Trilift, folder: Path) -> None:
    (folder / "odd").mkdir()
    (folder / "odd" / "k.py").write_text("import triton\n@triton.jit\ndef k(x:\n")
    done = trilift("odd")
    assert done.exit_code == 3 and "warning: odd/k.py:3: not Python: " in done.stderr


def test_a_package_is_a_target(trilift: Trilift, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own_audited").mkdir()
    (folder / "own_audited" / "__init__.py").write_text("raise RuntimeError('is not imported')")
    (folder / "own_audited" / "k.py").write_text(KERNEL)
    (folder / "own_audited" / "cases.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(folder))
    done = trilift("own_audited", "--format", "json")
    document = json.loads(done.stdout)
    assert [Path(c["file"]).name for c in document["cases"]] == ["cases.py"]
    assert [k["name"] for k in document["kernels"]] == ["k"]
    none = trilift("no_such_package")
    assert none.exit_code == 2 and "no such file, folder, package or module: no_such_package" in none.stderr


def test_a_failure_of_ours_is_a_line(trilift: Trilift, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(local, "run", fail)
    done = trilift("kernels")
    assert done.exit_code == 2
    assert "error: trilift itself failed: ZeroDivisionError: ours" in done.stderr and "Traceback" not in done.stderr
    monkeypatch.setattr("sys.argv", ["trilift", "audit", "--debug"])
    assert "Traceback" in trilift("kernels", "--debug").stderr
