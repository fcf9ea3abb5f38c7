"""Files and options with changed bytes, read by the functions that the commands call: an attempt is one text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

from trilift.lift.runtime import isolate

from ...commands.prove import checked
from ...filters import baseline
from .endings import HUNG, ends_in_child
from .fault import Ended, Fault, Make
from .mutated import mutated

DESCRIPTION = {"name": "softmax", "inputs": {"x": "f32[M, N]"}, "outputs": {"y": "f32[M, N]"},
               "args": ["y", "x", "N", "N", "N"], "grid": ["M"], "where": "N <= 32"}  # fmt: skip
SIGNATURE = {"out_ptr": "*fp32", "x_ptr": "*fp32", "stride_x": "i32", "stride_out": "i32", "N": "i32",
             "LOG": "constexpr", "BLOCK": "constexpr"}  # fmt: skip
CONSTANTS = {"LOG": 0, "BLOCK": 32}
FINDING = {"fingerprint": "0123abcd", "rule": "out-of-bounds", "file": "a.py", "line": 3, "message": "a store"}
BASELINE = {"schema": 1, "tool": "trilift", "findings": [FINDING, {**FINDING, "fingerprint": "4567"}]}
FORMULAS = (b"softmax(x * 2 ** 3, -1) + sum(y, 0, keepdim=True)", b"where(x > 0.5, x[:, None] @ w[k, ::2], -inf)")
SPECS = (b"f32[M, cdiv(N, 4) + 1] strided", b"i32[N] in (-5, 2 * N)", b"u8 < 256", b"f16[8, N] any rows")
OPERATORS: tuple[tuple[object, ...], ...] = (
    ("x", "load", ["x"], ["m", "n"], [], True), ("s", "sqr", ["x"], ["m", "n"], [], True),
    ("r", "sum", ["s"], ["m"], ["n"], True), ("a", "accumulate", ["r"], ["m"], ["n"], False),
    ("out", "store", ["a"], ["m"], [], False),
)  # fmt: skip
NODES: tuple[tuple[object, ...], ...] = (
    ("input", [], "x", ["m", "n"]),
    ("sqr", [0], None, ["m", "n"]),
    ("sum", [1], "n", ["m"]),
)
GRAPH = {
    "format": "trilift µGraph 1",
    "program": {
        "inputs": [{"name": "x", "tensor": "x", "axes": ["m", "n"], "dtype": "f16", "element": None}],
        "outputs": [{"name": "out", "axes": ["m"], "node": 2, "dtype": "f16"}],
        "sizes": {"m": 4096, "n": 4096}, "extents": {}, "terms": [],
        "nodes": [dict(zip(("op", "args", "attr", "axes"), n, strict=True)) for n in NODES],
    },
    "kernels": [{
        "name": "rows", "modes": {"m": "grid", "n": "loop"}, "tiles": {"m": 16, "n": 32},
        "operators": [dict(zip(("out", "op", "args", "dims", "over", "inside"), o, strict=True)) for o in OPERATORS],
        "warps": 4, "stages": 3, "threads": [],
    }],
    "tensors": {"out": {"name": "out", "dims": ["m"], "dtype": "f16"}}, "parts": {}, "wide": False,
}  # fmt: skip
Texts = Callable[[], Sequence[bytes]]
Read = Callable[[Path, bytes], object]


def mutant(texts: Texts, read: Read) -> Make:
    """Reads one mutant of the texts in a child; a command reads it in one too."""

    def make(folder: Path, seed: int) -> Ended:
        text = mutated(texts(), seed)
        said = ends_in_child(lambda: read(folder, text))
        return Ended(None if said == HUNG else 0, err=f"{said}\nof {text[:200]!r}" if said else "")

    return make


def ended_well(ended: Ended) -> str:
    return ended.err


@cache
def ir() -> bytes:
    """A softmax of the corpus as `trilift` reads it, lowered in a child: MLIR remains loaded where it was used."""
    found: bytes = isolate.run(_lowered).value
    return found


def _lowered(event: isolate.Event) -> bytes:
    from trilift.lift.ttir import lower

    kernel = import_module("trilift.corpus.operators.softmax").softmax1_kernel
    return lower.text(kernel, SIGNATURE, CONSTANTS, {}).encode()


def dumped(data: object) -> Texts:
    return lambda: [json.dumps(data).encode()]


def read_ir(folder: Path, text: bytes) -> None:
    from trilift.lift.ttir import lower

    path = folder / "m.ttir"
    path.write_bytes(text)
    lower.lower_file(path)


def read_description(folder: Path, text: bytes) -> None:
    """Captures the launch of a .ttir file with this description beside it."""
    from trilift.lift.capture.case_files import load
    from trilift.lift.capture.run import capture

    (folder / "m.ttir").write_bytes(ir())
    (folder / "m.json").write_bytes(text)
    (case,) = load(str(folder / "m.ttir"))
    capture(case, dict.fromkeys(case.names, 3))


def read_baseline(folder: Path, text: bytes) -> None:
    path = folder / "known.json"
    path.write_bytes(text)
    baseline.read(str(path))


def read_formula(folder: Path, text: bytes) -> None:
    """Reads the text of `--against`, as the shell gives it."""
    from trilift.lift.language.parse import formula
    from trilift.lift.terms import construct as T

    m, n, k = (T.size(s) for s in "MNK")
    given = text.replace(b"\0", b"").decode(errors="surrogateescape")
    checked(given)
    formula(given, {"x": (m, n), "y": (m, n), "w": (n, k), "k": (k,)})


def read_spec(folder: Path, text: bytes) -> None:
    """Declares a case with this specification, and with it as a condition."""
    from trilift import case

    def fn(x: object) -> object:
        return x

    given = text.decode(errors="replace")
    case(x=given)(fn)
    case(x="f32[M, N]", where=given)(fn)


def read_graph(folder: Path, text: bytes) -> None:
    """Reads a µGraph, and writes it again."""
    from trilift.superopt.mugraph import graph
    from trilift.superopt.mugraph.json import from_json, to_json

    found = from_json(text.decode(errors="replace"))
    graph.text(found)
    to_json(found)


TEXTS = (
    Fault("a .ttir file with changed bytes", mutant(lambda: [ir()], read_ir), ended_well),
    Fault("a launch description with changed bytes", mutant(dumped(DESCRIPTION), read_description), ended_well),
    Fault("a baseline with changed bytes", mutant(dumped(BASELINE), read_baseline), ended_well),
    Fault("a µGraph with changed bytes", mutant(dumped(GRAPH), read_graph), ended_well),
    Fault("a formula of --against with changed bytes", mutant(lambda: FORMULAS, read_formula), ended_well),
    Fault("a specification of a case with changed bytes", mutant(lambda: SPECS, read_spec), ended_well),
)
