"""Sessions own what is remembered about terms: it goes when they end, ids are not used twice, nothing escapes them."""

from __future__ import annotations

import ast
import functools
import importlib
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilift.lift.interpreter.machine import is_const
from trilift.lift.language.parse import pattern
from trilift.lift.language.unfolding import unfold
from trilift.lift.runtime import session
from trilift.lift.runtime.session import EndedSession, Session, lengths
from trilift.lift.terms import construct as T
from trilift.lift.terms.skeleton import skeleton
from trilift.lift.terms.term import Axis, Term
from trilift.verify.integers import linear_forms
from trilift.verify.normal_form import poly as P
from trilift.verify.normal_form.poly import Poly

ROOT = Path(__file__).parents[2]
PACKAGES = ("lift", "verify", "superopt")
FILES = [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]
MODULES = {p.stem for p in FILES} | {p.parent.name for p in FILES}

CHECKER = "the checker's own terms: it imports nothing of trilift, and its process ends when the files are checked"
# Caches that outlive every session: no term goes in or out. Each by its reason.
PROCESS_CACHES = {
    "lift/capture/trace.py:_is_view": "what PyTorch says of an operation",
    "lift/pytorch/textbook.py:_default_eps": "a number that PyTorch takes",
    "lift/checker/polynomials.py:le": CHECKER,
    "lift/checker/polynomials.py:negated": CHECKER,
    "lift/interpreter/handlers/assembly.py:parse": "instructions of a text, bounded",
    "lift/interpreter/machine.py:machine": "a numpy type of an IR type, bounded",
    "lift/interpreter/machine.py:cell": "a name of an IR type, bounded",
    "lift/interpreter/machine.py:cell_type": "an IR type of a name, bounded",
    "lift/pytorch/aten/operator_row.py:_defaults": "defaults of parameters of the rows of a table",
    "lift/pytorch/host/global_state.py:chains": "names in a code object",
    "lift/pytorch/host/global_state.py:_bindings": "names that a file binds, as text",
    "lift/capture/places.py:place": "whose code a file is",
    "lift/capture/places.py:is_own": "whose code a file is",
    "lift/capture/texts.py:_spans": "lines of a file of the host function, once",
    "lift/pytorch/tracing.py:_decompositions": "PyTorch's table, once",
    "lift/simplify/egraph.py:rows": "the rules as text, once",
    "lift/simplify/egraph.py:bindings": "an extension module, once",
    "lift/terms/bits.py:cell_size": "bytes of a name, bounded",
    "lift/terms/constants.py:_table": "the constants that have names, once",
    "lift/ttir/attributes.py:type_of": "an IR type of a text, bounded",
    "lift/ttir/attributes.py:signature": "IR types of a text, bounded",
    "lift/ttir/attributes.py:operation": "attributes of a text, bounded",
    "lift/ttir/lower.py:_backend": "Triton's backend, once",
    "verify/audit/rules/__init__.py:rules": "the table of rules, once",
    "verify/fields/rational_constants.py:rational": "a fraction of a float, bounded",
}
REGISTRY = "a table of the program, filled while modules are imported"
STACK = "what is going on now: emptied where it ends"
# Containers of modules that functions write to and that outlive every session.
PROCESS_STATE = {
    "lift/capture/launches.py:_active": STACK,
    "lift/checker/polynomials.py:ATOMS": CHECKER,
    "lift/checker/polynomials.py:POLYS": CHECKER,
    "lift/checker/polynomials.py:_atom_table": CHECKER,
    "lift/checker/polynomials.py:_floats": CHECKER,
    "lift/checker/polynomials.py:_poly_table": CHECKER,
    "lift/replay/dtype_sight.py:_SEEN": "whether a function looks at its dtypes: gone with the function",
    "lift/capture/launches.py:asm": "never written to: what a compiled kernel has none of",
    "lift/capture/recorder.py:_active": STACK,
    "lift/interpreter/registry.py:HANDLERS": REGISTRY,
    "lift/runtime/budget.py:_LEDGER": "steps of each stage, for --debug: one entry for each stage",
    "lift/pytorch/host/host_run.py:L._active": STACK,
    "lift/runtime/budget.py:_LIMITS": STACK,
    "lift/runtime/session.py:_after": REGISTRY,
    "lift/runtime/session.py:_memos": REGISTRY,
    "lift/runtime/session.py:_open": STACK,
    "lift/runtime/session.py:_tables": REGISTRY,
    "lift/terms/domain.py:handlers": "never written to: a domain without handlers of its own",
    "lift/terms/index.py:_assumed": STACK,
    "lift/terms/meanings.py:DOMAINS": REGISTRY,
    "verify/integers/solver.py:_COUNTED": "one number: what z3 has counted in this process",
    "verify/normal_form/algebra.py:ANSWERS": REGISTRY,
    "verify/normal_form/poly.py:_BY_PRECISION": REGISTRY,
}


