"""A reading as a trace: launches and torch operations whose numbers carry the terms that they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, cast, overload

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from ...capture import streams
from ...capture.bounded import Range
from ...capture.in_place import as_view
from ...capture.launches import Bound, Compiled, Interception, binder_of
from ...capture.places import host_place
from ...capture.recorder import (
    NAMES,
    PYTORCH,
    UNINITIALISED,
    Known,
    Recorder,
    lowered,
    read_arguments,
    tensors_of,
    written_positions,
)
from ...capture.trace import Buffer, Descriptor, TensorRef, TorchOp
from ...errors import TooManyLaunches, Unsupported
from ...runtime import budget
from ...terms import construct as T
from ...terms import index as I
from ...terms.term import Term
from ...ttir.ir import Module
from ...ttir.kernel_globals import taken
from . import limits, questions, size_tensors
from . import numbers as N
from .record import ELSEWHERE_BITS, Record

if TYPE_CHECKING:
    from torch._ops import OpOverload
    from triton.runtime.jit import JITFunction
    from triton.tools.tensor_descriptor import TensorDescriptor

APART = 1 << 60  # bytes between buffers
LARGEST = (1 << 31) - 1


class Read(int):
    """An integer of a trace, and the term that it is. Sums and quotients with numbers keep it."""

    term: Term

    def __new__(cls, v: int, t: Term) -> Read:
        out = super().__new__(cls, v)
        out.term = t
        return out

    def __sub__(self, other: int) -> int:
        return read(int(self) - int(other), I.normal(T.sub(self.term, term_of(other))))

    def __add__(self, other: int) -> int:
        return read(int(self) + int(other), I.normal(T.add(self.term, term_of(other))))

    __radd__ = __add__

    def __mul__(self, other: int) -> int:
        return read(int(self) * int(other), I.normal(T.mul(self.term, term_of(other))))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        return read(int(self) // int(other), I.floordiv(self.term, term_of(other)))

    def __mod__(self, other: int) -> int:
        return read(int(self) % int(other), I.mod(self.term, term_of(other)))

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other


class ReadReal(float):
    """A real of a trace, and the term that it is."""

    term: Term

    def __new__(cls, v: float, t: Term) -> ReadReal:
        out = super().__new__(cls, v)
        out.term = t
        return out


@overload
def read(v: int, t: Term) -> int: ...


@overload
def read(v: float, t: Term) -> float: ...


def read(v: float, t: Term) -> float:
    """A number of a trace: a plain one where it is a constant."""
    if t.is_const:
        return float(t.attr) if isinstance(v, float) else cast(int, t.attr)
    return ReadReal(v, t) if isinstance(v, float) else Read(v, t)


def term_of(v: float | Term) -> Term:
    """The term of a number of a trace."""
    return v.term if isinstance(v, Read | ReadReal) else T.const(v)


def plain(v: float) -> float:
    """Without its term."""
    return int(v) if type(v) is Read else float(v) if type(v) is ReadReal else v


class Pointer(Protocol):
    """An address and a dtype: all that Triton asks of a tensor."""

    dtype: torch.dtype

    def data_ptr(self) -> N.Integer: ...


class Events(Recorder):
    """The recorder of a reading: tensors without contents, whose addresses and strides are terms."""

    def __init__(self, record: Record, known: Known | None = None) -> None:
        super().__init__(record.dims, known)
        self.record = record
        self.limits: dict[int, limits.Limits] = {}  # by storage, of integer tensors
        self.launched = 0
        self.kept: list[torch.UntypedStorage] = []  # as long as their keys are in use

    def module(self, bound: Bound) -> Callable[[], Module]:
        """Lowered where it is asked for: a reading is of the host function, and its numbers stand for others."""
        return partial(lowered, bound)

    def size(self, n: N.Integer) -> int:
        """A size, a stride or an offset as an integer of the trace."""
        return cast(int, self.noted(n))

    def noted(self, x: N.Number) -> float:
        """A number of ours or PyTorch's as a number of the trace."""
        if type(x) in (torch.SymInt, torch.SymFloat, torch.SymBool):
            x = self.record.number(x)
        return read(x.value, x.term) if N.isinstance_of(x) else x

    def ref(self, t: torch.Tensor, origin: str = "host") -> TensorRef:
        if t.layout is not torch.strided or t.dtype not in NAMES:
            raise Unsupported(f"tensor of layout {t.layout}, dtype {t.dtype}", host_place())
        from torch._subclasses.fake_tensor import FakeTensor

        if size_tensors.is_held(t):
            size_tensors.lose(t)
        if not isinstance(t, FakeTensor):
            return super().ref(t, origin)
        with _disable_current_modes():
            storage = t.untyped_storage()
            key = storage._cdata
            nbytes = self.size(storage.nbytes())
            constant = t.constant if t.constant is not None else t
            if key not in self.buffers:
                self.buffers[key] = Buffer((len(self.buffers) + 1) * APART, nbytes, origin, constant)
                self.kept.append(storage)
            buffer = self.buffers[key]
            start = self.size(t.storage_offset()) * t.element_size() + buffer.address
            shape = tuple(map(self.size, t.shape))
            strides = tuple(map(self.size, t.stride()))
            self.record.sizes.update(map(term_of, (*shape, *strides)))
        return TensorRef(start, shape, strides, NAMES[t.dtype], buffer)

    def refs(self, x: object, origin: str = "host") -> Any:
        if hasattr(x, "block_shape") and hasattr(x, "base"):
            d = cast("TensorDescriptor", x)
            shape, strides, block = (tuple(map(self.size, part)) for part in (d.shape, d.strides, d.block_shape))
            return Descriptor(self.ref(d.base), shape, strides, block, d.padding, getattr(d, "round_f32_to_tf32", None))
        if isinstance(x, torch.SymInt | torch.SymFloat | torch.SymBool):
            return self.noted(x)
        if not isinstance(x, torch.Tensor) and hasattr(x, "data_ptr") and getattr(x, "dtype", None) in NAMES:
            return self.pointed(cast(Pointer, x))
        return super().refs(x, origin)

    def pointed(self, x: Pointer) -> object:
        """The tensor in whose memory a pointer of the host's own lies: an object with an address and a dtype. Of an
        input its term says which, of others the number that `Record.elsewhere` gave."""
        at = x.data_ptr()
        value, term = (int(at.value), at.term) if N.isinstance_of(at) else (int(at), T.const(int(at)))
        inputs = {f"address({n})": k for k, n in self.record.addresses.items()}
        named = next((str(s.attr) for s in term.walk() if s.attr in inputs), None)
        block = value >> ELSEWHERE_BITS
        key = inputs[named] if named else next((k for k, n in self.record.others.items() if n == block), None)
        if key is None or key not in self.buffers:
            return x
        first, start = (int(self.dims[named]), T.size(named)) if named else (block << ELSEWHERE_BITS, None)
        offset = read(value - first, I.normal(T.sub(term, first if start is None else start)))
        buffer = self.buffers[key]
        return TensorRef(offset + buffer.address, (), (), NAMES[x.dtype], buffer)

    def key(self, t: torch.Tensor) -> int:
        with torch._C.DisableTorchFunction():  # which would take it for a use of the host's
            return int(t.untyped_storage()._cdata)

    def is_traced(self, *xs: object) -> bool:
        return any(self.key(t) in self.traced for x in xs for t in tensors_of(x))

    def trace(self, *xs: object, known: Range | None = None) -> None:
        keys = {self.key(t) for x in xs for t in tensors_of(x)}
        self.traced |= keys
        for k in keys:
            self.limits.pop(k, None)

    def known(self, x: object) -> Range | int | None:
        return None

    def input(self, name: str, t: torch.Tensor, bound: int | None = None) -> TensorRef:
        ref = self.ref(t, f"input:{name}")
        self.trace(t)
        return ref

    def assume(self, what: str) -> None:
        self.record.ask(what)

    def launch(self, bound: Bound) -> None:
        self.launched += 1
        if self.launched > budget.BUDGETS.host.launches:
            raise TooManyLaunches(f"more than {budget.BUDGETS.host.launches} launches", host_place())
        super().launch(bound)

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = torch.device("cpu")
        if func.namespace not in PYTORCH:
            return self.inner(func, args, kwargs)
        if func.namespace == "prim":  # prim.device: a question that tensors with contents answer themselves
            return func(*args, **kwargs)
        budget.count("host operation")
        call, func = func, as_view(func)
        name = func.overloadpacket.__name__
        taken = self.taken(args[0]) if name == "_local_scalar_dense" else None
        if taken is None and self.is_traced(*read_arguments(name, args)):
            raise Unsupported(f"host code reads tensor data (aten.{name})", host_place())
        known = self.limits_of(name, args, kwargs)
        given = tuple(self.refs(a) for a in args), {k: self.refs(v) for k, v in kwargs.items()}
        self.touched(func, args, kwargs)
        result = call(*args, **kwargs) if taken is None else taken
        tensors = tuple(tensors_of(result))
        if name == "lift_fresh":  # the tensor that the host made, as it is
            self.buffers[self.key(result)] = given[0][0].buffer
            self.kept.append(tensors[0].untyped_storage())
        written = [args[k] for k in written_positions(func) if k < len(args)]
        one = known is not None and not written and limits.value(known) is not None  # the same for all data
        for t in tensors_of(written):
            self.limits.pop(self.key(t), None)
        if name not in UNINITIALISED and not one and self.is_traced(args, kwargs):
            self.trace(result, *written)
        if known is not None and not written:
            self.limits.update((self.key(t), known) for t in (tensors[:1] if name in PAIRS else tensors))
        self.on_cpu.follow(args, tensors)
        self.by_default.follow(args, tensors)
        outputs = tuple(self.ref(t, f"aten.{name}") for t in tensors)
        if name == "clone" and self.record.inside in COPIES_OR_NOT:
            self.record.copied(args[0], tensors[0], outputs[0].buffer.address)
        if name not in UNINITIALISED and not (func.is_view and not written):
            streams.now().happened(host_place())
        if not (name == "detach" and _makes(self.record.inside)) and not _is_all(name, args):  # a fake tensor adds them
            self.events.append(TorchOp(func, *given, outputs, (), host_place()))
        return result

    # ---- numbers out of tensors

    def taken(self, t: torch.Tensor) -> object:
        """The only element of a tensor, as PyTorch's number, if it is the same for all data."""
        found = self.limits.get(self.key(t))
        v = None if found is None else limits.value(found)
        if v is None:
            return None
        if v.is_const:
            return bool(v.attr) if t.dtype == torch.bool else v.attr
        return self.record.theirs(v)

    def limits_of(self, name: str, args: tuple[object, ...], options: Mapping[str, object]) -> limits.Limits | None:
        """The limits of an operator's results."""
        if not self.limits or not args or not isinstance(args[0], torch.Tensor):
            return None
        wide = {k: v for k, v in options.items() if (k, v) != ("dtype", torch.int64)}
        if wide or self.key(args[0]) not in self.limits or args[0].is_floating_point():
            return None
        if name in ("add", "sub") and args[0].dtype != torch.int64:  # others may wrap
            return None
        count = T.mul(1, *(term_of(self.size(n)) for n in args[0].shape))
        return limits.of_result(name, [self.limits_of_argument(a) for a in args], count)

    def limits_of_argument(self, x: object) -> limits.Limits | None:
        if isinstance(x, torch.Tensor):
            return self.limits.get(self.key(x))
        if isinstance(x, bool) or not isinstance(x, (int, torch.SymInt)):
            return None
        t = term_of(self.noted(x))
        return t, t


