"""The sweep over the kernels of packages: signatures are guessed, a process a kernel, causes are counted."""

from __future__ import annotations

import importlib.util
import os
import signal

import pytest
import triton
import triton.language as tl

from trilift.lift.ttir import lower
from trilift.reports.discovery import examine, guess, sweep
from trilift.reports.discovery.modules import STAGES, Found, Result
from trilift.reports.discovery.usage import callees, usage


@triton.jit
def offset(base, index, stride):
    return base + index * stride


@triton.jit
def gather(source, table, out, n, stride, scale, HAS_SCALE: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(table + i, mask=i < n, other=0)
    x = tl.load(offset(source, row, stride), mask=i < n)
    if HAS_SCALE:
        x = x * scale
    if MODE == "exp":
        x = tl.exp(x)
    p_out = out
    p_out += i
    tl.store(p_out, x, mask=i < n)


@triton.jit
def picky(x, y, BLOCK: tl.constexpr, KIND: tl.constexpr):
    tl.static_assert(BLOCK == 64)
    tl.static_assert(x.dtype.element_ty == tl.float16)
    if KIND == 7:
        v = tl.load(x + tl.arange(0, BLOCK))
    tl.store(y + tl.arange(0, BLOCK), v)


@triton.jit
def hopeless(x, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK < 0, "no BLOCK will do")
    tl.store(x, 0.0)


def attempt(fn):
    return lambda g: lower.lower(fn, g.signature, g.constexprs, g.options)


def test_usage():
    used = usage(gather)
    assert {"source", "table", "out"} <= used.pointers and not {"n", "stride", "scale"} & used.pointers
    assert "table" in used.integers and "source" not in used.integers and "scale" not in used.integers
    assert used.stores and "HAS_SCALE" in used.flags and "BLOCK" in used.sizes and used.literals["MODE"] == ["exp"]
    assert [helper for helper, _ in callees(gather)] == [offset]


def test_first_guess():
    found = guess.first(gather)
    assert list(found.signature) == gather.arg_names
    kinds = {"source": "*fp32", "table": "*i32", "out": "*fp32", "n": "i32", "stride": "i32", "scale": "fp32"}
    assert found.signature == {**kinds, "HAS_SCALE": "constexpr", "MODE": "constexpr", "BLOCK": "constexpr"}
    assert found.constexprs == {"HAS_SCALE": True, "MODE": "exp", "BLOCK": 16}


def test_climb():
    found, module = guess.climb(picky, attempt(picky))
    assert found.signature["x"] == "*fp16" and found.constexprs == {"BLOCK": 64, "KIND": 7}
    assert module.entry.name == "picky"


def test_climb_gives_up_with_what_triton_says():
    with pytest.raises(lower.Unsupported, match="no BLOCK will do"):
        guess.climb(hopeless, attempt(hopeless))


def examined(*kernels, jobs=2):
    found = [Found("here", k.__name__, f"{k.__name__}:1", k) for k in kernels]
    seen = []
    results = examine.pool(found, jobs, seen.append)
    assert sorted(r.kernel for r in seen) == sorted(r.kernel for r in results)
    return results


def test_a_process_a_kernel():
    good, bad = examined(gather, hopeless)
    assert (good.stage, good.ran) == ("done", "ran") and good.operations > 10
    assert (bad.stage, bad.cause) == ("guess", "no BLOCK will do")


def test_an_abort_bans_the_guess(monkeypatch):
    def abort(fn, signature, constexprs, options):
        if constexprs["BLOCK"] == 16:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(fn, signature, constexprs, options)

    real = lower.text
    monkeypatch.setattr(lower, "text", abort)
    (result,) = examined(gather)
    assert result.stage == "done" and "'BLOCK': 16" not in result.detail


def test_table():
    results = [
        Result("a", "k", "f:1", stage="done", ran="ran"),
        Result("a", "l", "f:2", "tt.foo", stage="start"),
        Result("b", "m", "f:3", "no 17 way", stage="guess"),
        Result("b", "h", "f:4", stage="helper"),
    ]
    text = sweep.table(results)
    assert "100.0%      50.0%" in text and "1 helper" in text and "guess: no # way" in text and "start: tt.foo" in text


def test_continues_where_it_stopped(tmp_path):
    out = tmp_path / "sweep.jsonl"
    sweep._write(out, Result("a", "k", "f:1", stage="done"))
    assert list(sweep._read(out)) == [Result("a", "k", "f:1", stage="done")]


@pytest.mark.parametrize("package", ["liger_kernel.ops", "fla.modules"])
def test_a_sample_of_kernels(package):
    if importlib.util.find_spec(package.partition(".")[0]) is None:
        pytest.skip(f"{package} is not installed: make packages")
    results = [r for r in sweep.sweep([package], sample=10, seed=1) if r.stage in STAGES]
    assert len(results) == 10
    assert sum(r.stage == "done" for r in results) >= 9, sweep.table(results)
    assert not [r.cause for r in results if r.stage == "crash"]