def test_what_a_session_made_is_gone_when_it_ends() -> None:
    before, memory = lengths(), dict(T.TERMS)
    with Session():
        t = pattern("softmax(i, a) + exp(b)")
        unfold(next(s for s in t.walk() if s.op == "softmax"))
        P.atom(t) + P.number(0.123)
        linear_forms.product(t.id, t.id)
        inside = lengths()
    grown = {name for name in before if inside[name] > before[name]}
    assert {"terms.by_id", "terms.made", "poly.by_id", "linear_forms.products"} <= grown
    assert "trilift.lift.language.parse.pattern" in grown
    assert {n: k for n, k in lengths().items() if "." in n and n.islower() and k > before[n]} == {}
    assert memory == T.TERMS


def test_no_id_is_used_twice() -> None:
    def ids() -> tuple[set[int], set[int], set[int], set[int]]:
        with Session():
            x, y = T.size("X of a session"), T.size("Y of a session")
            p = P.atom(x) + P.atom(y)
            return {x.id, y.id, (x + y).id}, {p.id}, {linear_forms.product(x.id, y.id)}, {skeleton(T.recip(x + y))}

    for first, second in zip(ids(), ids(), strict=True):
        assert not first & second


def test_a_session_inside_another_knows_its_terms_and_leaves_it_as_it_was() -> None:
    with Session() as outer:
        x = T.size("X of a session")
        y = x + 3
        p = P.atom(x) + P.number(0.1234567891234)
        known, terms = lengths(), dict(T.TERMS)
        with Session():
            assert T.size("X of a session") is x and x + 3 is y
            assert P.atom(x) + P.number(0.1234567891234) is p
            assert T.TERMS[(x + 4).id] is x + 4
            with Session():
                assert T.size("X of a session") is x
        assert terms == T.TERMS and lengths()["poly.constants"] == known["poly.constants"]
        assert x + 3 is y and T.TERMS[y.id] is y
        outer.drop()
        with pytest.raises(EndedSession):
            x + 3


def test_a_term_of_an_ended_session_has_its_text_and_makes_no_other() -> None:
    with Session():
        x = T.size("X of a session")
        over = Axis("i", x)
        y = T.recip(x)
    assert repr(y) == "recip(X of a session)"
    with pytest.raises(EndedSession, match=r"a term recip\(\.\.\.\)"):
        y + 1
    for make in (lambda: x + 1, lambda: T.make("exp", x), lambda: T.axis(over), lambda: T.fold("sum", over, 1)):
        with pytest.raises(EndedSession, match="X of a session|size of the axis i"):
            make()
    with pytest.raises(KeyError):
        T.TERMS[x.id]
    assert T.size("X of a session") is not x


def test_a_pinned_term_outlives_the_session_that_it_was_made_in() -> None:
    with Session():
        with Session():
            t = T.pinned(T.fold("sum", Axis("i", T.size("pinned in a test")), 2))
            T.size("young")
        assert T.fold("sum", Axis("i", T.size("pinned in a test")), 2) is t and T.TERMS[t.id] is t
    assert T.fold("sum", Axis("i", T.size("pinned in a test")), 2) is t


def test_a_polynomial_of_outside_keeps_no_term_of_inside() -> None:
    with Session():
        p = P.atom(T.size("X of a session")) + P.atom(T.size("Y of a session"))
        with Session():
            inside = p.term
        assert p.term is not inside and T.TERMS[p.term.id] is p.term


def test_flags_of_constants_follow_the_terms() -> None:
    def right() -> bool:
        terms = list(T.TERMS.values())
        return list(is_const[np.array([t.id for t in terms], np.int32)]) == [t.op == "const" for t in terms]

    with Session():
        for k in range(5000):
            T.const(k + 10**6)
        assert right()
        with Session():
            T.size("X of a session")
            T.const(10**7)
            assert right()
        T.const(10**8)
        assert right()
        T.size("Y of a session")
        T.const(10**9)
        assert right()
    assert right()


def test_sessions_end_in_order() -> None:
    with Session() as outer:
        with pytest.raises(RuntimeError, match="open already"), outer:
            pass
        with Session():
            with pytest.raises(RuntimeError, match="reverse"):
                outer.__exit__(None, None, None)
            with pytest.raises(RuntimeError, match="innermost"):
                outer.drop()