PAIRS = ("max", "min", "sort")  # which give positions beside the numbers
FACTORIES = {"empty", "zeros", "ones", "full", "arange", "tensor", "empty_strided", "rand", "randn", "eye", "linspace"}


def _makes(function: str) -> bool:
    """Whether a function of PyTorch's makes a tensor."""
    return function in FACTORIES or function.startswith("new_") or function.endswith("_like")


def by_default(function: str, args: Sequence[object], options: Mapping[str, object], found: object) -> bool:
    """Whether a function of PyTorch's has made a tensor of the type that real numbers have where nobody says one."""
    if function not in OF_NUMBERS or options.get("dtype") is not None or not isinstance(found, torch.Tensor):
        return False
    typed = any(isinstance(x, (torch.Tensor, np.ndarray, np.generic, torch.dtype)) for x in args)
    return found.is_floating_point() and not typed


OF_NUMBERS = FACTORIES | {"as_tensor", "scalar_tensor", "logspace", "normal"}
LAYOUT = ("is_contiguous", "storage_offset")
COPIES_OR_NOT = ("contiguous", "reshape", "reshape_as", "flatten", "ravel", "unflatten")
FROM_START = ("as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter")  # (x, size, stride, storage_offset)


def _fourth(args: Sequence[object], options: Mapping[str, object], name: str) -> object:
    """The fourth argument of a call, which has this name."""
    return args[3] if len(args) > 3 else options.get(name)


