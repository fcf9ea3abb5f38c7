"""The globals, closures, and attributes of modules and classes that a kernel and the functions that it calls read, at
one time.

Triton reads them when it compiles a kernel. Launches are lowered later than they are made, when the host function may
have set them to something else: `taken` notes them at the launch, and inside `Scope.restored` they are as they were.
An object whose content is not known exactly, as one that computes its attributes, is refused.
"""

from __future__ import annotations

import ast
import builtins
import copy
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, EnumMeta
from fractions import Fraction
from inspect import getsource
from textwrap import dedent
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, NoReturn, TypeGuard

from ..errors import Place, Unsupported
from ..runtime.session import memo, table

if TYPE_CHECKING:
    from triton.language.core import constexpr
    from triton.runtime.jit import JITFunction

Space = dict[str, object] | CellType | type
Names = dict[tuple[int, int, str], "Held"]  # by function, dictionary and name
Chain = tuple[str, ...]  # a name, and the attributes that are read from it
PLAIN: tuple[type, ...] = (bool, int, float, complex, str, bytes, type(None))
EXACT = (range, Fraction)  # whose repr says all, as that of types
CONTAINERS: tuple[type, ...] = (list, tuple, dict, set, frozenset)
MANY = 5000  # parts of a value that are looked at
ASKING = {"getattr", "hasattr", "globals", "eval", "exec", "vars", "open", "__import__", "environ", "getenv",
          "modules"}  # fmt: skip  # for what no name says
LIBRARIES = ("triton", "torch", "numpy", "trilift")  # and Python's own: what they hold, a host function does not change
STDLIB = os.path.dirname(os.__file__)
BUILTINS = frozenset(vars(builtins))  # a reading of a host function puts some of these into its module
ABSENT = object()
_KEPT: dict[int, object] = table("kernel_globals.kept", {})  # objects that are told by their id, which stays theirs
UNREAD = {"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__match_args__"}


