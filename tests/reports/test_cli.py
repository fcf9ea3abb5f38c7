"""The command line on small files: output forms, exit codes, drawn errors, and bad input that harms nobody else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from trilift.lift.runtime.isolate import Outcome
from trilift.reports.base import targets
from trilift.reports.base.numbers import Amount
from trilift.reports.cli import main
from trilift.reports.commands import gathering, lift
from trilift.reports.records import draw, unfinished

GOOD = """
import torch, triton, triton.language as tl
from trilift import case

@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

@triton.jit
def asm_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    v = tl.inline_asm_elementwise("frob.b32 $0, $1;", "=r,r", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y + i, v, mask=i < n)

def run(kernel, x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, y, x.numel(), BLOCK=16)
    return y

@case(x="f32[N]")
def double(x):
    return run(double_kernel, x)

@double.reference
def _(x):
    return x + x
"""
BAD = (
    GOOD
    + """
@case(x="f32[N]")
def wrong(x):
    return run(double_kernel, x)

@wrong.reference
def _(x):
    return 3 * x

@case(x="f32[N]")
def strange(x):
    return run(asm_kernel, x)

@case(x="f32[N]")
def both(x):
    return run(asm_kernel, x), run(double_kernel, x)

@case(x="f32[N]")
def silent(x):
    return x + 1

@case(x="f32[N]")
def raising(x):
    raise ValueError("these are not the shapes you want")

@case(x="f32[N]")
def endless(x):
    while True:
        pass

@case(x="f32[N]")
def aborting(x):
    import os
    os.abort()

@case(x="f32[N]")
def last(x):
    return run(double_kernel, x)
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cases")
    (path / "good.py").write_text(GOOD)
    (path / "bad.py").write_text(BAD)
    (path / "raises.py").write_text("from trilift import case\nraise RuntimeError('no')\n@case\n")
    (path / "empty.py").write_text("x = 1\n")
    return path


def trilift(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trilift", *args]
    env = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=120)


COMMANDS = (
    (),
    ("lift",),
    ("prove",),
    ("equal",),
    ("audit",),
    ("write",),
    ("corpus",),
    ("optimize",),
    ("report",),
    ("ops",),
    ("explain",),
    ("doctor",),
)


def test_help_is_golden(golden: Callable[[str, str], None]) -> None:
    pages = [trilift(*command, "--help").stdout for command in COMMANDS]
    text = "\n".join(pages).replace("python -m trilift.reports.cli", "trilift")
    golden("help.txt", re.sub(r"reports\.cli", "trilift", text))


def test_lift_prints_the_formula(folder: Path) -> None:
    done = trilift("lift", "good.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "good.py::double"
    assert "2" in done.stdout and "x" in done.stdout.splitlines()[1]
    assert "1 of 1 cases lifted" in done.stderr


def test_torch_form_runs(folder: Path) -> None:
    import torch

    done = trilift("lift", "good.py::double", "--to", "torch", cwd=folder)
    assert done.returncode == 0, done.stderr
    names: dict[str, Callable[..., torch.Tensor]] = {}
    exec(done.stdout, {"torch": torch}, names)
    x = torch.randn(5)
    assert torch.equal(next(f for f in names.values() if callable(f))(x), 2 * x)


def test_explain_names_every_step(folder: Path) -> None:
    done = trilift("lift", "good.py::double", "--explain", cwd=folder)
    assert done.returncode == 0, done.stderr
    for step in (
        "launches at N = ",
        "double_kernel[grid",
        "out: spec, ",
        "out: decomposed",
        "out: simplified",
        "out: checked",
    ):
        assert step in done.stdout


def test_same_seed_same_bytes(folder: Path) -> None:
    first, second = (trilift("lift", "good.py", "--explain", "--seed", "3", cwd=folder).stdout for _ in range(2))
    assert first == second != ""


@pytest.fixture(scope="module")
def bad(folder: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, dict]]:
    done = trilift("lift", "bad.py", "--to", "json", "--timeout", "8", cwd=folder)
    return done, {c["name"]: c for c in json.loads(done.stdout)["cases"]}


def test_other_cases_are_unharmed(bad: tuple[subprocess.CompletedProcess[str], dict[str, dict]]) -> None:
    done, cases = bad
    names = ["double", "wrong", "strange", "both", "silent", "raising", "endless", "aborting", "last"]
    assert list(cases) == names
    assert cases["double"]["lift"] == cases["last"]["lift"] == "ok"
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("strange", "unsupported", "inline"),
        ("silent", "case", "launches no kernel"),
        ("raising", "case", "wrapper raised at N"),
        ("endless", "timeout", "not finished"),
        ("aborting", "crash", "SIGABRT"),
    ],
)
def test_bad_cases_say_what_is_wrong(bad: tuple, name: str, kind: str, said: str) -> None:
    error = bad[1][name]["errors"][0]
    assert (error["kind"], bad[1][name]["formula"]) == (kind, None)
    assert said in error["what"] + error["why"]