def _depends_on_strides(n: object) -> bool:
    return N.isinstance_of(n) and any(str(s.attr).startswith("stride(") for s in n.term.walk() if s.op == "size")


REQUIRES_GRAD = torch.Tensor.requires_grad  # the property


class Seen(TorchFunctionMode):  # type: ignore[misc]
    """Tensors whose sizes are numbers of ours, on both ways."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self.record = record

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        if (operator := implementation(func)) is not None:
            with Seen(self.record):
                return operator(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name == "data_ptr" and hasattr(args[0], "fake_mode"):
            return self.address(args[0])
        if name == "__get__" and getattr(func, "__self__", None) is REQUIRES_GRAD and questions.asks(self.record):
            return questions.truth(self.record, f"{self.named(args[0])}.requires_grad", bool(func(*args)))
        if (known := size_tensors.run(func, args, kwargs or {})) is not NotImplemented:
            return known
        before, self.record.inside = self.record.inside, name
        try:
            found = self.ours(func(*self.theirs(args), **self.theirs(dict(kwargs or {}))))
        except Exception:
            self.record.catch_up(failed=True)
            raise
        finally:
            self.record.inside = before
        self.record.catch_up()
        if by_default(name, args, kwargs or {}, found):
            self.record.ask(f"torch.get_default_dtype() is {torch.get_default_dtype()}")
        if name in LAYOUT and questions.asks(self.record):
            self.ask_layout(name, args[0], found)
        if name in FROM_START and _fourth(args, kwargs or {}, "storage_offset") is not None:
            self.ask_start(args[0])
        if args and isinstance(args[0], torch.Tensor) and questions.asks(self.record):
            return questions.of_input(self.record, func, args[0], found)
        return found

    def ask_layout(self, name: str, t: torch.Tensor, found: object) -> None:
        """The host function asks how a tensor lies in memory, where a case leaves that open: the answer is one of
        several."""
        of = self.named(t)
        if name == "storage_offset" and of in self.record.addresses.values():
            self.record.ask(f"the storage offset of {of} is {found}")
        elif name != "storage_offset" and any(_depends_on_strides(self.ours(n)) for n in t.stride()):
            self.record.ask(f"{of} is {'' if found else 'not '}contiguous")

    def ask_start(self, t: torch.Tensor) -> None:
        """The host function counts elements from the start of the memory of an input, and not from its first one."""
        if (of := self.named(t)) in self.record.addresses.values():
            self.record.ask(f"the storage offset of {of} is 0")

    def named(self, t: torch.Tensor) -> str:
        """The input whose memory the tensor has; `a tensor` for any other."""
        return self.record.addresses.get(int(t.untyped_storage()._cdata), "a tensor")

    def address(self, t: torch.Tensor) -> N.Integer:
        """Where a tensor starts: of an input, or a view of one, a number of ours."""
        if (name := self.named(t)) not in self.record.addresses.values():
            self.record.ask("the address of a tensor")
            start: N.Integer = self.record.elsewhere(int(t.untyped_storage()._cdata))
        else:
            start = N.integer(self.record, T.size(f"address({name})"), int(self.record.dims[f"address({name})"]))
        return cast(N.Integer, start + cast(N.Integer, self.ours(t.storage_offset())) * t.element_size())

    def theirs(self, x: Any) -> Any:
        """PyTorch's numbers for ours."""
        kind = type(x)
        if kind in (N.Int, N.Real):
            return self.record.symbol(x.term, x.value)
        if kind is dict:
            return {k: self.theirs(v) for k, v in x.items()}
        if kind is slice:
            return slice(*(self.theirs(e) for e in (x.start, x.stop, x.step)))
        if isinstance(x, (tuple, list)) and any(_holds_ours(e) for e in x):
            parts = [self.theirs(e) for e in x]
            return type(x)(*parts) if hasattr(x, "_fields") else parts if kind is list else tuple(parts)
        return x

    def ours(self, x: object) -> object:
        kind = type(x)
        if kind in (torch.SymInt, torch.SymFloat, torch.SymBool):
            return self.record.number(x)
        if kind is torch.Size:
            return Size(cast(Iterable[N.Integer], map(self.ours, cast(Iterable[object], x))))
        if isinstance(x, (tuple, list)) and kind in (tuple, list):
            parts = list(map(self.ours, x)) if any(type(e) in (torch.SymInt, torch.Size) for e in x) else x
            return parts if kind is list or parts is x else tuple(parts)
        return x