@dataclass(frozen=True, eq=False, slots=True)
class Held:
    """One name in a dictionary, a closure's cell or a class, and what it held. `owner`: the function that reads it.
    `text`: the content that it reads; None where it reads attributes alone, or it is a function: it is the same where
    the object is."""

    owner: FunctionType
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
        return now is self.value if self.text is None else content(now) == self.text

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
    `own` is its part without what comes with functions that are arguments; `arguments`: the compile-time ones."""

    functions: tuple[JITFunction | FunctionType, ...] = ()
    held: tuple[Held, ...] = ()
    key: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    arguments: Mapping[str, object] = field(default_factory=dict)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """The context in which everything is as it was. Raises Unsupported where an object itself was changed."""
        changed = [(h, h.now()) for h in self.held if not h.is_as_it_was()]
        try:
            for h, _ in changed:
                h.put(h.value)
            for h in (h for h, _ in changed if not h.is_as_it_was()):
                code = h.owner.__code__
                place = Place(code.co_filename, code.co_firstlineno)
                raise Unsupported(f"{h.name}, which {code.co_name} reads, was changed in place after a launch", place)
            yield
        finally:
            for h, now in changed:
                h.put(now)

    @contextmanager
    def forgotten(self) -> Iterator[None]:
        """The context in which Triton reads each function again. Its earlier readings are put back at the end: the host
        function may have asked for one, with a kernel that is the key of a dictionary."""
        kept = [(f, f.hash, f.used_global_vals) for f in self.functions if not isinstance(f, FunctionType)]
        for f, _, _ in kept:
            f.hash = None
        try:
            yield
        finally:
            for f, key, read in kept:
                f.hash, f.used_global_vals = key, read

    def changed(self, earlier: Names) -> str:
        """A name that was something else at an earlier launch; empty where there is none. The others are noted."""
        for h in (h for h in self.held if h.space is not self.arguments):
            first = earlier.setdefault((id(h.owner), id(h.space), h.name), h)
            same_for_triton = first.text is h.text is None and not _differs(h.value, first.value)
            if first.content != h.content and not same_for_triton:
                return h.name
        return ""


def taken(kernel: JITFunction, arguments: Mapping[str | tuple[int, ...], object]) -> Scope:
    """All that a JITFunction reads now, and its compile-time arguments. Raises Unsupported for one that is not known
    exactly."""
    walk = _Walk()
    walk.function(kernel)
    _check_kept(walk.functions.values())
    own = tuple(walk.key)
    given: dict[str, object] = {}
    for path, value in arguments.items():
        name = path if isinstance(path, str) else ".".join([kernel.arg_names[path[0]], *map(str, path[1:])])
        given[name] = value
        walk.value(kernel.fn, given, (name,), value)
    return Scope(tuple(walk.functions.values()), tuple(walk.held), tuple(walk.key), own, given)


class _Walk:
    """The functions in the order in which they are met, each once."""

    def __init__(self) -> None:
        self.functions: dict[int, JITFunction | FunctionType] = {}
        self.held: list[Held] = []
        self.key: list[str] = []

    def function(self, f: JITFunction | FunctionType) -> str:
        """Walks a function, or one of Python that runs while a kernel is compiled; gives its name in this walk."""
        if id(f) not in self.functions:
            self.functions[id(f)] = f
            fn: FunctionType = _unwrapped(f) if isinstance(f, FunctionType) else f.fn
            code, runs = fn.__code__, isinstance(f, FunctionType) or not hasattr(f, "run")
            source = _source(fn if isinstance(f, FunctionType) else f)
            reads = _read(source)
            if reads is None or (runs and (ASKING & set(code.co_names) or "import " in source)):
                raise _unknown(fn, "what it imports or asks for by name")
            self.key += [code.co_filename, str(code.co_firstlineno), str(getattr(f, "noinline", False)), source]
            self.key += [self.known(fn, "a default value", v) for v in _defaults(fn)]
            cells = dict(zip(code.co_freevars, fn.__closure__ or (), strict=True))
            for chain in reads:
                cell = cells.get(chain[0])
                space: Space = fn.__globals__ if cell is None else cell
                value = fn.__globals__.get(chain[0], ABSENT) if cell is None else _content(cell)
                local = chain[0] in code.co_varnames if runs else not _is_readable(value)
                if not local and not _is_builtin(chain[0], value):
                    if not isinstance(f, FunctionType):  # of a constexpr_function too
                        _check_equal(fn, chain[0], value)
                    self.value(fn, space, chain, value)
        return f"function {list(self.functions).index(id(f))}"

    def value(self, owner: FunctionType, space: Space, chain: Chain, value: object) -> None:
        """Notes what the first name of a chain holds, and follows the others, which are its attributes."""
        name, rest = chain[0], chain[1:]
        inner = value.value if _is_constexpr(value) else value
        if _is_constexpr(value) and rest[:1] == ("value",):
            rest = rest[1:]
        followed = isinstance(inner, ModuleType) or not _is_of_library(inner)
        found = _attribute(inner, rest[0]) if rest and followed else None
        made = isinstance(inner, type) and bool(vars(inner).get("__triton_aggregate__"))
        called = _is_jitted(inner) or (isinstance(inner, FunctionType) and not _is_of_library(inner))
        alone = _is_in_library(space) and _is_of_library(inner)
        text = None if found is not None or made or called else self.known(owner, name, value, alone)
        self.held.append(Held(owner, space, name, value, text))
        self.key += [name, text or ""]
        if _is_constexpr(value):
            self.held.append(Held(owner, vars(value), "value", inner, text and content(inner)))
        if _is_jitted(inner) and _is_of_library(inner.fn):
            self.key.append(_named(inner.fn))
        elif _is_jitted(inner) or (isinstance(inner, FunctionType) and called):
            self.key.append(self.function(inner))
        if isinstance(inner, type) and made:
            self.key += [_named(inner), str(inner.__annotations__)]
            self.key += [self.function(f) for f in getattr(inner, "hash_attrs", ()) if _is_jitted(f)]
        if found is not None:
            self.value(owner, found[0], rest, found[1])

    def known(self, owner: FunctionType, name: str, value: object, alone: bool = False) -> str:
        """The content of a value; of one that is not known exactly which it is, where that is enough: `alone`."""
        text = content(value)
        if text is None and not alone:
            raise _unknown(owner, name)
        return text or f"object {id(_KEPT.setdefault(id(value), value))}"


def _check_kept(functions: Iterable[JITFunction | FunctionType]) -> None:
    """Refuses what Triton has read already and finds to be something else at a launch (JITFunction.run)."""
    for f in functions:
        if isinstance(f, FunctionType) or f.hash is None:
            continue
        for (name, _), (value, space) in f.used_global_vals.items():
            if _differs(space.get(name, ABSENT), value):
                code = f.fn.__code__
                raise Unsupported(
                    f"{name}, which {code.co_name} reads, is not what it was when Triton read {code.co_name}",
                    Place(code.co_filename, code.co_firstlineno),
                    "Triton raises an error at the launch: set it before anything asks for the hash of the kernel",
                )


def _differs(now: object, then: object) -> bool:
    """Whether Triton takes two values for different ones, or cannot compare them."""
    try:
        return bool(now != then)
    except Exception:
        return True


def _unknown(f: FunctionType, name: str) -> Unsupported:
    code = f.__code__
    what = f"{name}, which {code.co_name} reads while it is compiled, is not known exactly"
    return Unsupported(what, Place(code.co_filename, code.co_firstlineno))


def _check_equal(f: FunctionType, name: str, value: object) -> None:
    """Triton copies a global when it compiles a kernel, and raises at a launch where it is not equal to the copy."""
    if isinstance(value, (ModuleType, type)) or (callable(value) and not _is_constexpr(value)):
        return
    code = f.__code__
    place = Place(code.co_filename, code.co_firstlineno)
    try:
        changed = bool(copy.deepcopy(value) != value)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise Unsupported(f"{name}, which {code.co_name} reads, cannot be copied", place, why) from error
    if changed:
        what = f"{name}, which {code.co_name} reads, is not equal to a copy of itself"
        raise Unsupported(what, place, "Triton compares them at each launch, and raises an error")


def _source(f: JITFunction | FunctionType) -> str:
    try:
        return getsource(f.__code__) if isinstance(f, FunctionType) else str(f.src)
    except OSError:
        return ""


def _defaults(f: FunctionType) -> list[object]:
    return [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]


def _is_readable(value: object) -> bool:
    """Whether Triton reads such a global in a kernel; the name of another is that of a local."""
    from triton import knobs

    of_triton = _is_of(value, "triton") or _is_of(type(value), "triton") or hasattr(value, "__triton_builtin__")
    named = isinstance(value, (ModuleType, type)) or _is_constexpr(value) or _is_jitted(value) or of_triton
    return named or (value is not ABSENT and bool(knobs.compilation.allow_non_constexpr_globals))


def _is_builtin(name: str, value: object) -> bool:
    """Whether it is Python's own; a reading of a host function puts stand-ins for some into its module."""
    ours = str(getattr(type(value), "__module__", "")).startswith("trilift.") or _is_of(value, "trilift")
    return name in BUILTINS and (value is ABSENT or value is getattr(builtins, name) or ours)


