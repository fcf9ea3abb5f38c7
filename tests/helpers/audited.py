"""A document of an audit, made by hand: every verdict, findings of every level, texts that would break a format."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

KERNELS = '''import torch, triton, triton.language as tl
from trilift import case


@triton.jit
def row_kernel(x, y, N, stride, BLOCK: tl.constexpr):
    """One row for each program."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + cols)
    v = tl.exp(v) / tl.sum(tl.exp(v), axis=0)
    tl.store(y + row * stride + cols, v, mask=cols < N)


def softmax(x):
    y = torch.empty_like(x)
    row_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
'''
NASTY = '<b>`N`</b> & "5%": a,b | ]]> \x07\n::error::injected ##[error]x'
SCRIPT = "import torch\nprint('<i>replayed</i>')\n"


def kernels(folder: Path) -> None:
    """The file that the records speak of."""
    (folder / "kernels.py").write_text(KERNELS)


def finding(rule: str, line: int, **fields: Any) -> dict[str, Any]:
    base = {"rule": rule, "message": f"what {rule} says", "file": "kernels.py", "line": line, "column": 0}
    more: dict[str, Any] = {
        "level": "error",
        "counterexample": {},
        "hint": "",
        "replay": None,
        "script": "",
        "steps": [],
    }
    return {**base, **more, **fields}


def place(line: int, column: int = 0) -> dict[str, Any]:
    return {"file": "kernels.py", "line": line, "column": column}


OUT_OF_BOUNDS = finding(
    "out-of-bounds",
    10,
    column=9,
    message="the load of `x` reads element 5 of 5",
    counterexample={"M": 1, "N": 5, "program": [0, 0, 0], "index": 5, "x": 1.5e300},
    hint="mask the load with `cols < N`",
    replay=".trilift/replay/kernels-broken-out-of-bounds.py",
    script=SCRIPT,
    steps=[
        {**place(17), "text": "BLOCK is 8"},
        {**place(9, 5), "text": "`cols` reaches 7"},
        {**place(10, 9), "text": "the address is behind the end of `x`"},
    ],
)
RISK = finding(
    "overflow-risk", 11, level="warning", message="exp overflows from 88.73 on", counterexample={"N": 1, "x": 89.0}
)
CONDITIONS = {
    "count": 14,
    "open": 0,
    "by": {"linear": {"count": 12, "seconds": 0.001}, "normal form": {"count": 2, "seconds": 0.31}},
    "kinds": [
        {"kind": "load of x", "count": 12, "open": 0, "by": {"linear": 12}, "seconds": 0.001},
        {"kind": "y", "count": 2, "open": 0, "by": {"normal form": 1, "z3": 1}, "seconds": 0.31},
    ],
}
NOWRAP = {"kind": "nowrap", "text": "M * N < 2^31", "why": "integer arithmetic", "place": place(10, 13)}
SEEN = {"kind": "config", "text": "BLOCK was 8 at every shape", "why": "", "place": None}
TORCH = "import torch\n\n\ndef y(x):\n    return torch.softmax(x, 1)\n"
LATEX = r"y_{m,n} = \operatorname{softmax}_{n}(x_{m,n})"


def proof(verdict: str, **fields: Any) -> dict[str, Any]:
    base = {"output": "y", "against": "reference", "verdict": verdict, "bound": None, "samples": 0, "reason": ""}
    more = {"cause": "", "place": None, "contract": [NOWRAP, SEEN], "counterexample": None, "conditions": CONDITIONS}
    return {**base, **more, "smt": None, "seconds": 0.311, "details": {}, **fields}


def case(name: str, verdict: str, **fields: Any) -> dict[str, Any]:
    """A record. `reason` and the proofs' go together."""
    formula = {"text": "softmax(x, -1)", "latex": LATEX, "torch": TORCH}
    base = {
        "name": name,
        "file": "kernels.py",
        "formula": formula,
        "lift": "ok",
        "verdict": verdict,
        "against": "reference",
        "bound": None,
        "reason": "",
        "contract": ["M * N < 2^31"],
        "findings": [],
        "seconds": {"capture": 0.1, "lift": 0.2, "simplify": 0.3, "prove": 0.311, "audit": 0.05},
        "launches": 1,
        "outputs": [{"name": "y", **formula, "laws": [], "lift": "ok"}],
        "errors": [],
        "explain": [],
        "dims": ["M", "N"],
        "where": "",
        "place": None,
        "proofs": [proof(verdict)],
        "blocks": {"BLOCK": 8},
        "kernels": [{"name": "row_kernel", "file": "kernels.py", "line": 5}],
        "undecided": [],
        "suppressed": [],
    }
    return {**base, **fields}


EXAMPLE = {
    "dims": {"M": 2, "N": 3},
    "seed": 0,
    "config": 0,
    "output": "y",
    "index": [1, 2],
    "element": "y[1, 2]",
    "why": "",
    "got": "nan",
    "expected": 0.25,
    "replay": None,
}
ERROR = {
    "kind": "case",
    "what": "wrapper raised at M = 3",
    "file": "kernels.py",
    "line": 15,
    "column": 0,
    "why": "ValueError: <no>",
    "help": "",
}
WRONG = finding("wrong-result", 12, column=5, message="y[1, 2] is nan, the reference gives 0.25")
HAS = "the kernel has the finding out-of-bounds"
OPEN = "step of loop at line 9: `v`"


def kernel(name: str, line: int, **fields: Any) -> dict[str, Any]:
    """A kernel of the targets; `cases`: those that launch it."""
    base = {"name": name, "file": "kernels.py", "line": line, "cases": [], "read": "ok", "assumes": "x: *fp32, N: i32"}
    more = {"verdict": "UNKNOWN", "reason": "no case launches it", "findings": [], "suppressed": [], "errors": []}
    return {**base, **more, **fields}


NARROW = finding("precision-loss", 8, level="note", message="a sum in float16", hint="add in float32")


def document() -> dict[str, Any]:
    """Cases of all kinds."""
    lost: dict[str, Any] = {"proofs": [], "formula": None, "outputs": [], "against": "formula"}
    cases = [
        case("sound", "PROVED"),
        case(
            "broken",
            "UNKNOWN",
            findings=[RISK, OUT_OF_BOUNDS],
            reason=HAS,
            proofs=[proof("UNKNOWN", reason=HAS)],
        ),
        case("shared", "PROVED", findings=[OUT_OF_BOUNDS]),
        case("tested", "TESTED", bound=1e-9, proofs=[proof("TESTED", bound=1e-9, samples=40, reason="no closed form")]),
        case(
            "wrong",
            "REFUTED",
            reason="y[1, 2] is nan",
            proofs=[proof("REFUTED", reason="y[1, 2] is nan", counterexample=EXAMPLE)],
            findings=[WRONG],
        ),
        case(
            "open",
            "UNKNOWN",
            reason=OPEN,
            place=place(9, 5),
            proofs=[proof("UNKNOWN", reason=OPEN, place=place(9, 5), contract=[])],
            undecided=["nan-risk: not decided whether a row can be empty"],
        ),
        case(
            "nasty",
            "UNKNOWN",
            reason=NASTY,
            proofs=[proof("UNKNOWN", reason=NASTY)],
            findings=[finding("precision-loss", 12, level="note", message=NASTY)],
        ),
        case(
            "accepted",
            "PROVED",
            suppressed=[{**RISK, "suppression": {"kind": "inSource", "justification": "x is below 1"}}],
        ),
        case("raising", "UNKNOWN", reason="case: wrapper raised", errors=[ERROR], **lost),
    ]
    rows = [
        kernel("row_kernel", 5, cases=["kernels.py::sound"]),
        kernel("lonely_kernel", 6, findings=[NARROW]),
        kernel("other_kernel", 15, read="importing it raised <ImportError>"),
    ]
    return copy.deepcopy({"schema": 1, "version": "0.0.0", "cases": cases, "kernels": rows})
