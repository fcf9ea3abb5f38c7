"""The globals, closures, and attributes of modules and classes that a kernel and the functions that it calls read, at
one time.

Triton reads them when it compiles a kernel. Launches are lowered later than they are made, when the host function may
have set them to something else: `taken` notes them at the launch, and inside `Scope.restored` they are as they were.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from textwrap import dedent
from types import CellType, ModuleType
from typing import TYPE_CHECKING, TypeGuard

from ..errors import Place, Unsupported
from ..runtime.session import memo

if TYPE_CHECKING:
    from triton.language.core import constexpr
    from triton.runtime.jit import JITFunction

Space = dict[str, object] | CellType | type
Chain = tuple[str, ...]  # a name, and the attributes that are read from it
PLAIN = (bool, int, float, complex, str, bytes, type(None))
CONTAINERS = (list, tuple, dict, set, frozenset)
LIBRARIES = ("triton", "torch", "numpy")  # and Python's own: what they hold, a host function does not change
STDLIB = os.path.dirname(os.__file__)
BUILTINS = frozenset(vars(builtins))  # a reading of a host function puts some of these into its module
ABSENT = object()
DESCRIBED = ("triton.language", "torch.dtype")  # whose repr says all


@dataclass(frozen=True, eq=False, slots=True)
class Held:
    """One name in a dictionary, a closure's cell or a class, and what it held. `owner`: the function that reads it.
    `text`: the content that it reads; None where it reads attributes alone, or it is a function: it is the same where
    the object is."""

    owner: JITFunction
    space: Space
    name: str
    value: object
    text: str | None

    def now(self) -> object:
        if isinstance(self.space, CellType):
            return _content(self.space)
        return (self.space if isinstance(self.space, dict) else vars(self.space)).get(self.name, ABSENT)

    def is_as_it_was(self) -> bool:
        now = self.now()
        return now is self.value if self.text is None else _text(now) == self.text

    def put(self, value: object) -> None:
        if isinstance(self.space, CellType):
            if value is ABSENT:
                del self.space.cell_contents
            else:
                self.space.cell_contents = value
        elif isinstance(self.space, dict):
            if value is ABSENT:
                self.space.pop(self.name, None)
            else:
                self.space[self.name] = value
        elif value is ABSENT:
            delattr(self.space, self.name)
        else:
            setattr(self.space, self.name, value)

    @property
    def content(self) -> tuple[str, int | str]:
        """The name with what tells its values apart while they live."""
        return self.name, id(self.value) if self.text is None else self.text


@dataclass(frozen=True, eq=False, slots=True)
class Scope:
    """All that a kernel reads. `functions`: itself and those that it calls or gets; `key` is equal for equal content,
    `own` is its part without what comes with functions that are arguments."""

    functions: tuple[JITFunction, ...] = ()
    held: tuple[Held, ...] = ()
    key: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """The context in which everything is as it was. Raises Unsupported where an object itself was changed."""
        changed = [(h, h.now()) for h in self.held if not h.is_as_it_was()]
        try:
            for h, _ in changed:
                h.put(h.value)
            for h in (h for h, _ in changed if not h.is_as_it_was()):
                code = h.owner.fn.__code__
                place = Place(code.co_filename, code.co_firstlineno)
                raise Unsupported(f"{h.name}, which {code.co_name} reads, was changed in place after a launch", place)
            yield
        finally:
            for h, now in changed:
                h.put(now)

    def forget(self) -> None:
        """Triton keeps what it has once read of each function: it is to read that again."""
        for f in self.functions:
            f.hash = None

    def other_than(self, earlier: Scope) -> str:
        """A name that a function reads which both have, and that is something else here; empty where all are equal."""
        before = {(id(h.owner), id(h.space), h.name): h.content for h in earlier.held}
        changed = (h.name for h in self.held if before.get((id(h.owner), id(h.space), h.name), h.content) != h.content)
        return next(changed, "")


def taken(kernel: JITFunction, arguments: Iterable[object] = ()) -> Scope:
    """All that a JITFunction reads now, and with it the functions among its compile-time arguments."""
    walk = _Walk()
    walk.function(kernel)
    own = tuple(walk.key)
    for f in arguments:
        if _is_jitted(f):
            walk.key.append(walk.function(f))
    return Scope(tuple(walk.functions.values()), tuple(walk.held), tuple(walk.key), own)


class _Walk:
    """The functions in the order in which they are met, each once."""

    def __init__(self) -> None:
        self.functions: dict[int, JITFunction] = {}
        self.held: list[Held] = []
        self.key: list[str] = []

    def function(self, f: JITFunction) -> str:
        """Walks a function; gives its name in this walk."""
        if id(f) not in self.functions:
            self.functions[id(f)] = f
            source = f.src
            self.key += [f.fn.__code__.co_filename, str(f.starting_line_number), str(getattr(f, "noinline", False))]
            self.key.append(source)
            cells = dict(zip(f.fn.__code__.co_freevars, f.fn.__closure__ or (), strict=True))
            for chain in _read(source):
                space = cells.get(chain[0], f.fn.__globals__)
                value = _content(space) if chain[0] in cells else space.get(chain[0], ABSENT)
                if chain[0] not in BUILTINS or _is_jitted(value) or _is_constexpr(value):
                    self.name(f, space, chain, value)
        return f"function {list(self.functions).index(id(f))}"

    def name(self, owner: JITFunction, space: Space, chain: Chain, value: object) -> None:
        """Notes what the first name of a chain holds, and follows the others, which are its attributes."""
        name, rest = chain[0], chain[1:]
        inner = value.value if _is_constexpr(value) else value
        if _is_constexpr(value) and rest[:1] == ("value",):
            rest = rest[1:]
        found = _attribute(inner, rest[0]) if rest and not _is_of_library(inner) else None
        text = _text(value) if found is None else ""
        compared = text if found is None and not _is_jitted(inner) else None
        self.held.append(Held(owner, space, name, value, compared))
        self.key += [name, text]
        if _is_constexpr(value):
            self.held.append(Held(owner, vars(value), "value", inner, None if compared is None else _text(inner)))
        if _is_jitted(inner):
            if not _is_of_library(inner.fn):
                self.key.append(self.function(inner))
        elif getattr(inner, "__triton_aggregate__", False):
            self.key.append(str(inner.__annotations__))
            self.key += [self.function(f) for f in getattr(inner, "hash_attrs", ()) if _is_jitted(f)]
        if found is not None:
            self.name(owner, found[0], rest, found[1])


def _attribute(of: object, name: str) -> tuple[Space, object] | None:
    """Where a module, a class or an object has an attribute, and what it is; None of what a method computes."""
    own = getattr(of, "__dict__", {})
    if not isinstance(of, type) and name in own:
        return own, own[name]
    for base in (of if isinstance(of, type) else type(of)).__mro__:
        if name in vars(base):
            value = vars(base)[name]
            return None if hasattr(type(value), "__get__") and not _is_jitted(value) else (base, value)
    return None


@memo
def _read(source: str) -> tuple[Chain, ...]:
    """The names that the source of a function reads beside its parameters, each with the attributes that follow it."""
    tree = ast.parse(dedent(source))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    taken = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    found: set[Chain] = set()
    inside: set[int] = set()
    for n in ast.walk(tree):  # the outermost first
        chain = _chain(n) if id(n) not in inside else ()
        if chain:
            inside |= {id(part) for part in ast.walk(n)}
            found.add(chain)
    defaults = {_chain(d)[:1] for d in (*function.args.defaults, *function.args.kw_defaults) if d is not None}
    return tuple(sorted(c for c in found if c[0] not in taken or c[:1] in defaults))


def _chain(n: ast.AST) -> Chain:
    """a.b.c as ("a", "b", "c"); empty of anything else."""
    attributes: Chain = ()
    while isinstance(n, ast.Attribute):
        attributes, n = (n.attr, *attributes), n.value
    return (n.id, *attributes) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) else ()


def _content(cell: CellType) -> object:
    with suppress(ValueError):  # it is empty
        return cell.cell_contents  # type: ignore[no-any-return]
    return ABSENT


def _text(value: object, inside: tuple[int, ...] = ()) -> str:
    """Tells a value from others where the compiler reads it; of a library's object that it does not read, the type."""
    if id(value) in inside:
        return "..."
    part = lambda x: _text(x, (*inside, id(value)))  # noqa: E731
    if _is_constexpr(value):
        return f"constexpr {part(value.value)}"
    if isinstance(value, CONTAINERS):
        parts: Iterable[object] = value.items() if isinstance(value, dict) else value
        return f"{type(value).__name__}({', '.join(map(part, parts))})"
    if isinstance(value, (*PLAIN, Enum)):
        return f"{value.__class__.__name__} {value!r}"
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if _is_jitted(value):
        return f"{value.fn.__module__}.{value.fn.__qualname__}"
    named = value if hasattr(value, "__qualname__") else type(value)
    name = f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', '')}"
    if _is_of_library(named):
        return f"{name} {value!r}" if named is not value and name.startswith(DESCRIBED) else name
    said = (*PLAIN, *CONTAINERS, Enum) if named is value else object
    attributes = {k: v for k, v in getattr(value, "__dict__", {}).items() if isinstance(v, said) or _is_constexpr(v)}
    return f"{name}({', '.join(f'{k}={part(v)}' for k, v in attributes.items() if not k.startswith('__'))})"


def _is_constexpr(value: object) -> TypeGuard[constexpr]:
    from triton.language.core import constexpr

    return isinstance(value, constexpr)


def _is_jitted(value: object) -> TypeGuard[JITFunction]:
    """Whether Triton compiles a function, or runs it while it compiles."""
    return hasattr(type(value), "cache_key") and hasattr(value, "fn") and hasattr(value, "src")


def _is_of_library(value: object) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    top = str(name).partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None) or STDLIB
    return top in LIBRARIES or (top in sys.stdlib_module_names and file.startswith(STDLIB))
