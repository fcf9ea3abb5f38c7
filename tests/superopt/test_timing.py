"""The measurement of emitted kernels, on the processor: what is timed, what is refused, what the page says."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path

import pytest
import torch
from click import ClickException

from trilift.lift.capture.case_files import load
from trilift.reports.experiments import summary
from trilift.reports.experiments.folders import CORPUS
from trilift.reports.experiments.superoptimizer import gpu_times
from trilift.superopt.accept import timing
from trilift.superopt.accept.acceptance import Acceptance
from trilift.superopt.jobs import Answer, Event, Unit, answer
from trilift.superopt.optimize import Emitted, Optimised, Question, Searched, _Optimisation

MIRAGE = CORPUS / "mirage"


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(64, 32), torch.randn(32, 16)


def wanted(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [(x.double() @ y.double()).float()]


def test_a_right_function_is_timed() -> None:
    xs = inputs()
    found = timing.measured(torch.matmul, timing.turns(xs, timing.Host()), wanted(*xs), timing.Host(), samples=5)
    assert found.right and found.cold is not None and found.warm is not None
    assert found.cold.low <= found.cold.median <= found.cold.high and not found.cold.captured
    assert found.warm.sets == 1 and found.cold.sets == timing.SETS


@pytest.mark.parametrize("wrong", [
    lambda x, y: x @ y + 0.1, lambda x, y: (x @ y)[:-1], lambda x, y: (x @ y, x), lambda x, y: (x @ y) * float("nan"),
])  # fmt: skip
def test_a_wrong_function_is_not_timed(wrong) -> None:
    xs = inputs()
    found = timing.measured(wrong, [xs], wanted(*xs), timing.Host(), samples=5)
    assert not found.right and found.cold is None and found.why == "its outputs differ"


def test_a_function_that_spoils_its_inputs_is_found_out() -> None:
    xs = inputs()

    def spoiling(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = x @ y
        x += 1
        return out

    found = timing.measured(spoiling, [xs], wanted(*xs), timing.Host(), samples=5)
    assert not found.right and found.warm is None and "after the timing" in found.why


def test_a_function_that_raises_is_a_row() -> None:
    xs = inputs()
    found = timing.measured(lambda x, y: y @ x, [xs], wanted(*xs), timing.Host(), samples=5)
    assert not found.right and found.why.startswith("RuntimeError")


def test_inputs_take_turns_until_the_cache_is_full_twice() -> None:
    device = timing.Host()
    large = (torch.zeros(device.cache // 8),)  # half of the cache
    assert len(timing.turns(large, device)) == 5
    assert len(timing.turns((torch.zeros(1),), device)) == timing.SETS


def job(tmp_path: Path) -> gpu_times.Job:
    case = next(c for c in load(str(MIRAGE / "lora.py")) if c.name == "lora")
    file = tmp_path / "emitted.py"
    file.write_text(
        "def lora(x, w, a, b):\n    return (x.float() @ w.float() + x.float() @ a.float() @ b.float()).half()\n"
    )
    sizes = {"M": 4, "K": 32, "N": 48, "R": 16}
    return gpu_times.Job(case, sizes, file, 1.5, 0.5, gpu_times._module(MIRAGE / "lora.py"))


def test_rows_are_written_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda f, **_: f)
    path, said = tmp_path / "gpu.json", []
    rows = gpu_times.timed([job(tmp_path)], timing.Host(), "cpu", path, 60.0, said.append)
    assert [r["function"] for r in rows] == ["emitted", "eager", "compile"] and all(r["right"] for r in rows)
    data = json.loads(path.read_text())
    assert data["rows"] == json.loads(json.dumps(rows)) and len(said) == 4
    assert said[0].startswith("lora M=4 K=32 N=48 R=16 emitted: right, relative error")
    (table,) = gpu_times.result(data).tables
    assert table.rows[0][6] == "1.00" and table.rows[0][8:] == ("1.50", "0.50")


def test_what_the_budget_does_not_reach_is_named(tmp_path: Path) -> None:
    said: list[str] = []
    (row,) = gpu_times.timed([job(tmp_path)], timing.Host(), "cpu", tmp_path / "gpu.json", -1.0, said.append)
    assert row["right"] and row["cold"] is None and row["before"] < 2e-2
    assert said[1:] == ["lora: not timed, the -1 s are over"]


def test_a_row_that_was_not_timed_says_why() -> None:
    row = {
        "case": "c",
        "sizes": {"M": 1},
        "function": "compile",
        "before": None,
        "cold": None,
        "warm": None,
        "why": "its outputs differ",
    }
    assert gpu_times._cells(row, None)[3] == "its outputs differ"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: it would be timed")
def test_without_timings_and_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_times, "FILE", tmp_path / "gpu.json")
    with pytest.raises(ClickException, match="no GPU"):
        gpu_times.measure("gpu-times", None, True)


def test_what_was_emitted_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that the summary says was emitted, at all sizes of its table."""
    rows = [r for name in gpu_times.SOURCES for r in summary.emitted(name)]
    monkeypatch.setattr(gpu_times, "RAW", tmp_path)
    (tmp_path / "kernels").mkdir()
    for r in rows:
        if r.get("emitted"):
            (tmp_path / "kernels" / Path(r["emitted"]).name).touch()
    jobs = list(gpu_times.jobs())
    emitted = {r["name"] for r in rows if r.get("emitted")}
    assert len(emitted) > 10 and {j.case.name for j in jobs} == emitted
    assert len(jobs) == sum(r["name"] in emitted for r in rows) > len(emitted)