def _is_of(value: object, package: str) -> bool:
    return isinstance(value, (FunctionType, type)) and _home(value).partition(".")[0] == package


def _home(x: FunctionType | BuiltinFunctionType | type) -> str:
    """The module in which a function or class is written, whatever a decorator says of it."""
    return str(x.__globals__.get("__name__", "") if isinstance(x, FunctionType) else x.__module__)


def _unwrapped(f: FunctionType) -> FunctionType:
    """The function in the wrappers that a library puts around one."""
    while _is_library(_home(f)) and isinstance(inner := getattr(f, "__wrapped__", None), FunctionType):
        f = inner
    return f


def _attribute(of: object, name: str) -> tuple[Space, object] | None:
    """Where a module, a class or an object has an attribute, and what it is; None of what is computed."""
    classes = of.__mro__ if isinstance(of, type) else type(of).__mro__
    of_class = next(((c, vars(c)[name]) for c in classes if name in vars(c)), None)
    if isinstance(of, type) or name not in (own := _own(of)):
        computed = of_class is None or (hasattr(type(of_class[1]), "__get__") and not _is_jitted(of_class[1]))
        return None if computed else of_class
    computes = type(of).__getattribute__ not in (object.__getattribute__, ModuleType.__getattribute__)
    return None if computes or (of_class and hasattr(type(of_class[1]), "__set__")) else (own, own[name])


def _own(of: object) -> dict[str, object]:
    """The attributes of an object itself."""
    try:
        return object.__getattribute__(of, "__dict__")  # type: ignore[no-any-return]
    except AttributeError:
        return {}


@memo
def _read(source: str) -> tuple[Chain, ...] | None:
    """The names that the source of a function reads beside its parameters, each with the attributes that follow it;
    None of what is not the source of one function, as of a lambda."""
    try:
        tree = ast.parse(dedent(source))
    except SyntaxError:
        return None
    function = tree.body[0] if tree.body else None
    if not isinstance(function, ast.FunctionDef):
        return None
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


def content(value: object) -> str | None:
    """Equal for values that are equal to the compiler alone; None of a value that is not known exactly."""
    try:
        return _Text().of(value)
    except (_Inexact, RecursionError):
        return None


