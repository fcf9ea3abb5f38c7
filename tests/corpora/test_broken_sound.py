"""corpus/broken says which rule must fire and where; its twins in corpus/sound, and the controls, are right."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("helpers", "kernels")]
from operators import ROOT, cases, names  # noqa: E402

BROKEN = sorted((ROOT / "corpus" / "broken").glob("[!_]*.py"))
SOUND = sorted((ROOT / "corpus" / "sound").glob("[!_]*.py"))
EXPECT = re.compile(r"# expect: (?P<rule>[a-z0-9-]+) at line (?P<line>[0-9]+)")
GROUPS = 2  # child processes, because the interpreter is chosen before triton is imported
SHORT, LONG = (1, 2, 3, 5, 7, 16), (20, 37, 70, 130)
ELEMENTS = 1_500  # of all inputs together: the interpreter is slow
NOT_INTERPRETED: dict[str, str] = {}  # case: why the interpreter cannot run it, which is checked too


def expectations(path: Path) -> list[tuple[str, int]]:
    """The rules and lines that the first comment lines name."""
    found: list[tuple[str, int]] = []
    for line in path.read_text().splitlines():
        match = EXPECT.fullmatch(line)
        if match is None:
            return found
        found.append((match["rule"], int(match["line"])))
    return found


def lines_of_code(path: Path) -> set[int]:
    """The lines of decorators, of assignments, and of statements inside functions; docstrings and comments are none."""
    tree = ast.parse(path.read_text())
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    code = [n for f in functions for n in (*f.decorator_list, *f.body)]
    code += [s for s in tree.body if isinstance(s, ast.Assign)]
    docstrings = [s for s in code if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)]
    comments = {k for k, text in enumerate(path.read_text().splitlines(), 1) if re.match(r"\s*(#|$)", text)}
    return _span(code) - _span(docstrings) - comments


def _span(nodes: list[Any]) -> set[int]:
    return {k for n in nodes for k in range(n.lineno, (n.end_lineno or n.lineno) + 1)}


@pytest.mark.parametrize("path", BROKEN, ids=lambda p: p.stem)
def test_expectations_name_a_rule_and_a_line_of_code(path: Path) -> None:
    from trilift.verify.audit.rules import ORDER

    expected = expectations(path)
    assert expected, "the first line must be `# expect: RULE at line L`"
    assert path.read_text().count("# expect:") == len(expected) == len(set(expected))
    assert {rule for rule, _ in expected} <= set(ORDER)
    assert {line for _, line in expected} <= lines_of_code(path)


@pytest.mark.parametrize("path", [*BROKEN, *SOUND], ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_file_says_in_a_docstring_what_it_shows(path: Path) -> None:
    text = path.read_text()
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring is not None and docstring.endswith(".")
    if path.parent.name == "sound":
        assert text.startswith('# sound\n"""') and "# expect" not in text


def test_every_broken_file_has_a_sound_twin_and_the_rest_are_controls() -> None:
    broken, sound = ({f.name for f in files} for files in (BROKEN, SOUND))
    assert broken
    assert not broken - sound
    assert all(name.startswith("control_") for name in sound - broken)


@pytest.mark.parametrize("path", BROKEN, ids=lambda p: p.stem)
def test_a_twin_has_the_same_case_and_another_text(path: Path) -> None:
    twin = ROOT / "corpus" / "sound" / path.name
    assert names(path) == names(twin)
    assert [ast.dump(t) for t in ast.parse(path.read_text()).body[1:]] != [
        ast.dump(t) for t in ast.parse(twin.read_text()).body[1:]
    ]


def test_every_file_has_one_case() -> None:
    found = {f: cases(f) for f in [*BROKEN, *SOUND]}
    assert {f.stem: len(c) for f, c in found.items() if len(c) != 1} == {}


def shapes(c: Any) -> list[dict[str, int | float]]:
    """Sizes that the case allows and that are cheap to interpret: each dim is long once, the others are short."""
    import numpy as np

    rng = np.random.default_rng(7)
    return [found for long in c.names for found in _allowed(c, long, rng)]


def _allowed(c: Any, long: str, rng: Any) -> Iterator[dict[str, int | float]]:
    """One shape, or none if none of many is allowed."""
    for _ in range(1000):
        dims = numbers(c, {n: int(rng.choice(LONG if n == long else SHORT)) for n in c.names})
        if c.holds(dims) and elements(c, dims) <= ELEMENTS:
            yield dims
            return


def elements(c: Any, dims: dict[str, int | float]) -> int:
    """Of all inputs; as many again are allowed for what the host function makes of two sizes."""
    import math

    sizes = [int(dims[n]) for n in c.names]
    pairs = max((a * b for k, a in enumerate(sizes) for b in sizes[k + 1 :]), default=0)
    return max(pairs, sum(math.prod(c.shape(t, dims)) for t in c.tensors))


def numbers(c: Any, dims: dict[str, int | float]) -> dict[str, int | float]:
    """The dims with a number for each scalar, inside its limits."""
    from trilift.lift.terms.fit import value

    out = dict(dims)
    for name, s in c.scalars.items():
        low, high = (None if e is None else value(e, dims) for e in (s.low, s.high))
        if s.is_float:
            out[name] = 0.5 if low is None or high is None else (low + high) / 2
        else:
            out[name] = 7 if low is None or high is None else int(low + high) // 2
    return out


def outcomes(path: Path) -> list[dict[str, Any]]:
    """In the child: for every case, shape and autotune configuration, the deviation from the reference or the error."""
    from test_operators_reference import run_case

    tried = [(c, shape) for c in cases(path) if c.reference for shape in shapes(c)]
    return [r for c, shape in tried for r in run_case(c, shape)]


@pytest.mark.parametrize("group", range(GROUPS))
def test_sound_kernels_equal_their_references_in_the_interpreter(group: int) -> None:
    files = SOUND[group::GROUPS]
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *map(str, files)]
    child = subprocess.run(command, env=env, capture_output=True, text=True, timeout=400)
    assert child.returncode == 0, child.stderr[-2000:]
    records = json.loads(child.stdout.splitlines()[-1])
    assert {r["case"] for r in records} == {n for f in files for n in names(f) if _has_reference(f)}
    wrong = [r for r in records if r["case"] not in NOT_INTERPRETED and not r.get("deviation", 2) < 1]
    assert not wrong, wrong[:3]
    unexpected = {r["case"] for r in records if r["case"] in NOT_INTERPRETED and "error" not in r}
    assert not unexpected, f"the interpreter runs {unexpected} now: take it off the list"


def _has_reference(path: Path) -> bool:
    return ".reference" in path.read_text()


if __name__ == "__main__":
    from interpreted import Configs

    Configs.install()
    print(json.dumps([r for f in sys.argv[1:] for r in outcomes(Path(f))]))