def implementation(func: object) -> Callable[..., object] | None:
    """The Python function behind a custom operator on the GPU: called by itself, it gets numbers of ours, and from
    PyTorch's dispatcher others. None of any other function, and where its own gradient is recorded."""
    from torch._library.custom_ops import OPDEFS
    from torch._ops import OpOverload

    if not isinstance(func, OpOverload) or func.namespace in PYTORCH:
        return None
    found = OPDEFS.get(func._schema.name)
    if found is None or (found._backward_fn is not None and torch.is_grad_enabled()):
        return None
    run: Callable[..., object] | None = found._backend_fns.get("cuda") or found._backend_fns.get(None)
    return run


def _holds_ours(x: object) -> bool:
    return N.isinstance_of(x) or isinstance(x, (tuple, list, slice))


class Size(tuple[N.Integer, ...]):
    """A shape whose numbers are ours."""

    def numel(self) -> N.Integer:
        out: N.Integer = 1
        for n in self:
            out = out * n
        return out

    def __getitem__(self, k: SupportsIndex | slice) -> N.Integer | Size:  # type: ignore[override]
        found = super().__getitem__(k)
        return Size(cast(Iterable[N.Integer], found)) if isinstance(k, slice) else cast(N.Integer, found)

    def __add__(self, other: Iterable[N.Integer]) -> Size:  # type: ignore[override]
        return Size((*self, *other))

    @property  # type: ignore[misc]
    def __class__(self) -> object:  # type: ignore[misc, override]
        return torch.Size


