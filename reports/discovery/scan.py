"""Kernels that no case launches: found by their source, read with a guessed signature, and checked for what needs no
launch. The assumptions about their arguments are listed with each.

    folder or package -> its kernels -> those that no case launched -> a process per file, in it one per kernel
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import click

from trilift.lift.runtime.isolate import Event, Outcome, run_all

from ..base.fingerprint import loaded, watched
from ..base.targets import Target, sources
from ..records.entries import Row
from ..records.options import Options
from ..runner import cache
from ..runner.local import GRACE_SECONDS
from . import source
from .source import Kernel

Hear = Callable[[str, str, Any], None]
Scan = Callable[[Sequence[Row], Hear], list[Row]]
KERNEL_SECONDS = 30.0  # of one kernel
REASON = "no case launches it"
NARROW = ("fp16", "bf16", "fp8")
FAILURES = {"timeout": "not finished in the time given", "exception": "trilift itself failed"}


def scan(targets: Sequence[str], options: Options) -> Scan:
    """A function that finds the rows of the targets' kernels, once their cases have run. A target that names one case
    has none."""

    def rows_of(records: Sequence[Row], on_event: Hear) -> list[Row]:
        found, errors = kernels([t for t in targets if "::" not in t and not t.endswith(".ttir")])
        told = {r["file"] for r in records}
        for e in errors:
            if e["file"] not in told:
                click.echo(f"warning: {e['file']}:{e['line']}: {e['what']}", err=True)
        return rows(found, records, Options(jobs=options.jobs, cache=options.cache), on_event)

    return rows_of


def kernels(targets: Sequence[str]) -> tuple[list[Kernel], list[Row]]:
    """The kernels of the targets that are folders, packages or Python files, and an error for each file that Python
    cannot parse."""
    files = dict.fromkeys(f for t in targets for f in sources(t))
    errors = [_error("case", f"not Python: {why}", f, line) for f in files if (said := source.trouble(f))
              for why, line in (said,)]  # fmt: skip
    return source.kernels(files), errors


def rows(
    found: Sequence[Kernel],
    records: Sequence[Row],
    options: Options,
    on_event: Callable[[str, str, Any], None] = lambda *_: None,
) -> list[Row]:
    """A row for each kernel: the cases that launched it, or what is certain without one."""
    cases = {k: _cases(k, records) for k in found}
    rest = [k for k in found if not cases[k]]
    read = {(r["file"], r["name"], r["line"]): r for r in scanned(rest, options, on_event)}
    return [
        {**_row(k), "cases": cases[k]} if cases[k] else read.get((k.file, k.name, k.line), _row(k, "not looked at"))
        for k in found
    ]


def _cases(kernel: Kernel, records: Sequence[Row]) -> list[str]:
    """The cases that launched it."""
    return [f"{r['file']}::{r['name']}" for r in records if any(kernel.has(k["file"], k["line"]) for k in r["kernels"])]


def _row(kernel: Kernel, why: str = "") -> Row:
    """The record of a kernel, without findings. `read`: "ok", or why it could not be read."""
    return {
        "name": kernel.name,
        "file": kernel.file,
        "line": kernel.line,
        "cases": [],
        "read": why or "ok",
        "assumes": "",
        "verdict": "UNKNOWN",
        "reason": REASON,
        "findings": [],
        "suppressed": [],
        "errors": [_error("unsupported", why, kernel.file, kernel.line)] if why else [],
    }


def _error(kind: str, what: str, file: str, line: int) -> Row:
    return {"kind": kind, "what": what, "file": file, "line": line, "column": 0, "why": "", "help": ""}


def scanned(
    found: Sequence[Kernel], options: Options, on_event: Callable[[str, str, Any], None] = lambda *_: None
) -> list[Row]:
    """The rows of kernels that are read with a guessed signature; from the cache where it has them."""
    by_file = {f: tuple(ks) for f, ks in groupby(found, key=lambda k: k.file)}

    def run(
        targets: Sequence[Target],
        options: Options,
        on_event: Callable[[str, str, Any], None],
        on_loaded: Callable[[str, Sequence[str]], None],
    ) -> Iterator[Row]:
        wanted = {t.file: [k for k in by_file[t.file] if not t.cases or _key(k) in t.cases] for t in targets}
        return (_named(r) for r in _run(wanted, options, on_event, on_loaded))

    targets = [Target(f, tuple(map(_key, ks))) for f, ks in by_file.items()]
    if not targets:
        return []
    if not options.cache:
        return list(map(_unnamed, run(targets, options, on_event, lambda *_: None)))
    return [_unnamed(r) for r in cache.records(targets, options, on_event, run, "kernels")]


def _key(kernel: Kernel) -> str:
    return f"{kernel.name}:{kernel.line}"


def _named(row: Row) -> Row:
    """Under the name by which the cache knows it."""
    return {**row, "name": f"{row['name']}:{row['line']}"}


def _unnamed(row: Row) -> Row:
    return {**row, "name": row["name"].partition(":")[0]}


# ---- processes -------------------------------------------------------------------------------------------------------


def _run(
    wanted: Mapping[str, Sequence[Kernel]],
    options: Options,
    on_event: Callable[[str, str, Any], None],
    on_loaded: Callable[[str, Sequence[str]], None],
) -> Iterator[Row]:
    """The rows of the files, in their order. Files of one package share the process that imported it."""
    got: dict[str, dict[Kernel, Row]] = {f: {} for f in wanted}
    groups = [list(fs) for _, fs in groupby(wanted, key=_root)]
    tasks = [([(f, tuple(wanted[f])) for f in fs], max(1, options.jobs // len(groups))) for fs in groups]

    def hear(_: int, message: tuple[str, str, Any]) -> None:
        kind, file, value = message
        if kind == "loaded":
            on_loaded(file, value)
        elif kind == "row":
            kernel, row = value
            got[file][kernel] = row
            on_event(file, kernel.name, f"read: {row['read']}")
        else:
            on_event(file, *value)

    patience = KERNEL_SECONDS + GRACE_SECONDS
    for index, outcome in run_all(_group, tasks, options.jobs, patience, "forkserver", hear, renew=True):
        why = _why(outcome)
        for f in groups[index]:
            for k in wanted[f]:
                got[f].setdefault(k, _failed(k, why or "not looked at", outcome))
    for file, kernels_ in wanted.items():
        yield from (got[file][k] for k in kernels_)


def _root(file: str) -> str:
    """The outermost package that a file is in, or its folder."""
    folder = os.path.dirname(os.path.abspath(file))
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, inner = os.path.dirname(folder), folder
        if not os.path.exists(os.path.join(folder, "__init__.py")):
            return inner
    return folder


def _why(outcome: Outcome) -> str:
    if outcome.failure is None:
        return ""
    return FAILURES.get(outcome.failure, f"the process that read it ended with {outcome.failure}")


def _failed(kernel: Kernel, why: str, outcome: Outcome) -> Row:
    """The row of a kernel whose process did not come back: such a row is not kept."""
    row = _row(kernel, why)
    kind = "timeout" if outcome.failure == "timeout" else "crash"
    return {**row, "errors": [{**e, "kind": kind} for e in row["errors"]]}


def _group(files: Sequence[tuple[str, tuple[Kernel, ...]]], jobs: int, event: Event) -> None:
    """In a child: imports the package that the files are in, if they are in one, then each file in a child of its
    own."""
    from .sweep import lenient_autotune

    lenient_autotune()
    before = watched()
    _import(os.path.join(_root(files[0][0]), "__init__.py"))
    tasks = [(f, ks, before) for f, ks in files]

    def hear(_: int, message: tuple[str, str, Any]) -> None:
        event(message)

    for index, outcome in run_all(_file, tasks, jobs, KERNEL_SECONDS + GRACE_SECONDS / 2, "fork", hear, renew=True):
        if outcome.failure is not None:
            for k in files[index][1]:
                event(("row", files[index][0], (k, _failed(k, _why(outcome), outcome))))


def _file(file: str, kernels_: Sequence[Kernel], before: frozenset[str], event: Event) -> None:
    """In a child: the file imported, each of its kernels in a child of its own."""
    event(("event", file, ("", [k.name for k in kernels_])))
    found = _import(file)
    event(("loaded", file, loaded(before)))
    if isinstance(found, str):
        for k in kernels_:
            row = _row(k, found)
            event(("row", file, (k, {**row, "errors": [{**e, "kind": "case"} for e in row["errors"]]})))
        return

    def hear(index: int, stage: str) -> None:
        event(("event", file, (kernels_[index].name, f"stage:{stage}")))

    objects = [_object(found, k) for k in kernels_]
    for index, outcome in run_all(_examine, [*zip(kernels_, objects, strict=True)], 1, KERNEL_SECONDS, "fork", hear):
        k = kernels_[index]
        row = outcome.value if outcome.failure is None else _failed(k, _why(outcome), outcome)
        event(("row", file, (k, row)))


def _import(file: str) -> Any:
    """The module of a file, under its own name if it is in a package; why it cannot be had."""
    from trilift.lift.capture.case_files import by_file, by_name
    from trilift.lift.capture.import_order import first
    from trilift.lift.errors import CaseError

    root = _root(file)
    inside = os.path.exists(os.path.join(root, "__init__.py"))
    if not os.path.exists(file):
        return "there is no such file"
    try:
        if not inside:
            return by_file(file)
        first(os.path.dirname(root))
        path = os.path.relpath(os.path.abspath(file), os.path.dirname(root)).removesuffix(".py")
        return by_name(path.replace(os.sep, ".").removesuffix(".__init__"))
    except CaseError as e:
        return f"{e.what}: {e.why}" if e.why else e.what
    except BaseException as e:  # a skip of pytest, for one
        return f"importing it raised {type(e).__name__}: {e}"


def _object(module: Any, kernel: Kernel) -> Any:
    """Triton's object for the function, under autotune and heuristics; None if the module does not name it."""
    from triton.runtime.jit import JITFunction

    best = None
    for value in vars(module).values():
        inner = value
        while inner is not None and not isinstance(inner, JITFunction):
            inner = getattr(inner, "fn", None) if hasattr(inner, "run") else None
        if inner is not None and kernel.has(inner.fn.__code__.co_filename, inner.fn.__code__.co_firstlineno):
            best = value if best is None or hasattr(value, "fn") else best
    return best