def test_unsupported_has_its_source_line(bad: tuple) -> None:
    error = bad[1]["strange"]["errors"][0]
    assert BAD.splitlines()[error["line"] - 1].strip().startswith("v = tl.inline_asm_elementwise")


def test_one_unsupported_output_leaves_the_other(bad: tuple) -> None:
    outputs = {o["name"]: o for o in bad[1]["both"]["outputs"]}
    assert outputs["out0"]["text"] is None and "inline" in outputs["out0"]["lift"]
    assert outputs["out1"]["lift"] == "ok" and "2" in outputs["out1"]["text"]


def test_a_wrong_kernel_is_a_finding(bad: tuple) -> None:
    case = bad[1]["wrong"]
    assert [f["rule"] for f in case["findings"]] == ["wrong-result"]
    assert (case["verdict"], case["against"]) == ("REFUTED", "reference")


def test_json_has_the_schema(bad: tuple) -> None:
    done, cases = bad
    document = json.loads(done.stdout)
    assert document["schema"] == 1 and re.fullmatch(r"\d+\.\d+\.\d+", document["version"])
    fields = {
        "name",
        "file",
        "formula",
        "lift",
        "verdict",
        "against",
        "bound",
        "reason",
        "contract",
        "findings",
        "seconds",
    }
    for case in cases.values():
        assert fields <= case.keys()
        assert {"capture", "lift", "simplify", "prove", "audit"} <= case["seconds"].keys()
        assert case["formula"] is None or {"text", "latex", "torch"} <= case["formula"].keys()
        assert case["verdict"] in ("REFUTED", "UNKNOWN")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["bad.py::double"], 0),
        (["bad.py::wrong"], 1),
        (["bad.py::wrong", "bad.py::strange"], 1),
        (["bad.py::strange"], 4),
        (["bad.py::strange", "--allow-unknown"], 0),
        (["bad.py::silent"], 2),
        (["bad.py::nosuch"], 2),
        (["nosuch.py"], 2),
        (["raises.py"], 2),
        (["empty.py"], 3),
        (["--to", "html", "good.py"], 2),
    ],
)
def test_exit_codes(folder: Path, args: list[str], code: int) -> None:
    done = trilift("lift", "-q", *args, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr


def test_unsupported_is_drawn_on_the_source(folder: Path) -> None:
    said = trilift("lift", "bad.py::strange", cwd=folder).stdout
    assert "error[unsupported]:" in said
    assert re.search(r"  --> \S*bad.py:\d+", said)
    assert "   |  v = tl.inline_asm_elementwise" in said


@pytest.mark.smoke
@pytest.mark.parametrize("args", [("explain",), ("ops",), ("--help",), ("corpus", "--help")])
def test_output_that_cannot_be_written_is_an_error(args: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "trilift", *args]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    said = "error: could not write to standard output: "
    assert (done.returncode, done.stderr) == (2, f"{said}No space left on device\n")
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, f"{said}Bad file descriptor\n")


@pytest.mark.smoke
def test_who_reads_may_stop() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" | true', "sh", sys.executable, "-m", "trilift", "ops"], stderr=subprocess.PIPE, text=True
    )
    assert not done.stderr


# ---- parts that need no process --------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_an_error_is_drawn(tmp_path: Path) -> None:
    source = tmp_path / "k.py"
    source.write_text("def f():\n    acc += tl.dot(a, b)\n")
    error = {
        "kind": "unsupported",
        "what": "tt.foo",
        "file": str(source),
        "line": 2,
        "column": 12,
        "why": "no row",
        "help": "h",
    }
    assert draw.error(error).splitlines() == [
        "error[unsupported]: tt.foo",
        f"  --> {source}:2:12",
        "   |  acc += tl.dot(a, b)",
        "   |         ^ no row",
        "   = help: h",
    ]


@pytest.mark.smoke
@pytest.mark.parametrize(("column", "shown"), [(1, "x" * 7 + "..."), (503, "..." + "x" * 5), (1000, "..." + "x" * 9)])
def test_a_long_line_is_cut_around_its_column(tmp_path: Path, column: int, shown: str) -> None:
    source = tmp_path / "k.py"
    source.write_text("x" * 1000 + "\n")
    error = {"kind": "case", "what": "long", "file": str(source), "line": 1, "column": column, "why": "here"}
    line, caret = draw.error(error).splitlines()[-2:]
    assert len(line) <= draw.WIDTH + 12 and shown in line and caret.endswith("^ here")
    assert 0 <= caret.index("^") - line.index("x") < draw.WIDTH


