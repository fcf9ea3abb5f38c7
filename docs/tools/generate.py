"""A mkdocs hook: the reference pages that are made from the code, so that they cannot differ from it.

reference/cli.md          the options of each command, from click
reference/rules/*.md      verify/audit/rules/*.md as they are, and a list of them
reference/operations.md   `trilift ops`
reference/laws.md         lift/simplify/laws.py
reference/inputs.md       verify/runs/input_table.py
reference/json.md         reports/formats/schema.json
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "reports" / "formats" / "schema.json"
RULES = "reference/rules/index.md"
WIDE = "---\nhide: [toc]\n---\n\n"  # of a page with a wide table


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the page of each audit rule into the navigation, behind their list."""
    for section in _lists(config.nav or []):
        if RULES in section:
            section += [{name: f"reference/rules/{name}.md"} for name in _rules()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages."""
    for name, text in pages():
        files.append(File.generated(config, name, content=text))
    return files


def pages() -> Iterator[tuple[str, str]]:
    """(path below docs, Markdown) of every generated page."""
    yield "reference/cli.md", command_line()
    yield "reference/operations.md", operations()
    yield "reference/laws.md", laws()
    yield "reference/inputs.md", inputs()
    yield "reference/json.md", schema()
    yield RULES, rules()
    for name, rule in _rules().items():
        yield f"reference/rules/{name}.md", rule.page


# ---- the command line ------------------------------------------------------------------------------------------------


def command_line() -> str:
    """One section for each command: usage, help and a table of options."""
    from trilift.reports.cli import main

    sections = [_command(name, command) for name, command in main.commands.items()]
    return "# Command line\n\n" + _help(main) + "\n\n" + "\n\n".join(sections) + "\n"


def _command(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"trilift {name}")
    usage = command.get_usage(context).removeprefix("Usage: ")
    options = [p for p in command.get_params(context) if isinstance(p, click.Option)]
    records = [r for p in options if (r := p.get_help_record(context))]
    rows = [(f"`{option}`", text) for option, text in records]
    return f"## {name}\n\n```text\n{usage}\n```\n\n{_help(command)}\n\n{table(('option', 'meaning'), rows)}"


def _help(command: click.Command) -> str:
    return _escaped(inspect.cleandoc(command.help or "").replace("\b\n", ""))


# ---- tables of the code ----------------------------------------------------------------------------------------------


def operations() -> str:
    """The table that `trilift ops` prints."""
    from trilift.reports.cli import main

    rows = json.loads(_printed("ops", "--format", "json"))
    domains = any(p.name == "domains" for p in main.commands["ops"].params)
    keys = list(rows[0])
    cells = [[f"`{row[keys[0]]}`", *(_cell(row[k]) for k in keys[1:])] for row in rows]
    return (
        WIDE + "# Operations\n\n"
        "One row for each operation, as `trilift ops` prints it: its name, and what it is called in Triton IR,\n"
        "libdevice and PyTorch. A missing meaning is an [`unsupported`](errors/unsupported.md) error, never a silent\n"
        "skip. [Add an operation](../how-to/add-an-operation.md) explains how to fill a row.\n\n"
        + table(keys, cells)
        + (f"\n## Domains\n\n```text\n{_printed('ops', '--domains')}```\n" if domains else "")
    )


def laws() -> str:
    """The laws of the simplifier, in the order in which they are written."""
    from trilift.lift.simplify.laws import LAWS

    rows = [(f"`{r.name}`", f"`{r.left}`", r.arrow, f"`{r.right}`", _code(r.condition)) for r in LAWS]
    return (
        WIDE + "# Laws\n\n"
        "The laws that [equality saturation](../explanation/glossary.md#equality-saturation) applies to a formula,\n"
        "from `lift/simplify/laws.py`. `=` rewrites both ways, `->` only from left to right. A law with a condition\n"
        "is applied only where the condition was derived. `trilift explain NAME` prints one row.\n\n"
        + table(("law", "left", "", "right", "condition"), rows)
    )


def inputs() -> str:
    """The values on which runs are made, and who does without them."""
    from trilift.verify.runs.input_table import HARD_LAYOUTS, LAYOUTS, ROWS

    unused = {n: "; ".join(f"{who}: {why}" for who, why in r.unused.items()) for n, r in ROWS.items()}
    rows = [(f"`{n}`", r.words, r.integers, r.shows, unused[n]) for n, r in ROWS.items()]
    return (
        WIDE + "# Inputs\n\n"
        "The values on which `trilift prove`, `trilift audit` and written tests run a kernel, from\n"
        "`verify/runs/input_table.py`. A row fills reals where a case allows its numbers. Integers are the first or\n"
        "last that limits allow, or at the edges of their type.\n\n"
        + table(("row", "inputs", "integers", "mistakes that it shows", "not used by"), rows)
        + f"\nLayouts of tensors with any strides: {', '.join((*LAYOUTS, *HARD_LAYOUTS))}.\n"
    )


def rules() -> str:
    """The list of audit rules: level and summary."""
    found = _rules()
    rows = [(f"[{name}]({name}.md)", r.level, r.summary) for name, r in found.items()]
    return (
        "# Audit rules\n\n"
        "What `trilift audit` looks for. `trilift explain RULE` prints the same pages in the terminal.\n\n"
        + table(("rule", "level", "what it finds"), rows)
    )


def _rules() -> dict[str, Any]:
    """The rules as declared, in the order in which an audit runs them."""
    import ast

    from trilift.reports.base.explanations import declared

    source = (ROOT / "verify" / "audit" / "rules" / "__init__.py").read_text()
    order = next(
        ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ORDER"
    )
    return {name: declared()[name] for name in order}


# ---- the JSON schema -------------------------------------------------------------------------------------------------


def schema() -> str:
    """One table for each object of the schema, then the schema itself."""
    whole = json.loads(SCHEMA.read_text())
    parts = [_object("document", whole), *(_object(n, d) for n, d in whole["$defs"].items())]
    return (
        "# JSON\n\n"
        "`--format json` prints one object. Fields are only ever added; `schema` stays 1 as long as that is so.\n"
        "Fields in bold are always there.\n\n"
        + "\n\n".join(filter(None, parts))
        + '\n\n??? note "The schema itself (JSON Schema 2020-12)"\n\n    ```json\n'
        + "".join(f"    {line}\n" for line in SCHEMA.read_text().splitlines())
        + "    ```\n"
    )


def _object(name: str, part: Mapping[str, Any]) -> str:
    described = part.get("description", "")
    if "properties" not in part:
        values = ", ".join(f"`{json.dumps(v)}`" for v in part.get("enum", ()))
        return f"## {name}\n\n{_escaped(described)}\n\n{values}".rstrip()
    required = part.get("required", ())
    rows = [
        (f"**`{key}`**" if key in required else f"`{key}`", _type(value), _escaped(value.get("description", "")))
        for key, value in part["properties"].items()
    ]
    return f"## {name}\n\n{_escaped(described)}\n\n{table(('field', 'type', 'meaning'), rows)}"


def _type(value: Mapping[str, Any]) -> str:
    """The type of a field, with links to the objects that it names."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("allOf", "anyOf", "oneOf"):
        if key in value:
            return " or ".join(dict.fromkeys(filter(None, map(_type, value[key]))))
    if "const" in value or "enum" in value:
        return ", ".join(f"`{json.dumps(v)}`" for v in value.get("enum", [value.get("const")]))
    kinds = value.get("type", "")
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    inner = _type(value["items"]) if "items" in value else ""
    return " or ".join(f"list of {inner}" if n == "array" and inner else n for n in names)


# ---- Markdown --------------------------------------------------------------------------------------------------------


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_one_line(c) for c in line) + " |" for line in lines) + "\n"


def _one_line(cell: str) -> str:
    """A cell on one line; a | within code separates no columns, and would show the backslash."""
    parts = " ".join(cell.split()).split("`")
    return "`".join(part if k % 2 else part.replace("|", "\\|") for k, part in enumerate(parts))


def _cell(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(_code(str(v)) for v in value)
    return "" if value is None else _code(str(value))


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _escaped(text: str) -> str:
    """Text in which [tool.x] is no link and < no tag."""
    return text.replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*")


def _lists(nav: object) -> Iterator[list[Any]]:
    if isinstance(nav, list):
        yield nav
        for item in nav:
            yield from _lists(item)
    elif isinstance(nav, dict):
        for item in nav.values():
            yield from _lists(item)


def _printed(*arguments: str) -> str:
    """What a command prints."""
    from trilift.reports.cli import main

    done = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    if done.exit_code:
        raise RuntimeError(f"trilift {' '.join(arguments)} ends with {done.exit_code}: {done.output}")
    return done.output
