"""Records a host function as events: kernel launches and torch operations on tensors that are views of buffers.

Host code that reads the contents of a tensor which depends on an input or a kernel is refused: its path would depend
on data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from ..errors import Place, Unsupported
from ..language.case_spec import DTYPES
from ..runtime.session import table
from ..ttir.ir import Module
from ..ttir.kernel_globals import Names
from ..ttir.lower import leaves, lower
from . import cpu_memory, streams, texts
from .bounded import Range, result_range
from .in_place import as_view
from .launches import Bound
from .places import host_place
from .trace import Buffer, Descriptor, Launch, TensorRef, TorchOp

NAMES = {getattr(torch, long): short for short, long in DTYPES.items()}
LARGE_ELEMENTS = 1_000_000  # of a new tensor, whose memory is not touched then: the host does not look at its contents
UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
CONSTANT = UNINITIALISED | {
    "zeros_like",
    "ones_like",
    "full_like",
    "new_zeros",
    "new_ones",
    "new_full",
}  # of shapes, not data
READS = {
    "_local_scalar_dense": (0,), "equal": (0, 1), "nonzero": (0,), "masked_select": (1,), "unique_dim": (0,),
    "_unique": (0,), "_unique2": (0,), "unique_consecutive": (0,), "bincount": (0,),
}  # fmt: skip  # the arguments whose contents the host sees, as a number or a shape
PYTHON_READS = {"tolist", "numpy", "__array__"}
TEXTS = {"__repr__", "__format__"}


def tensors_of(x: Any) -> Iterator[torch.Tensor]:
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, (list, tuple, dict)):
        for e in x.values() if isinstance(x, dict) else x:
            yield from tensors_of(e)


_active: list[Recorder] = []
_KNOWN: dict[int, tuple[object, Known]] = table("recorder.known", {})  # by id of the host function


def active() -> Recorder:
    """The recorder of the run that is going on."""
    return _active[-1]


@dataclass
class Known:
    """All that Triton keeps of the launches that one process makes of a host function: what the kernels `read` outside
    of themselves, and their compile-time arguments, by what is equal for Triton, each with its kernel."""

    read: Names = field(default_factory=dict)
    constants: dict[tuple[object, ...], tuple[object, object]] = field(default_factory=dict)


def known_of(fn: object) -> Known:
    """The memory of Triton of all readings of a host function in this session: calls of one process share it."""
    return _KNOWN.setdefault(id(fn), (fn, Known()))[1]


PYTORCH = ("aten", "prims", "prim")  # namespaces of PyTorch's own operators


class Recorder(TorchDispatchMode):  # type: ignore[misc]
    """Events in order. `buffers` by storage address; `traced` has the addresses of buffers whose contents depend on
    inputs or on a kernel, `ranges` what is known of such contents all the same; `untouched`: of large buffers that no
    operator of PyTorch wrote, whose memory is not touched either."""

    def __init__(self, dims: Mapping[str, int | float], known: Known | None = None) -> None:
        super().__init__()
        self.dims = dims
        self.events: list[Launch | TorchOp] = []
        self.buffers: dict[int, Buffer] = {}
        self.traced: set[int] = set()
        self.untouched: set[int] = set()
        self.ranges: dict[int, Range] = {}
        self.configs = 1
        self.known_to_triton = Known() if known is None else known
        self.on_cpu = cpu_memory.OnCPU(self.key)
        self.by_default = cpu_memory.OnCPU(self.key)  # unless the default device is the GPU
        self.pinned = cpu_memory.OnCPU(self.key)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: torch would import its compiler, for a second, to keep it out of here."""
        return False

    @contextmanager
    def recording(self) -> Iterator[None]:
        """The context in which operations and launches are recorded."""
        _active.append(self)
        try:
            with _Reads(self), self:
                yield
        finally:
            _active.pop()

    # ---- tensors

    def key(self, t: torch.Tensor) -> int:
        """The address that tells the storage of a tensor from others."""
        with _disable_current_modes():
            return int(t.untyped_storage().data_ptr())

    def input(self, name: str, t: torch.Tensor, bound: int | None = None) -> TensorRef:
        ref = self.ref(t, f"input:{name}")
        self.traced.add(ref.buffer.address)
        if bound is not None:
            self.ranges[ref.buffer.address] = (0, bound - 1)
        return ref

    def ref(self, t: torch.Tensor, origin: str = "host") -> TensorRef:
        """The tensor as a view of its buffer, which is new, and of this origin, if its storage was not seen before."""
        if t.layout is not torch.strided or t.dtype not in NAMES:
            raise Unsupported(f"tensor of layout {t.layout}, dtype {t.dtype}", host_place())
        with _disable_current_modes():
            storage = t.untyped_storage()
            address = storage.data_ptr()
            buffer = self.buffers.get(address)
            if buffer is None or buffer.nbytes < storage.nbytes():
                buffer = self.buffers[address] = Buffer(address, storage.nbytes(), origin, t.detach())
            start = address + t.storage_offset() * t.element_size()
        return TensorRef(start, tuple(t.shape), tuple(t.stride()), NAMES[t.dtype], buffer)

    def refs(self, x: Any, origin: str = "host") -> Any:
        """The same structure with TensorRef in place of tensors, Descriptor in place of host descriptors, numbers as
        Python's."""
        if isinstance(x, torch.Tensor):
            return self.ref(x, origin)
        if isinstance(x, (list, tuple)):
            parts = [self.refs(e, origin) for e in x]
            return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
        if hasattr(x, "block_shape") and hasattr(x, "base"):
            shape, strides, block = (tuple(int(n) for n in part) for part in (x.shape, x.strides, x.block_shape))
            return Descriptor(self.ref(x.base), shape, strides, block, x.padding, getattr(x, "round_f32_to_tf32", None))
        return (
            x.item() if isinstance(x, np.generic) else getattr(x, "value", x) if type(x).__name__ == "constexpr" else x
        )

    def is_traced(self, *xs: Any) -> bool:
        with _disable_current_modes():
            return any(t.untyped_storage().data_ptr() in self.traced for x in xs for t in tensors_of(x))

    def trace(self, *xs: Any, known: Range | None = None) -> None:
        """Their contents depend on data from here on; what was known of them is replaced by `known`."""
        with _disable_current_modes():
            for address in {t.untyped_storage().data_ptr() for x in xs for t in tensors_of(x)}:
                self.traced.add(address)
                self.ranges.pop(address, None)
                if known is not None:
                    self.ranges[address] = known

    def known(self, x: Any) -> Range | int | None:
        """A number, the range of a tensor's contents, None."""
        if not isinstance(x, torch.Tensor):
            return int(x) if isinstance(x, (bool, int)) else None
        with _disable_current_modes():
            if self.is_traced(x):
                return self.ranges.get(x.untyped_storage().data_ptr())
            whole = x.numel() > 0 and not x.is_floating_point() and not x.is_complex()
            return (int(x.min()), int(x.max())) if whole else None

    # ---- events

    def launch(self, bound: Bound) -> None:
        """A launch of a Triton function."""
        args = self.pass_to_kernel(bound.args)
        self.ordered(bound)
        self.unchanged(bound)
        code = bound.kernel.fn.__code__
        streams.now().happened(host_place())
        self.configs = max(self.configs, bound.config[1])
        self.events.append(Launch(
            kernel=bound.kernel.fn.__name__, file=code.co_filename, line=code.co_firstlineno, grid=bound.grid,
            args=args, constexprs=frozenset(n for n, kind in bound.signature.items() if kind == "constexpr"),
            options=bound.options, config=bound.config, host=host_place(), module=self.module(bound),
            operands=tuple(self.refs(v) for n, kind in bound.signature.items() for v in leaves(kind, bound.args[n])),
            restored=bound.restored, reset=bound.reset,
        ))  # fmt: skip

    def module(self, bound: Bound) -> Callable[[], Module]:
        """Gives the typed IR of a launch, or raises Unsupported; lowered now, with all that the kernel sees."""
        try:
            return partial(_given, bound, lowered(bound))
        except (Unsupported, TimeoutError) as error:  # said where the IR is asked for, not by the host function
            return partial(_given, bound, error)

    def ordered(self, bound: Bound) -> None:
        """Refuses a launch that a GPU may start before what was launched earlier is done, or may not start at all."""
        if bound.options.get("launch_pdl") and any(_writes(e) for e in self.events):
            raise Unsupported("launch_pdl=True after other work: the kernel may start before it is done", host_place())
        if bound.options.get("launch_cooperative_grid"):
            raise Unsupported(
                "launch_cooperative_grid=True: a grid that does not fit on the GPU is an error", host_place()
            )

    def unchanged(self, bound: Bound) -> None:
        """Refuses a launch of what reads other globals than at an earlier launch: Triton raises an error there, or runs
        what it has compiled before."""
        if name := bound.scope.changed(self.known_to_triton.read):
            what = f"{name}, which {bound.kernel.fn.__name__} reads, is not what it was at an earlier launch"
            raise Unsupported(what, host_place(), "Triton compiles a kernel with what it reads at its first launch")
        kernel, kinds = bound.kernel, repr(bound.signature)
        for path, value in bound.constexprs.items():
            with suppress(TypeError):  # which cannot be the key of a dictionary
                _, first = self.known_to_triton.constants.setdefault((id(kernel), kinds, path, value), (kernel, value))
                if type(first) is not type(value) or repr(first) != repr(value):
                    what = f"a compile-time argument of {kernel.fn.__name__} is {value!r}, and {first!r} earlier"
                    raise Unsupported(
                        what, host_place(), "Triton takes them for the same, and compiles the first alone"
                    )

    def launch_module(
        self, module: Module, place: Place, args: Mapping[str, Any], grid: tuple[int, int, int], options: dict[str, Any]
    ) -> None:
        """A launch of Triton IR that is there already."""
        refs = self.pass_to_kernel(args)
        self.events.append(Launch(
            kernel=module.entry.name, file=place.file, line=place.line, grid=grid, args=refs, constexprs=frozenset(),
            options=options, config=(0, 1), host=place, module=lambda: module, operands=tuple(refs.values()),
        ))  # fmt: skip

    def pass_to_kernel(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Everything that a kernel gets a pointer to may be written by it."""
        refs = {n: self.refs(v) for n, v in args.items()}
        for v in args.values():
            if any(map(self.on_cpu.has, tensors_of(getattr(v, "base", v)))):
                raise Unsupported("a launch gets a tensor that is on the CPU", host_place())
            if any(map(self.by_default.has, tensors_of(getattr(v, "base", v)))):
                self.assume(cpu_memory.BY_DEFAULT)
            self.trace(getattr(v, "base", v))
        return refs

    def copied(self, source: object, target: object, unfinished: bool) -> None:
        """A copy between the memory of the CPU and the GPU: the host waits for it unless it is `unfinished`."""
        both = [t for t in (source, target) if isinstance(t, torch.Tensor)]
        of_host = [self.on_cpu.has(t) or self.pinned.has(t) for t in both]
        if len(both) < 2 or of_host[0] == of_host[1]:
            return
        if unfinished:
            streams.now().copied(self.key(both[of_host[1]]), writes=of_host[1])
        else:
            streams.now().waited()

    def returned(self, outputs: Mapping[str, torch.Tensor]) -> dict[str, TensorRef]:
        """The tensors that the host function returns. Raises Unsupported where its work is without an order."""
        for t in outputs.values():
            streams.now().used(self.key(t), False, host_place())
        streams.now().ended()
        return {n: self.ref(t) for n, t in outputs.items()}

    def touched(self, func: OpOverload, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        """An operator, before it runs, may use memory of the CPU that a copy still reads or writes."""
        ongoing, written = streams.now(), written_positions(func)
        if not ongoing.copies or (func.is_view and not written):
            return
        for k, a in enumerate(func._schema.arguments):
            for t in tensors_of(args[k] if k < len(args) else kwargs.get(a.name)):
                ongoing.used(self.key(t), k in written, host_place())

    def assume(self, what: str) -> None:
        """Something of the machine that a run takes for granted; a reading, whose result is a proof, notes it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = torch.device("cpu")
        if func.namespace not in PYTORCH:
            return self.inner(func, args, kwargs)
        call, func = func, as_view(func)
        name = func.overloadpacket.__name__
        if self.is_traced(*read_arguments(name, args)):
            raise Unsupported(f"host code reads tensor data (aten.{name})", host_place(), help=DATA_HELP)
        from_data = name not in CONSTANT and self.is_traced(args, kwargs)
        known = (
            result_range(name, [self.known(a) for a in args[:2]], kwargs.values())
            if from_data and self.ranges
            else None
        )
        given = tuple(self.refs(a) for a in args), {k: self.refs(v) for k, v in kwargs.items()}
        self.touched(func, args, kwargs)
        result = call(*args, **kwargs)
        tensors = tuple(tensors_of(result))
        written = [args[k] for k in written_positions(func) if k < len(args)]
        untouched = self._untouched(func, tensors, written)
        if name in UNINITIALISED and not untouched:
            for t in tensors:
                t.zero_()
        if written and from_data:
            self.trace(result, *written)
        elif from_data and (known is None or known[0] < known[1]):
            self.trace(result, known=known)
        self.on_cpu.follow(args, tensors)
        self.by_default.follow(args, tensors)
        outputs = tuple(self.ref(t, f"aten.{name}") for t in tensors)
        values = tuple(t.new_zeros(()).expand(t.shape) if untouched else t.detach().clone() for t in tensors)
        if name not in UNINITIALISED and not (func.is_view and not written):
            streams.now().happened(host_place())
        self.events.append(TorchOp(func, *given, outputs, values, host_place()))
        return result

    def _untouched(self, func: OpOverload, made: Sequence[torch.Tensor], written: Sequence[object]) -> bool:
        """Whether the results are large and nobody has written their memory: new, or views of such."""
        addresses = {self.key(t) for t in made}
        if func.is_view and not written:
            return bool(addresses) and addresses <= self.untouched
        self.untouched -= addresses | {self.key(t) for t in tensors_of(list(written))}
        new = func.overloadpacket.__name__ in UNINITIALISED and any(t.numel() > LARGE_ELEMENTS for t in made)
        if new:
            self.untouched |= addresses
        return new

    def inner(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A custom operator is what its implementation does: it runs with the recorder on."""
        from torch._C import DispatchKey, DispatchKeySet

        key = DispatchKey.CUDA if func.has_kernel_for_dispatch_key(DispatchKey.CUDA) else DispatchKey.CPU
        with self:
            return func.redispatch(DispatchKeySet(key), *args, **kwargs)


def _writes(e: Launch | TorchOp) -> bool:
    """Whether an event computes on the device."""
    return isinstance(e, Launch) or not (e.func.is_view or e.func.overloadpacket.__name__ in UNINITIALISED)


def _given(_: Bound, found: Module | Unsupported | TimeoutError) -> Module:
    if isinstance(found, Exception):
        raise found
    return found


def lowered(bound: Bound) -> Module:
    """The typed IR of a launch, of the globals that the kernel read at that time."""
    with bound.scope.restored():
        return lower(bound.kernel, bound.signature, bound.constexprs, bound.options)


DATA_HELP = "the launches would depend on data; pass the number as a parameter of the case"


def read_arguments(name: str, args: Any) -> list[Any]:
    """The arguments whose contents the host sees. x[mask] has a shape that depends on the mask."""
    if name == "index":
        return [i for i in args[1] if i is not None and i.dtype in (torch.bool, torch.uint8)]
    return [args[k] for k in READS.get(name, ()) if k < len(args)]


def written_positions(func: Any) -> list[int]:
    """Positions of the arguments that the operator writes."""
    return [k for k, a in enumerate(func._schema.arguments) if a.alias_info is not None and a.alias_info.is_write]


class _Reads(TorchFunctionMode):  # type: ignore[misc]
    """Tensor methods that read contents without the dispatcher, and those that say where a tensor is to lie."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        reads = name in PYTHON_READS or (name in TEXTS and texts.is_of_host())
        if reads and self.recorder.is_traced(args):
            raise Unsupported(f"host code reads tensor data (Tensor.{name})", host_place(), help=DATA_HELP)
        on_cpu = self.recorder.on_cpu
        if func in cpu_memory.ANSWERS and on_cpu.has(args[0]):
            return cpu_memory.ANSWERS[func]
        options = kwargs or {}
        result = func(*args, **options)
        device = cpu_memory.wanted(name, args, options) or self._beside(name, args, options)
        if gpu := cpu_memory.named_gpu(name, args, options):
            self.recorder.assume(cpu_memory.BY_NUMBER.format(gpu))
        if device:
            result = self._moved(name, device, args, options, result)
        for source, target in cpu_memory.copies(name, args, options, result):
            self.recorder.copied(source, target, cpu_memory.is_unfinished(name, args, options))
        if device:
            return result
        if cpu_memory.is_by_default(func, args):
            self.recorder.by_default.put(result)
        return result

    def _beside(self, name: str, args: tuple[object, ...], options: Mapping[str, object]) -> str:
        """The device of another tensor that x.to(other) names; empty where it names none."""
        other = next((t for t in (*args[1:2], options.get("other")) if isinstance(t, torch.Tensor)), None)
        if name != "to" or other is None:
            return ""
        return "cpu" if self.recorder.on_cpu.has(other) else "cuda"

    def _moved(
        self, name: str, device: str, args: tuple[object, ...], options: Mapping[str, object], result: object
    ) -> object:
        """The result of a call that names a device, or memory that is pinned."""
        recorder, given = self.recorder, args[0] if args else None
        recorder.by_default.leave(result)
        if device == "cuda" and isinstance(given, torch.Tensor) and recorder.pinned.has(given):
            result = recorder.pinned.moved(name, device, given, result)
        result = recorder.on_cpu.moved(name, device, given, result)
        if isinstance(result, torch.Tensor) and (options.get("pin_memory") or name == "pin_memory"):
            recorder.pinned.put(result)
        return result
