"""Functions that Triton's interpreter lacks, as a person would write them. Never imported: written.library copies from
it."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import ast
import traceback
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .helpers import POISON, RUNNING

# ---- what Triton's interpreter lacks ----


def without_timing(tuner: Any, *args: Any, **kwargs: Any) -> Any:
    """Autotuner.run that takes the configuration of the call, or the next one that compiles: there is nothing to
    time."""
    from triton.runtime.errors import InterpreterError

    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    configs = tuner.prune_configs(kwargs)
    first = RUNNING.config % len(configs)
    ordered = [*configs[first:], *configs[:first]]

    def launch(config: Any) -> Any:
        if config.pre_hook is not None:
            config.pre_hook({**tuner.nargs, **kwargs, **config.all_kwargs()})
        return tuner.fn.run(*args, **kwargs, **config.all_kwargs())

    for config in ordered[:-1]:
        try:
            return launch(config)
        except InterpreterError as error:
            if not is_static(error):
                raise
    return launch(ordered[-1])


def is_static(error: BaseException) -> bool:
    """Whether it was raised by a static_assert, because of which the kernel would not compile."""
    while error.__cause__ is not None:
        error = error.__cause__
    return traceback.extract_tb(error.__traceback__)[-1].name == "_new_static_assert"


def with_floats(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The interpreter passes Python's floats on as they are; a GPU gets f32."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def converted(arg: Any) -> Any:
        if type(arg) is not float:
            return convert(arg)
        return tl.tensor(TensorHandle(np.array([arg], np.float32), tl.float32), tl.float32)

    return converted


def guarded(load: Callable[..., Any]) -> Callable[..., Any]:
    """Loads must lie in tensors; lanes that a mask leaves out are poison where the kernel gives it no value: on a GPU
    it may be anything."""
    from triton.runtime.interpreter import TensorHandle

    def checked(builder: Any, pointers: Any, mask: Any, other: Any, *policy: Any, **policies: Any) -> Any:
        RUNNING.memory.check_reads(pointers.data[mask.data])
        result = load(builder, pointers, mask, other, *policy, **policies)
        if other is not None or mask.data.all():
            return result
        unread = np.full((*result.data.shape, result.data.itemsize), POISON, np.uint8).view(result.data.dtype)[..., 0]
        return TensorHandle(np.where(mask.data, result.data, unread), result.dtype)

    return checked


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of libdevice, in numpy."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def apply(*args: Any, **_: Any) -> Any:
        x = max((a for a in args if isinstance(a, tl.tensor)), key=lambda a: len(a.shape))  # others may be numbers
        data = function(*(a.handle.data if isinstance(a, tl.tensor) else a for a in args))
        return tl.tensor(TensorHandle(np.asarray(data, x.handle.data.dtype), x.dtype.scalar), x.type)

    return apply


def with_copies(patch: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Kernels may call functions of libdevice that their module has loaded once more."""
    from triton.language.extra import cuda, libdevice

    places = libdevice.__name__, cuda.libdevice.__name__

    def patched(kernel: Any) -> Any:
        for name, value in list(kernel.__globals__.items()):
            if type(value) is types.FunctionType and value.__module__ in places:
                kernel.__globals__[name] = getattr(libdevice, value.__name__, value)
        return patch(kernel)

    return patched


