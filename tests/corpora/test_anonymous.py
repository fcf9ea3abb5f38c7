"""Names tell nothing: kernels of the corpus under names of one letter have the same formulas and verdicts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from trilift.lift import lift
from trilift.lift.capture.case_files import load
from trilift.lift.printers.text import text
from trilift.verify import prove

OPERATORS = Path(__file__).parents[2] / "corpus" / "operators"


def anonymous(source: str) -> tuple[str, dict[str, str]]:
    """The file with other names for its functions and for the parameters of its kernels, comments and docstrings left
    out; new name of each function."""
    tree = ast.parse(source)
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name != "_"]
    kernels = [f for f in functions if any("jit" in ast.unparse(d) for d in f.decorator_list)]
    parameters = {a.arg for f in kernels for a in f.args.args if a.arg not in ("BLOCK",)}
    hosts = {a.arg for f in functions if f not in kernels for a in f.args.args}
    keywords = {k.arg for n in ast.walk(tree) if isinstance(n, ast.Call) for k in n.keywords}
    found = {f.name: f"fn{k}q" for k, f in enumerate(functions)}
    found |= {p: f"pt{k}q" for k, p in enumerate(sorted(parameters - hosts - keywords)) if p.endswith("_ptr")}
    plain = ast.unparse(tree)
    return re.sub(r"\b(" + "|".join(sorted(found, key=len, reverse=True)) + r")\b", lambda m: found[m[1]], plain), found


@pytest.mark.parametrize(("file", "name"), [("softmax.py", "softmax2"), ("layer_norm.py", "layer_norm")])
def test_the_same_under_other_names(file: str, name: str, tmp_path: Path) -> None:
    source = (OPERATORS / file).read_text()
    other, names = anonymous(source)
    assert names[name] not in source and name not in re.findall(r"\w+", other)
    (tmp_path / "anonymous.py").write_text(other)
    (known,) = load(str(OPERATORS / file), [name])
    (unknown,) = load(str(tmp_path / "anonymous.py"), [names[name]])
    formulas = [[text(o.formula) for o in lift(c, 0).outputs if o.formula is not None] for c in (known, unknown)]
    assert formulas[0] == formulas[1] != []
    assert [p.verdict.value for p in prove(unknown)] == [p.verdict.value for p in prove(known)] == ["PROVED"]
