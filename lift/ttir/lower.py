"""Triton source to the typed IR: `lower` compiles a @triton.jit function to Triton IR (no GPU, no PTX) and parses it.

    make_ir -> inliner, block pointers and descriptors to pointers, canonicalizer, CSE, DCE -> generic text
            -> lift.ttir.ir

The combine pass is kept away: it turns a broadcast-multiply-sum into a dot. Loops are not unrolled. Triton 3.6 to 3.9.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Place, Unsupported
from ..runtime.session import table
from . import reader
from .descriptors import asserted
from .ir import Module
from .kernel_globals import Scope, taken

if TYPE_CHECKING:
    from triton.runtime.jit import JITFunction

SENTINEL = reader.SENTINEL
_CAPABILITY = 90
_lowered: dict[tuple[object, ...], Module | Unsupported] = table("lower.modules", {})


def lower(fn: Any, signature: Mapping[str, Any], constexprs: Mapping[Any, Any], options: Mapping[str, Any]) -> Module:
    """The typed IR of the kernel `fn` (a JITFunction, or an Autotuner / Heuristics around one).

    `signature` maps every parameter to its Triton type: "*fp32", "i32", "fp64", "constexpr", a tuple of these for a
    tuple argument, "tensordesc<fp16[64,64]>" for a host descriptor. `constexprs` maps paths (3,), (3, 0) or names to
    values; options that Triton's backend does not know are ignored. Nothing is specialised: use `unspecialise` on what
    a launch bound, so that integers equal to 1 or divisible by 16 stay arguments. `module.entry.args` are the leaves of
    the non-constexpr parameters in signature order (see `leaves`). Lowered once per process for the same content.
    Raises Unsupported if Triton does not compile it, naming the place and the first line of Triton's message, and
    TimeoutError, which is not kept, where a time limit ends the compiler."""
    fn = jit_function(fn)
    scope = taken(fn, constexprs)
    key = (scope.key, *_arguments(fn, signature, constexprs, options))
    if key not in _lowered:
        try:
            _check(fn, scope)
            _lowered[key] = reader.parse(text(fn, signature, constexprs, options))
        except Unsupported as error:
            _lowered[key] = error
    found = _lowered[key]
    if isinstance(found, Unsupported):
        raise found
    return found


def text(fn: Any, signature: Mapping[str, object], constexprs: Mapping[Any, Any], options: Mapping[str, object]) -> str:
    """The generic-form MLIR text that `lower` parses, with locations."""
    from triton.compiler import ASTSource

    fn = jit_function(fn)
    context, backend, target = _context()
    try:
        source = ASTSource(fn, dict(signature), dict(constexprs), {})
        parsed = backend.parse_options(dict(options))
        makers = backend.get_codegen_implementation(parsed), backend.get_module_map()
        with redirect_stdout(sys.stderr), asserted():  # tl.static_print
            module = source.make_ir(target, parsed, *makers, context)
        module.context = context
        return _generic(_passes(module))
    except Exception as error:
        if (late := _late(error)) is not None:
            raise late from None
        raise _unsupported(fn, error) from error


def _late(error: BaseException | None) -> TimeoutError | None:
    """The time limit that ended the compiler, which wraps what it is interrupted by: nothing is known of the kernel."""
    while error is not None and not isinstance(error, TimeoutError):
        error = error.__cause__ or error.__context__
    return error


def folded(text: str) -> Module:
    """The module of a text that `text` gave, after MLIR's canonicalizer and common subexpressions. Raises RuntimeError
    where MLIR rejects it."""
    from triton._C.libtriton import ir, passes

    context, _, _ = _context()
    with tempfile.NamedTemporaryFile("w", suffix=".ttir", delete=False) as file:
        file.write(_without_sentinel(text))
    try:
        module = ir.parse_mlir_module(file.name, context)
    finally:
        Path(file.name).unlink()
    module.context = context
    manager = ir.pass_manager(context)
    for add in (passes.common.add_canonicalizer, passes.common.add_cse, passes.common.add_canonicalizer):
        add(manager)
    manager.run(module, "fold")
    return reader.parse(_generic(module))


def _without_sentinel(text: str) -> str:
    """The text without the function that made MLIR print the generic form."""
    kept, inside = [], False
    for line in text.split("\n"):
        inside = inside or ('"tt.func"' in line and SENTINEL in line)
        if not inside:
            kept.append(line)
        inside = inside and not line.lstrip().startswith("})")
    return "\n".join(kept)


def lower_file(path: str | Path) -> Module:
    """The typed IR of a `.ttir` file, pretty or generic; runs no user code. Raises Unsupported if MLIR rejects it, or
    the reader does."""
    from triton._C.libtriton import ir

    path = Path(path)
    what, place = f"{path.name} is not Triton IR of triton {_version()}", Place(str(path), 1)
    try:
        source = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise Unsupported(what, place, f"byte {error.start} is not UTF-8") from error
    try:
        if SENTINEL in source:
            return reader.parse(source)
        context, _, _ = _context()
        module = ir.parse_mlir_module(str(path), context)
        module.context = context
        return reader.parse(_generic(_passes(module)))
    except RuntimeError as error:
        why = "its brackets are nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Unsupported(what, place, why) from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # of the reader, on a text that is no module
        raise Unsupported(what, place, f"{type(error).__name__}: {error}") from error


def unspecialise(
    fn: Any, signature: Mapping[str, Any], constexprs: Mapping[Any, Any], args: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[Any, Any]]:
    """(signature, constexprs) of a launch without what Triton specialises: integers equal to 1 become arguments again.

    `args` maps parameter names to the launch's values. Declared constexpr parameters, None, and other compile-time
    values (dtypes, functions, strings) stay constexpr. An integer's type is the parameter's annotation, else i32, i64
    or u64 by its size."""
    params = jit_function(fn).params
    values = {_path(fn, key): value for key, value in constexprs.items()}
    out = {}
    for i, param in enumerate(params):
        kind = signature[param.name]
        if param.is_constexpr:
            out[param.name] = "constexpr"
        else:
            out[param.name] = _general((i,), kind, args.get(param.name), param.annotation_type, values)
    return out, values


def leaves(kind: Any, value: Any) -> Iterator[Any]:
    """The run-time values that one launch argument of type `kind` gives to `module.entry.args`, in order: tuples
    flattened, constexprs dropped, a host descriptor as (base, *shape, *strides, padding, [round], *shape, *strides)."""
    if isinstance(kind, tuple):
        for k, v in zip(kind, value, strict=True):
            yield from leaves(k, v)
    elif kind != "constexpr":
        yield from _descriptor(value) if str(kind).startswith("tensordesc") else (value,)


def jit_function(fn: Any) -> Any:
    """The JITFunction inside Autotuner and Heuristics wrappers."""
    while not hasattr(fn, "params") and hasattr(fn, "fn"):
        fn = fn.fn
    return fn


@lru_cache(maxsize=1)
def _backend() -> tuple[Any, Any]:
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # floats are reals here: silences a warning
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    target = GPUTarget("cuda", _CAPABILITY, 32)
    return make_backend(target), target


_CONTEXTS: list[object] = table("lower.contexts", [])  # MLIR's, of this session: at most one


def _context() -> tuple[Any, Any, Any]:
    """An MLIR context with Triton's dialects, the backend and the target."""
    from triton._C.libtriton import ir

    backend, target = _backend()
    if not _CONTEXTS:
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        _CONTEXTS.append(context)
    return _CONTEXTS[0], backend, target