class Launching(Interception):
    """Launches of a reading: what Triton would bind, with terms for the numbers."""

    def __init__(self, record: Callable[[Bound], None], config: int, run: Record) -> None:
        super().__init__(record, config)
        self.run = run

    def bind(
        self, kernel: JITFunction, args: tuple[object, ...], kwargs: dict[str, Any], config: tuple[int, int],
        may_reject: bool = False, restored: frozenset[str] = frozenset(),
        reset: frozenset[str] = frozenset(),
    ) -> Compiled:  # fmt: skip
        from ...ttir.lower import unspecialise

        kwargs = dict(kwargs)
        grid, warmup = kwargs.pop("grid", None), kwargs.pop("warmup", False)
        for hook in kernel.pre_run_hooks:
            hook(*args, **kwargs)
        call = kernel.signature.bind(*args, **{k: v for k, v in kwargs.items() if k in kernel.signature.parameters})
        call.apply_defaults()
        given = dict(call.arguments)
        options = {k: v for k, v in kwargs.items() if k not in given}
        all_options = {"debug": False, **options}
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            call.arguments.update({n: _stand_in(v) for n, v in given.items()})
            *_, backend, binder = binder_of(kernel)
            bound, specialization, parsed = binder(*call.args, **call.kwargs, **all_options)
            _, signature, constexprs, _ = kernel._pack_args(backend, all_options, bound, specialization, parsed)
            signature, constexprs = unspecialise(kernel, signature, constexprs, bound)
        if not warmup:
            numbers = grid(dict(given)) if callable(grid) else grid
            launched = given, self.grid(numbers), signature, constexprs, all_options, config, restored, reset
            self.record(Bound(kernel, *launched, taken(kernel, constexprs)))
        constants = {p.name: given[p.name] for p in kernel.params if p.is_constexpr}
        return Compiled(kernel, {**constants, **options}, config)

    def grid(self, numbers: N.Integer | Sequence[N.Integer]) -> tuple[int, int, int]:
        parts = tuple(numbers) if isinstance(numbers, (tuple, list)) else (numbers,)
        whole = [N_int(p) for p in parts]
        plain = [read(n.value, n.term) if N.isinstance_of(n) else n for n in whole]
        return cast(tuple[int, int, int], (*plain, *(1,) * (3 - len(parts))))