# ---- one kernel ------------------------------------------------------------------------------------------------------


def _examine(kernel: Kernel, object_: Any, event: Event) -> Row:
    """In a child: the row of one kernel."""
    from trilift.lift.errors import TriliftError
    from trilift.lift.ttir import lower, reader
    from trilift.verify.audit.unlaunched import findings

    from .guess import climb, unwrapped

    if object_ is None:
        return _row(kernel, "its module does not name it")
    fn, _, _ = unwrapped(object_)
    event("signature")
    try:
        guess, text = climb(object_, lambda g: lower.text(fn, g.signature, g.constexprs, g.options))
        module = reader.parse(text)
    except TriliftError as e:
        return _row(kernel, e.why or e.what)
    event("checks")
    found, why = findings(module)
    assumes = assumption(guess.signature, guess.constexprs)
    narrow = any(word in assumes for word in NARROW)
    kept = [f for f in found if f.rule != "precision-loss" or not narrow]
    row = _row(kernel, why)
    return {**row, "assumes": assumes, "findings": [_finding(f, assumes) for f in kept]}


def assumption(signature: Mapping[str, Any], constexprs: Mapping[Any, Any]) -> str:
    """ "x_ptr: *fp32, N: i32, BLOCK = 16"."""
    said = [f"{n} = {constexprs.get(n)}" if k == "constexpr" else f"{n}: {k}" for n, k in signature.items()]
    return ", ".join(said)


def _finding(f: Any, assumes: str) -> Row:
    """The finding as plain data: a note, with what it assumes."""
    place = f.place
    where = {"file": place.file, "line": place.line, "column": place.column} if place else {"file": "", "line": 0}
    steps = [
        {"file": s.place.file if s.place else "", "line": s.place.line if s.place else 0,
         "column": s.place.column if s.place else 0, "text": s.text} for s in f.steps
    ]  # fmt: skip
    return {
        "rule": f.rule,
        "message": f.message,
        **where,
        "level": "note",
        "counterexample": dict(f.example),
        "hint": f.hint,
        "replay": None,
        "steps": [*steps, {"file": "", "line": 0, "column": 0, "text": f"no case launches it; assumed: {assumes}"}],
    }