def with_language(patch: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The interpreter asks that the file of a function names Triton's language, which x + y does without."""
    import triton.language as tl

    def patched(kernel: Any) -> Any:
        if not any(value is tl or value is tl.core for value in kernel.__globals__.values()):
            kernel.__globals__["_language"] = tl
        return patch(kernel)

    return patched


def not_of_tensors(self: ast.NodeTransformer, node: ast.UnaryOp) -> ast.AST:
    """`not x` of each element: the interpreter leaves it to Python, for which a tensor is true or false as a whole."""
    self.generic_visit(node)
    if not isinstance(node.op, ast.Not):
        return node
    negated = ast.parse("lambda x: x.__not__() if hasattr(x, '__not__') else not x", mode="eval").body
    call = ast.Call(negated, [node.operand], [])
    return ast.fix_missing_locations(ast.copy_location(call, node))


def connected_tensors(self: ast.NodeTransformer, node: ast.BoolOp) -> ast.AST:
    """`x and y` of each element: the interpreter leaves it to Python, which takes one of them as a whole."""
    self.generic_visit(node)
    word, method = ("and", "logical_and") if isinstance(node.op, ast.And) else ("or", "logical_or")
    both = f"x.{method}(z) if hasattr(z := y(), '{method}') else z {word} x"
    text = f"lambda x, y: ({both}) if hasattr(x, '{method}') else x {word} y()"
    *values, result = node.values
    for value in reversed(values):
        later = ast.Lambda(ast.arguments([], [], None, [], [], None, []), result)
        result = ast.Call(ast.parse(text, mode="eval").body, [value, later], [])
    return ast.fix_missing_locations(ast.copy_location(result, node))


def least_of_blocks(self: ast.NodeTransformer, node: ast.Call) -> ast.AST:
    """`min(x, y)` and `max(x, y)` of each element: the interpreter leaves them to Python, which takes one of them as a
    whole."""
    self.generic_visit(node)
    names = {"min": "minimum", "max": "maximum"}
    if not isinstance(node.func, ast.Name) or node.func.id not in names or node.keywords:
        return node
    ours = "f.__module__ == 'builtins' and any(getattr(x, 'shape', ()) for x in xs)"
    joined = f"__import__('functools').reduce(__import__('triton').language.{names[node.func.id]}, xs)"
    chosen = ast.parse(f"lambda f, *xs: {joined} if {ours} else f(*xs)", mode="eval").body
    return ast.fix_missing_locations(ast.copy_location(ast.Call(chosen, [node.func, *node.args], []), node))


def comparing(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A truth value has one bit: the interpreter broadcasts it as if it had the bits of its operands."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def computed(builder: Any, left: Any, right: Any, operation: Any) -> Any:
        result = compute(builder, left, right, operation)
        return TensorHandle(result.data, tl.int1) if result.data.dtype == np.bool_ else result

    return computed


def attributes_of_numbers(self: ast.NodeTransformer, node: ast.Attribute) -> ast.AST:
    """Numbers of a loop have a dtype, and constants a value: in the interpreter they are those of Python."""
    self.generic_visit(node)
    if node.attr not in ("value", "to", "dtype", "type") or not isinstance(node.ctx, ast.Load):
        return node
    tensor = f"lambda x: (x if hasattr(x, '{node.attr}') else interpreter_semantic.to_tensor(x)).{node.attr}"
    text = "lambda x: getattr(x, 'value', x)" if node.attr == "value" else tensor
    call = ast.Call(ast.parse(text, mode="eval").body, [node.value], [])
    return ast.fix_missing_locations(ast.copy_location(call, node))


def visiting_what_is_assigned(visit: Callable[..., ast.AST]) -> Callable[..., ast.AST]:
    """Triton before 3.9 leaves the right side of an assignment as it is."""
    import triton

    visits = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9)

    def visited(self: ast.NodeTransformer, node: ast.Assign) -> ast.AST:
        if not visits:
            node.value = self.visit(node.value)
        return visit(self, node)

    return visited


def rounding_to_nearest(convert: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter cuts f32 off to bf16, and carries nothing into exponents of fp8; a GPU rounds to the nearest
    number, ties to even, and to the largest one."""
    import triton.language as tl

    narrow = {
        tl.bfloat16: (torch.bfloat16, torch.int16, np.uint16),
        tl.float8e4nv: (torch.float8_e4m3fn, torch.uint8, np.uint8),
        tl.float8e5: (torch.float8_e5m2, torch.uint8, np.uint8),
    }

    def converted(data: Any, source: Any, target: Any, mode: Any) -> Any:
        if source != tl.float32 or target not in narrow or "RTZ" in str(mode):
            return convert(data, source, target, mode)
        dtype, as_bits, found = narrow[target]
        numbers = torch.from_numpy(np.array(data)).view(torch.float32)
        if dtype != torch.bfloat16:
            numbers = numbers.clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max)
        return numbers.to(dtype).view(as_bits).numpy().view(found)

    return converted