def test_outside_of_sessions_all_but_what_is_pinned_is_dropped() -> None:
    """In a process of its own: tests have cases that know terms."""
    script = """
from trilift.lift.runtime import session
from trilift.lift.terms import construct as T
from trilift.verify.normal_form import algebra, poly
from trilift.verify.execution.tile import ZERO
pinned = {t.name: len(t.pinned) for t in session._tables if t.pinned}
poly.atom(T.size("N") + 1)
session.drop()
assert {n: k for n, k in session.lengths().items() if k} == pinned, session.lengths()
assert ZERO is T.const(0) and T.size("*") is algebra.ALL and poly.number(1) is poly.ONE
assert (T.size("N") + 1).id > max(t.id for t in session._tables[0].pinned.values())
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


# ---- kernels ---------------------------------------------------------------------------------------------------------


def _found(case: Any) -> str:
    """Formulas, verdicts and contracts as text."""
    from trilift.lift import lift
    from trilift.verify import prove

    with Session():
        formulas = [str(o.formula) for o in lift(case).outputs]
        return "\n".join([*formulas, *(f"{p.verdict} {[c.text for c in p.contract]}" for p in prove(case))])


def test_two_sessions_find_the_same() -> None:
    from trilift.corpus.operators.softmax import softmax1

    first, size = _found(softmax1), sum(lengths().values())
    assert "softmax" in first and "PROVED" in first
    assert _found(softmax1) == first and sum(lengths().values()) == size


def test_twenty_sessions_do_not_grow() -> None:
    from trilift.corpus.operators.unary import exp
    from trilift.lift import lift

    inside, after = [], []
    for _ in range(20):
        with Session():
            lift(exp)
            inside.append(sum(lengths().values()))
        after.append(sum(lengths().values()))
    assert len(set(after)) == 1 and max(inside[1:]) <= 1.01 * min(inside[1:])


# ---- who remembers what ----------------------------------------------------------------------------------------------

WRITES = {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove",
          "setdefault", "update"}  # fmt: skip
CONTAINERS = {"dict", "list", "set", "defaultdict", "deque", "Counter", "OrderedDict", "WeakKeyDictionary", "WeakSet",
              "WeakValueDictionary"}  # fmt: skip


def caches(tree: ast.Module) -> Iterator[str]:
    """Names of functions that functools remembers for as long as the process lives; `?` for a call of it. What is
    made within a function ends with it."""
    for node in _outside_functions(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(_last(d) in ("cache", "lru_cache") for d in node.decorator_list):
                yield node.name
        elif isinstance(node, ast.Call) and _last(node.func) in ("cache", "lru_cache"):
            yield "?"


def states(tree: ast.Module) -> Iterator[str]:
    """Names of containers, of this module or `module.NAME` of another, that functions write to; `global NAME`; and
    empty containers in the body of a class."""
    own = {n for s in tree.body for n in _containers(s)}
    imported = {(a.asname or a.name): a.name for s in tree.body if isinstance(s, ast.ImportFrom) for a in s.names}
    modules = {here for here, there in imported.items() if there in MODULES}  # T.add(x) writes to nothing
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)):
        names = {w for w in map(_written, ast.walk(function)) if w in own or w.split(".")[0] in imported} - modules
        yield from (n for n in sorted(names) if n.split(".")[0] not in _bound(function))
        yield from (f"global {n}" for s in ast.walk(function) if isinstance(s, ast.Global) for n in s.names)
    for body in (n.body for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        yield from (n for s in body for n in _containers(s) if not ast.unparse(s).endswith("_fields_"))


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(tree):
        yield child
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield from _outside_functions(child)


def _last(e: ast.expr) -> str:
    """cache of functools.cache, and lru_cache of lru_cache(100)."""
    return ast.unparse(e.func if isinstance(e, ast.Call) else e).split(".")[-1]


def _containers(s: ast.stmt) -> list[str]:
    """The names that a statement binds to a dict, list or set which is no session's."""
    if not isinstance(s, ast.Assign | ast.AnnAssign) or s.value is None:
        return []
    made = isinstance(s.value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp)
    if not (made or (isinstance(s.value, ast.Call) and _last(s.value) in CONTAINERS)):
        return []
    return [t.id for t in (s.targets if isinstance(s, ast.Assign) else [s.target]) if isinstance(t, ast.Name)]


def _written(n: ast.AST) -> str:
    """The container that a node of a program writes to, by name or module.name; "" for none."""
    if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store | ast.Del):
        return _name(n.value)
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in WRITES:
        return _name(n.func.value)
    if isinstance(n, ast.Call) and _last(n.func) in ("insort", "heappush") and n.args:
        return _name(n.args[0])
    return ""


def _name(e: ast.expr) -> str:
    if isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name):
        return f"{e.value.id}.{e.attr}"
    return e.id if isinstance(e, ast.Name) else ""