class _Inexact(Exception):
    """A value has parts that are not known."""


class _Text:
    """The text of one value, of at most so many parts."""

    def __init__(self) -> None:
        self.left = MANY

    def of(self, value: object) -> str:
        self.left -= 1
        kind = type(value)
        if self.left < 0:
            raise _Inexact
        if value is ABSENT:
            return "absent"
        if _is_constexpr(value):
            return f"constexpr {self.of(value.value)}"
        if kind in CONTAINERS:
            parts: Iterable[object] = value.items() if isinstance(value, dict) else value  # type: ignore[assignment]
            return f"{kind.__name__}({', '.join(map(self.of, parts))})"
        if kind in PLAIN or kind in EXACT:
            return f"{kind.__name__} {value!r}"
        if isinstance(value, Enum):
            return f"{_named(kind)}.{value._name_} {self.of(value._value_)}"
        if isinstance(value, EnumMeta):
            members: dict[str, Enum] = dict(value.__members__)
            return f"{_named(value)}({', '.join(f'{k}={self.of(v._value_)}' for k, v in members.items())})"
        return self.of_library(value, kind) if _is_of_library(value) else self.of_user(value)

    def of_library(self, value: object, kind: type) -> str:
        """Of what a library has, and of the numbers and types of libraries."""
        if isinstance(value, ModuleType):
            return value.__name__
        if isinstance(value, (FunctionType, BuiltinFunctionType, type)):
            return _named(value)
        name = _named(kind)
        if name == "torch.dtype" or (name.startswith("triton.language.core.") and name.endswith(("dtype", "_type"))):
            return f"{name} {value!r}"
        if name.startswith("numpy.") and hasattr(kind, "tobytes") and value.nbytes < MANY:  # type: ignore[attr-defined]
            of_object = value.dtype.hasobject  # type: ignore[attr-defined]
            if not of_object:
                return f"{name} {value.dtype} {value.shape} {value.tobytes().hex()}"  # type: ignore[attr-defined]
        if kind is SimpleNamespace:
            return f"{name}({', '.join(f'{k}={self.of(v)}' for k, v in _own(value).items())})"
        if _is_jitted(value):
            return f"{value.fn.__module__}.{value.fn.__qualname__}" if _is_of_library(value.fn) else self.no()
        return self.no()

    def of_user(self, value: object) -> str:
        """Of an object that only holds attributes: its class has no methods but those that are generated."""
        kind = type(value)
        if isinstance(value, (ModuleType, type, FunctionType)) or kind.__getattribute__ is not object.__getattribute__:
            return self.no()
        members = {k: v for c in reversed(kind.__mro__[:-1]) for k, v in vars(c).items() if k not in UNREAD}
        written = (v for v in members.values() if hasattr(type(v), "__get__"))
        if not all(isinstance(v, FunctionType) and v.__code__.co_filename == "<string>" for v in written):
            return self.no()
        held = {**{k: v for k, v in members.items() if not k.startswith("__")}, **_own(value)}
        known = {k: self.of(v) for k, v in held.items() if not isinstance(v, FunctionType)}
        return f"{_named(kind)}({', '.join(f'{k}={v}' for k, v in known.items())})"

    def no(self) -> NoReturn:
        raise _Inexact


def _named(x: type | FunctionType | BuiltinFunctionType) -> str:
    return f"{x.__module__}.{x.__qualname__}"


def _is_constexpr(value: object) -> TypeGuard[constexpr]:
    from triton.language.core import constexpr

    return isinstance(value, constexpr)


def _is_jitted(value: object) -> TypeGuard[JITFunction]:
    """Whether Triton compiles a function, or runs it while it compiles."""
    return hasattr(type(value), "cache_key") and hasattr(value, "fn") and hasattr(value, "src")


def _is_of_library(value: object) -> bool:
    """Whether a module, function or class, or the class of an object, is of a library."""
    if isinstance(value, FunctionType):
        return _is_library(_home(_unwrapped(value)))
    named = value if isinstance(value, (ModuleType, BuiltinFunctionType, type)) else type(value)
    return _is_library(str(named.__name__ if isinstance(named, ModuleType) else named.__module__))


def _is_in_library(space: Space) -> bool:
    """Whether a dictionary is that of a library's module."""
    return isinstance(space, dict) and "__spec__" in space and _is_library(str(space.get("__name__", "")))


def _is_library(module: str) -> bool:
    top = module.partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None) or STDLIB
    return top in LIBRARIES or (top in sys.stdlib_module_names and file.startswith(STDLIB))