def _passes(module: Any) -> Any:
    from triton._C.libtriton import ir, passes

    manager = ir.pass_manager(module.context)
    passes.common.add_inliner(manager)
    for name in ("add_rewrite_tensor_pointer", "add_rewrite_tensor_descriptor_to_pointer"):
        getattr(passes.ttir, name, lambda manager: None)(manager)
    passes.common.add_canonicalizer(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    manager.run(module, "lift")
    return module


def _generic(module: Any) -> str:
    """MLIR prints a module that does not verify in its generic form: a public function without a body makes it so."""
    from triton._C.libtriton import ir

    builder = ir.builder(module.context)
    kind = builder.get_function_ty([], [])
    module.push_back(builder.get_or_insert_function(module, SENTINEL, kind, "public", False))
    return str(module)


def _path(fn: Any, key: Any) -> tuple[int, ...]:
    return (jit_function(fn).arg_names.index(key),) if isinstance(key, str) else tuple(key)


def _general(path: tuple[int, ...], kind: Any, value: Any, annotation: str | None, constexprs: dict[Any, Any]) -> Any:
    """The unspecialised type of the argument at `path`; what becomes an argument again leaves `constexprs`."""
    if isinstance(kind, tuple):
        parts = [_general((*path, i), k, v, None, constexprs) for i, (k, v) in enumerate(zip(kind, value, strict=True))]
        return type(kind)(*parts) if hasattr(kind, "_fields") else tuple(parts)
    if kind != "constexpr" or type(value) is not int:
        return kind
    constexprs.pop(path, None)
    return annotation or ("i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64")


def _descriptor(value: Any) -> Iterator[Any]:
    """Triton 3.9 added the rounding flag; Triton itself passes shape and strides twice after the rewrite."""
    flags = [getattr(value, "padding", "zero") == "nan"]
    if hasattr(value, "round_f32_to_tf32"):
        flags.append(bool(value.round_f32_to_tf32))
    yield from (value.base, *value.shape, *value.strides, *flags, *value.shape, *value.strides)


def content_key(
    fn: Any, signature: Mapping[str, object], constexprs: Mapping[Any, Any], options: Mapping[str, object]
) -> tuple[object, ...]:
    """Equal for equal kernels: the source of the function and of those that it calls, what they read outside of
    themselves as it is now, and how it is called."""
    fn = jit_function(fn)
    return taken(fn, constexprs).key, *_arguments(fn, signature, constexprs, options)


def _arguments(
    fn: JITFunction, signature: Mapping[str, object], constexprs: Mapping[str, object], options: Mapping[str, object]
) -> tuple[str, str, str]:
    constants = sorted((_path(fn, k), type(v).__name__, repr(v)) for k, v in constexprs.items())
    return repr(dict(signature)), repr(constants), repr(sorted(options.items()))


def _check(fn: JITFunction, scope: Scope) -> None:
    """Raises Unsupported for a global that a kernel must not name. Triton says so where it computes its own key."""
    with scope.forgotten():
        try:
            _ = fn.cache_key
        except RuntimeError as error:
            raise _unsupported(fn, error) from error


def _version() -> str:
    import triton

    return ".".join(triton.__version__.split(".")[:2])


def _unsupported(fn: Any, error: Exception) -> Unsupported:
    """The innermost message says why; the outermost node is the line of the kernel itself."""
    head = next((i for i, line in enumerate(fn.raw_src) if line.lstrip().startswith("def ")), 0)
    line = fn.starting_line_number + head + getattr(getattr(error, "node", None), "lineno", 1) - 1
    place = Place(fn.fn.__code__.co_filename, line)
    deepest: BaseException = error
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    message = getattr(deepest, "error_message", None) or str(deepest)
    lines = [line.strip() for line in message.splitlines() if line.strip() and not line.startswith("at ")]
    why = lines[0] if lines else type(deepest).__name__
    why = why.partition("({")[0]  # the contents of a dictionary, such as the environment
    return Unsupported(f"kernel {fn.__name__} does not compile on triton {_version()}", place, why)