def _bound(f: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Names that are the function's own."""
    a = f.args
    names = {x.arg for x in (*a.args, *a.posonlyargs, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))}
    return names | {n.id for n in ast.walk(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _everywhere(find: Callable[[ast.Module], Iterator[str]]) -> set[str]:
    return {f"{p.relative_to(ROOT)}:{name}" for p in FILES for name in find(_tree(p))}


@functools.cache
def _tree(p: Path) -> ast.Module:
    return ast.parse(p.read_text())


def test_every_cache_is_a_session_s_or_has_its_reason() -> None:
    """Write `@memo` of lift.runtime.session for functions of terms; else add the cache with its reason."""
    assert _everywhere(caches) == set(PROCESS_CACHES)


def test_every_container_that_functions_write_to_is_a_session_s_or_has_its_reason() -> None:
    """Write `NAME = table("module.name", {})` for what depends on terms; else add the container with its reason."""
    assert _everywhere(states) == set(PROCESS_STATE)


def test_a_memo_would_be_seen() -> None:
    found = lambda find, text: list(find(ast.parse(text)))  # noqa: E731
    assert found(caches, "@functools.lru_cache(maxsize=3)\ndef f(x): return x\ng = cache(f)") == ["f", "?"]
    assert found(caches, "class A:\n    @cache\n    def f(self): return 1") == ["f"]
    assert found(caches, "def f():\n    @cache\n    def g(x): return x\n    return g") == []
    assert found(states, "M: dict[int, int] = {}\ndef f(x): M[x] = 1") == ["M"]
    assert found(states, "M = []\ndef f(x): insort(M, x)") == ["M"]
    assert found(states, "from . import term as T\ndef f(x): T.MEMO.setdefault(x, 1)") == ["T.MEMO"]
    assert found(states, "from .term import MEMO\ndef f(x): MEMO[x] = 1") == ["MEMO"]
    assert found(states, "def f(x):\n    global last\n    last = x") == ["global last"]
    assert found(states, "class A:\n    memo = {}") == ["memo"]
    assert found(states, "M = table('m', {})\ndef f(x): M[x] = 1") == []
    assert found(states, "M = {1: 2}\ndef f(M): M[1] = 3\ndef g():\n    M = {}\n    M[1] = 2") == []


def test_names_of_tables_are_different() -> None:
    names = [t.name for t in session._tables] + [m.name for m in session._memos]
    assert len(names) == len(set(names))


# ---- terms that modules hold -----------------------------------------------------------------------------------------


def held(x: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Term | Poly]]:
    """The terms and polynomials that can be reached from an object of a module, each with its path."""
    if isinstance(x, Term | Poly):
        yield path, x
    elif id(x) not in seen:
        seen.add(id(x))
        for name, part in _parts(x):
            yield from held(part, f"{path}{name}", seen)


def _parts(x: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(x, Mapping):
        yield from ((f"[{str(k)[:40]}]", part) for k, v in list(x.items()) for part in (k, v))
    elif isinstance(x, list | tuple | set | frozenset):
        yield from ((f"[{k}]", v) for k, v in enumerate(x))
    elif isinstance(x, functools.partial):
        yield from ((".partial", v) for v in (x.func, x.args, x.keywords))
    elif isinstance(x, types.FunctionType):
        cells = [c.cell_contents for c in x.__closure__ or () if c != types.CellType()]
        yield from (("()", v) for v in (x.__defaults__, x.__kwdefaults__, cells))
    elif getattr(x if isinstance(x, type) else type(x), "__module__", "").startswith("trilift."):
        yield from ((f".{k}", v) for k, v in [*getattr(x, "__dict__", {}).items(), *_slots(x)])


def _slots(x: Any) -> Iterator[tuple[str, Any]]:
    for c in type(x).__mro__:
        yield from ((k, getattr(x, k)) for k in getattr(c, "__slots__", ()) if hasattr(x, k))


def _modules() -> list[types.ModuleType]:
    """All of our modules, but the one that sets up a fork server."""
    names = (".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for p in FILES)
    return [importlib.import_module(f"trilift.{n}") for n in names if not n.endswith("preload")]


def test_the_terms_that_modules_hold_are_pinned() -> None:
    """Of a constant of a module write `T.pinned(...)`, or make it where it is used."""
    modules = _modules()
    tables = {id(t.contents) for t in session._tables}
    pinned = {id(v) for t in session._tables for v in t.pinned.values()}
    constants = [(m, k, v) for m in modules if m is not session for k, v in vars(m).items() if id(v) not in tables]
    found = [(m.__name__, path, x) for m, k, v in constants for path, x in held(v, k, set(tables))]
    assert len(found) > 100 and [f for f in found if id(f[2]) not in pinned] == []


def test_a_term_that_a_module_holds_would_be_seen() -> None:
    t = T.size("X of a test")
    for x in (t, [t], {1: (t,)}, {t: 1}, Axis("i", t), functools.partial(repr, t), lambda: t):
        assert [found for _, found in held(x, "x", set())] == [t]