def N_int(x: object) -> N.Integer:
    from .shims import Whole

    if type(x) in (float, N.Real):
        raise TypeError("'float' object cannot be interpreted as an integer")  # as the launcher says
    return cast(N.Integer, Whole(x) if not isinstance(x, torch.SymInt) or N.isinstance_of(x) else x)


def _stand_in(x: object) -> object:
    """Something of the same type for Triton's binder, which wants numbers and addresses."""
    if N.isinstance_of(x):
        return x.value if abs(x.value) <= LARGEST or type(x) is N.Real else LARGEST
    if isinstance(x, torch.Tensor) or (hasattr(x, "data_ptr") and hasattr(x, "dtype")):
        return torch.empty(0, dtype=x.dtype, device="meta")
    if hasattr(x, "block_shape") and hasattr(x, "base"):
        d = cast("TensorDescriptor", x)
        block = [cast(int, _stand_in(b)) for b in d.block_shape]
        return type(d)(torch.empty(block, dtype=d.base.dtype, device="meta"), block, _dense(block), block, d.padding)
    if isinstance(x, (tuple, list)):
        parts, made = [_stand_in(e) for e in x], cast(Callable[..., object], type(x))
        return made(*parts) if hasattr(x, "_fields") else made(parts)
    return x


def _dense(block: list[int]) -> list[int]:
    out, step = [], 1
    for n in reversed(block):
        out.append(step)
        step *= n
    return out[::-1]


def numbered(dims: Mapping[str, float]) -> dict[str, float]:
    """Dims without terms."""
    return {n: plain(v) for n, v in dims.items()}


def _is_all(name: str, args: tuple[object, ...]) -> bool:
    """Whether it is x[:] of a dimension, which PyTorch leaves out for tensors with contents."""
    if name != "slice":
        return False
    start, end, step = (args[k] if k < len(args) else None for k in (2, 3, 4))
    return start in (None, 0) and end in (None, LAST) and step in (None, 1)


LAST = 2**63 - 1  # the end of a slice without one
