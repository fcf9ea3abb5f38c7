"""[tool.trilift] of the nearest pyproject.toml that has one: what the command line does not say.

    [tool.trilift]
    targets = ["kernels"]               select = ["out-of-bounds"]        ignore = ["precision-loss"]
    timeout = 60                        jobs = 4                          allow-unknown = true
    cache = false                       formats = ["text", "sarif=audit.sarif"]
    per-file-ignores = { "kernels/old_*.py" = ["overflow-risk"] }

Paths are relative to the file.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import click

from .numbers import is_amount
from .sources import split

TABLE = "[tool.trilift]"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of the table; None where it has none. `file`: where it stands, "" without one."""

    file: str = ""
    targets: tuple[str, ...] | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    timeout: float | None = None
    jobs: int | None = None
    allow_unknown: bool | None = None
    cache: bool | str | None = None
    formats: tuple[str, ...] | None = None
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return Path(self.file).parent

    def ignored(self, file: str) -> frozenset[str]:
        """The rules that are not asked of a file."""
        path = Path(file).resolve()
        names = [str(path), path.name]
        if path.is_relative_to(self.folder.resolve()):
            names.append(path.relative_to(self.folder.resolve()).as_posix())
        return frozenset(
            rule
            for glob, rules in self.per_file_ignores.items()
            if any(matches(n, glob) for n in names)
            for rule in rules
        )


def matches(name: str, glob: str) -> bool:
    """Whether a path matches a pattern; ** crosses folders, a pattern that names a folder means all in it."""
    glob = glob.rstrip("/")
    prefix, star, suffix = glob.partition("**/")
    if star:
        rest = PurePath(name.removeprefix(prefix))
        return name.startswith(prefix) and rest.match(suffix)
    return name.startswith(glob + "/") or (name.count("/") == glob.count("/") and PurePath(name).match(glob))


def load(targets: Iterable[str], rules: Iterable[str]) -> Configuration:
    """The configuration for these targets (of the current folder, without any): that of the first which exists. Raises
    click.UsageError for a key or a value that means nothing."""
    first = next((Path(split(t)[0]) for t in targets), Path())
    start = (first if first.exists() else Path()).resolve()
    for folder in (start, *start.parents):
        table = _table(folder / "pyproject.toml")
        if table is not None:
            return checked(table, str(folder / "pyproject.toml"), tuple(rules))
    return Configuration()


def _table(path: Path) -> Any:
    """The table of a file, None if it has none."""
    if not path.is_file():
        return None
    try:
        found: Any = tomllib.loads(path.read_text())
    except (OSError, ValueError) as e:
        raise click.UsageError(f"cannot read {path}: {e}") from None
    for key in ("tool", "trilift"):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def checked(table: Any, file: str, rules: tuple[str, ...]) -> Configuration:
    """The configuration in a table. Raises click.UsageError."""
    if not isinstance(table, dict):
        raise click.UsageError(f"{file}: tool.trilift is not a table")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in KEYS:
            raise click.UsageError(f"{file}: {TABLE} has no key {key}{near(key, KEYS)}")
        what, read = KEYS[key]
        found = read(value)
        if found is None:
            raise click.UsageError(f"{file}: {TABLE} {key} is {what}, not {value!r}")
        for rule in _rules(key, found):
            if rule not in rules:
                raise click.UsageError(f"{file}: {TABLE} {key}: no rule is called {rule}{near(rule, rules)}")
        values[key.replace("-", "_")] = found
    return Configuration(file, **values)


def near(name: str, known: Iterable[str]) -> str:
    """ "; is it timeout?", or the names that there are."""
    names = list(known)
    found = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {found[0]}?" if found else f"; there are {', '.join(names)}"


def _rules(key: str, value: Any) -> tuple[str, ...]:
    """The rules that a value names."""
    if key == "per-file-ignores":
        return tuple(r for names in value.values() for r in names)
    return value if key in ("select", "ignore") else ()


def _texts(x: Any) -> tuple[str, ...] | None:
    return tuple(x) if isinstance(x, list) and all(isinstance(e, str) for e in x) else None


def _seconds(x: Any) -> float | None:
    return float(x) if isinstance(x, int | float) and not isinstance(x, bool) and is_amount(x) else None


def _count(x: Any) -> int | None:
    return x if isinstance(x, int) and not isinstance(x, bool) and x > 0 else None


def _flag(x: Any) -> bool | None:
    return x if isinstance(x, bool) else None


def _place(x: Any) -> bool | str | None:
    return x if isinstance(x, bool | str) else None


def _by_file(x: Any) -> dict[str, tuple[str, ...]] | None:
    if not isinstance(x, dict) or not all(_texts(v) is not None for v in x.values()):
        return None
    return {k: tuple(v) for k, v in x.items()}


LIST = "a list of texts"
KEYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "targets": (LIST, _texts),
    "select": (LIST, _texts),
    "ignore": (LIST, _texts),
    "timeout": ("a number of seconds above 0", _seconds),
    "jobs": ("a whole number above 0", _count),
    "allow-unknown": ("true or false", _flag),
    "cache": ("true, false or a folder", _place),
    "formats": (LIST, _texts),
    "per-file-ignores": ("a table of patterns with lists of rules", _by_file),
}


# ---- the command line ------------------------------------------------------------------------------------------------


class Configured(click.Command):
    """A command whose options come from the configuration where the command line does not give them."""

    def invoke(self, ctx: click.Context) -> Any:
        from .explanations import FINDINGS

        found = load(ctx.params["targets"], FINDINGS)
        ctx.obj = found
        for name, value in values(found).items():
            if ctx.get_parameter_source(name) is click.core.ParameterSource.DEFAULT:
                ctx.params[name] = value
        if not ctx.params["targets"]:
            raise click.UsageError("no TARGET given, and no pyproject.toml lists targets in [tool.trilift]", ctx)
        return super().invoke(ctx)


def source(found: Configuration, key: str, parameter: str) -> str:
    """How an error names the value of a parameter that `found` gives where the command line does not: by the file and
    its key, else by the option of that name."""
    context = click.get_current_context()
    given = context.get_parameter_source(parameter) is not click.core.ParameterSource.DEFAULT
    option = next(o.opts[0] for o in context.command.params if o.name == parameter)
    return option if given or parameter not in values(found) else f"{found.file}: {TABLE} {key}"


def values(found: Configuration) -> dict[str, Any]:
    """The settings of the table, by the names of options."""
    beside: Callable[[str], str] = lambda path: _beside(found.folder, path)  # noqa: E731
    told: dict[str, Any] = {
        "targets": found.targets and tuple(map(beside, found.targets)),
        "select": found.select and ",".join(found.select),
        "ignore": found.ignore and ",".join(found.ignore),
        "timeout": found.timeout,
        "jobs": found.jobs,
        "allow_unknown": found.allow_unknown,
        "no_cache": None if found.cache is None else found.cache is False,
        "cache_dir": beside(found.cache) if isinstance(found.cache, str) else None,
        "forms": found.formats and tuple(f"{n}{e}{p and beside(p)}" for n, e, p in
                                         (f.partition("=") for f in found.formats)),
    }  # fmt: skip
    return {k: v for k, v in told.items() if v is not None}


def _beside(folder: Path, path: str) -> str:
    """A path that is relative to the configuration, as one that is relative to where we are; a module stays."""
    head, rest = split(path)
    at = folder / head
    if (head.isidentifier() and not at.exists()) or (":" in head and not at.exists()):
        return path
    try:
        shown = at.relative_to(Path.cwd())
    except ValueError:
        shown = at
    return f"{shown}{rest and '::'}{rest}"