def test_a_file_that_is_missing_says_what_to_run() -> None:
    with pytest.raises(ClickException, match="trilift report mirage legacy"):
        gpu_times._emitted({"emitted": "kernels/nothing.py"})


# ---- finalists -------------------------------------------------------------------------------------------------------


def emitted(text: str, median: float | None) -> Emitted:
    told = {"cold": {"median": median}, "warm": {"median": median}, "right": median is not None, "why": "it differs"}
    return Emitted("{}", text, text, 1.0, 0.0, Acceptance((), "PROVED"), "PROVED", {}, "", told)


def fastest(medians: dict[str, float | None], device: str) -> tuple[str | None, list[str], list[str]]:
    """Which of the finalists, in the order of the model, is the result; what was asked for, and the notes."""
    asked: list[str] = []

    def ask(unit: Unit, event: Event) -> Future[Answer]:
        asked.append(unit.kind)
        out: Future[Answer] = Future()
        out.set_result(emitted(unit.arguments["source"], medians[unit.arguments["source"]]).timed)
        return out

    question = Question("cases.py", "f", device=device)
    judge = _Optimisation(question, ask, 1, lambda said: None)
    out = Optimised("f", "reference", "", {}, Searched(0, 0, 0, 0.0, None, 1.0, None, 0, "none"))
    found = judge.fastest([emitted(text, 0.0) for text in medians], out, {"sizes": {}})
    return found and found.source, asked, out.notes


def test_the_fastest_finalist_is_the_result() -> None:
    assert fastest({"a": 3.0, "b": 1.0, "c": 2.0}, "cuda") == ("b", ["time"] * 3, [])


def test_a_finalist_that_is_wrong_on_the_device_is_not_the_result() -> None:
    found, _, notes = fastest({"a": None, "b": 2.0}, "cuda")
    assert found == "b" and notes == ["finalist 1 is rejected: it differs on the device"]
    assert fastest({"a": None}, "cuda")[0] is None


def test_without_a_device_the_model_ranks() -> None:
    assert fastest({"a": 3.0, "b": 1.0}, "") == ("a", [], [])


def test_a_file_is_timed_as_a_unit(tmp_path: Path) -> None:
    source = "from trilift import case\n\n\n@case(x='f32[M,N]')\ndef twice(x):\n    return 2 * x\n"
    given = {"source": source, "name": "twice", "sizes": {"M": 3, "N": 5}, "seed": 0, "device": "cpu"}
    found = answer(Unit("time", given))
    assert found["right"] and found["cold"]["median"] > 0 and found["settled"] is False