@pytest.mark.smoke
def test_a_name_is_one_line() -> None:
    assert draw.heading({"file": "new\nline.py", "name": "one"}) == "new\\nline.py::one"


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("failure", "help"),
    [("SIGABRT", "compiler"), ("exit 0", "os._exit"), ("exit 7", "os._exit"), ("KeyboardInterrupt", "os._exit")],
)
def test_help_is_about_what_ended_a_process(failure: str, help: str) -> None:
    (error,) = unfinished.failed("a.py", "", Outcome(failure=failure))["errors"]
    assert error["kind"] == "crash" and failure in error["what"] and help in error["help"]


def options() -> list[tuple[str, click.Option]]:
    """The options of all commands, with the names of the commands."""
    groups = [(n, c.commands if isinstance(c, click.Group) else {n: c}) for n, c in main.commands.items()]
    commands = [(f"{g} {n}" if n != g else n, c) for g, inner in groups for n, c in inner.items()]
    return [(n, o) for n, c in commands for o in c.params if isinstance(o, click.Option)]


REFUSED = {float: ("nan", "inf", "-inf", "1e300", "-1"), int: ("-1", str(2**63), "1.5")}
NUMBERS = [(n, o) for n, o in options() if isinstance(o.type, click.FloatRange) or o.name == "seed"]


@pytest.mark.smoke
@pytest.mark.parametrize(("command", "option"), NUMBERS, ids=lambda x: getattr(x, "name", x))
def test_numbers_that_mean_nothing_are_refused(command: str, option: click.Option) -> None:
    for text in REFUSED[int if option.name == "seed" else float]:
        given = [*command.split(), option.opts[0], text, *(["a.py", "b.py"] if "cache" not in command else [])]
        done = CliRunner().invoke(main, given)
        assert done.exit_code == 2 and f"Invalid value for '{option.opts[0]}'" in done.output, done.output


@pytest.mark.smoke
def test_every_number_of_seconds_is_one() -> None:
    words = ("timeout", "max_time", "budget", "days")
    assert {o.name for _, o in NUMBERS} == {*words, "seed"} and len(NUMBERS) >= 14
    assert all(isinstance(o.type, Amount) for _, o in options() if o.name in words)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("kinds", "findings", "code"),
    [([], 0, 0), (["unsupported"], 0, 4), (["timeout"], 1, 1), (["case"], 1, 2), (["internal"], 0, 2)],
)
def test_code_of_a_record(kinds: list[str], findings: int, code: int) -> None:
    record = {"errors": [{"kind": k} for k in kinds], "findings": [{}] * findings}
    assert lift.code(record) == code


@pytest.mark.smoke
@pytest.mark.parametrize(("codes", "code"), [([], 3), ([0, 0], 0), ([0, 4], 4), ([4, 1, 0], 1), ([1, 2, 4], 2)])
def test_code_of_a_run_is_the_worst_of_its_cases(codes: list[int], code: int) -> None:
    assert gathering.worst(codes) == code


@pytest.mark.smoke
def test_targets_are_files_in_order_with_their_cases(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert targets.resolve(["bad.py::b", "good.py", "bad.py::a", "bad.py::b"]) == [
        targets.Target("bad.py", ("b", "a")),
        targets.Target("good.py"),
    ]
    assert [Path(t.file).name for t in targets.resolve(["."])] == ["bad.py", "good.py", "raises.py"]


@pytest.mark.smoke
def test_a_file_may_have_colons_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a::b.py").write_text(GOOD)
    assert targets.resolve(["a::b.py"]) == [targets.Target("a::b.py")]
    assert targets.resolve(["a::b.py::double"]) == [targets.Target("a::b.py", ("double",))]
    assert targets.single("a::b.py::double") == targets.Named("a::b.py", "double")
    assert main.is_target("a::b.py") and main.is_target("a::b.py::double")
    with pytest.raises(click.UsageError, match=r"absent\.py"):
        targets.resolve(["absent.py::double"])


@pytest.mark.smoke
def test_an_empty_record_has_no_verdict_that_looks_green() -> None:
    assert unfinished.empty("f", "c", "timeout", "late")["verdict"] == "UNKNOWN"


@pytest.mark.parametrize("command", [["corpus", "operators"], ["report", "operators"]])
def test_the_time_of_a_corpus_is_that_of_its_proofs(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from trilift.reports.experiments import pages

    found: list[Any] = []
    for name in ("show", "regenerate"):
        monkeypatch.setattr(pages, name, lambda *args, **_: found.extend(a for a in args if hasattr(a, "proving")) or 0)
    with pytest.raises(SystemExit):
        main([*command, "--timeout", "700"], standalone_mode=False)
    (options,) = found
    assert (options.proving.timeout, options.timeout) == (700, 1400)
