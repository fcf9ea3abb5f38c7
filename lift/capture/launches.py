"""Kernel launches, seen instead of executed: Triton's launch path, replaced for as long as a context lasts.

kernel[grid](...) is walked from the outside in, as Triton does it: an Autotuner adds the configuration asked for,
Heuristics add what they compute, the JITFunction binds arguments to names. Wrappers that only keep compiled kernels
are looked through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from operator import index
from types import FunctionType, SimpleNamespace
from typing import Any

from ..errors import CaseError, Place
from ..runtime.isolate import INTERPRETED
from ..runtime.session import table
from ..ttir.kernel_globals import Scope, taken
from .fake_cuda import replaced


@dataclass(frozen=True, slots=True)
class Bound:
    """One launch as Triton binds it. `args` and `signature` by parameter name in order, unspecialised; `constexprs`
    by path; `config` (k, n): configuration k of the n that the autotuner has; `restored`: the parameters that it puts
    back or zeroes before it runs the kernel again, "*" where a hook may do so; `reset`: those that it zeroes once more
    after tuning, "*" where a hook of the autotuner's may change any of them then; `scope`: what the kernel reads beside
    its arguments, as it is at the launch."""

    kernel: Any
    args: dict[str, Any]
    grid: tuple[int, int, int]
    signature: dict[str, Any]
    constexprs: dict[Any, Any]
    options: dict[str, Any]
    config: tuple[int, int]
    restored: frozenset[str] = frozenset()
    reset: frozenset[str] = frozenset()
    scope: Scope = Scope()


class Compiled:
    """The result of a launch: answers the questions that host code asks of a compiled kernel, and launching it
    again."""

    n_regs, n_spills, n_max_threads, function, packed_metadata = 32, 0, 1024, 0, (4, 1, 0)
    asm: Mapping[str, str] = {}
    metadata = SimpleNamespace(
        shared=1024, num_warps=4, num_ctas=1, num_stages=3, cluster_dims=(1, 1, 1), name="kernel"
    )

    def __init__(self, kernel: Any, kwargs: dict[str, Any], config: tuple[int, int]) -> None:
        self._again = (kernel, kwargs, config)

    def _init_handles(self) -> None: ...

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self._launch(grid, args, kwargs)

    def _launch(self, grid: Any, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        kernel, kwargs, config = self._again
        names = [p.name for p in kernel.params if not p.is_constexpr]
        if len(args) != len(names):  # with constexprs, in signature order
            names = kernel.arg_names
        given = {**kwargs, **dict(zip(names, args, strict=False)), **more}
        return _active[-1].bind(kernel, (), {**given, "grid": grid}, config)


_active: list[Interception] = []  # host code may keep a compiled kernel from one run to the next


def _uncompiled(function: FunctionType) -> CaseError:
    """Said of a kernel that `triton.jit` took for its interpreter."""
    code = function.__code__
    what = f"{function.__name__} was declared with {INTERPRETED} set: triton.jit made no kernel that can be read"
    help = f"unset {INTERPRETED} before its file is imported; the command trilift does that"
    return CaseError(what, Place(code.co_filename, code.co_firstlineno), help=help)


class Interception:
    def __init__(self, record: Callable[[Bound], None], config: int) -> None:
        self.record, self.config = record, config
        self.tried = 1  # configurations that the tuner walked last would run

    def launch(self, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Configurations that fail a static_assert are passed over, as the real autotuner does."""
        rejected: set[int] = set()
        while True:
            try:
                return self.walk(node, args, kwargs, rejected)
            except _Rejected as failed:
                rejected.add(failed.config)

    def walk(self, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any], rejected: set[int]) -> Any:
        from triton.runtime.autotuner import Autotuner, Heuristics
        from triton.runtime.jit import JITFunction

        config, restored, reset = (0, 1), frozenset[str](), frozenset[str]()
        while not isinstance(node, JITFunction):
            if isinstance(node, Autotuner):
                kwargs, config = self.tuned(node, args, kwargs, rejected)
                restored, reset = _restored(node, self.tried), _reset(node)
            elif isinstance(node, Heuristics):
                for name, f in node.values.items():
                    kwargs = {**kwargs, name: f({**dict(zip(node.arg_names, args, strict=False)), **kwargs})}
            node = node.fn
            if isinstance(node, FunctionType):
                raise _uncompiled(node)
        may_reject = config[0] not in rejected
        return self.bind(node, args, kwargs, config, may_reject=may_reject, restored=restored, reset=reset)

    def tuned(
        self, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any], rejected: set[int]
    ) -> tuple[dict[str, Any], tuple[int, int]]:
        """The keyword arguments with a configuration: the one asked for, or the next that is neither pruned nor
        rejected; the first that is left if all are."""
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        left = _pruned(tuner, {k: v for k, v in kwargs.items() if k not in ("grid", "warmup")})
        count = len(tuner.configs)
        order = [(self.config + k) % count for k in range(count)]
        same, ours = {id(c) for c in left}, {id(c) for c in tuner.configs}
        made = [c for c in left if id(c) not in ours]  # by pruning: compared as a whole
        usable = [k for k in order if id(tuner.configs[k]) in same or tuner.configs[k] in made]
        self.tried = len(left)
        chosen = next((k for k in usable if k not in rejected), min(usable, default=0))
        config = tuner.configs[chosen] if usable else left[0]
        tuner.best_config = config
        with_config = {**kwargs, **config.all_kwargs()}
        if config.pre_hook is not None:
            config.pre_hook({**tuner.nargs, **with_config})
        return with_config, (chosen, count)

    def bind(
        self,
        kernel: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        config: tuple[int, int],
        may_reject: bool = False,
        restored: frozenset[str] = frozenset(),
        reset: frozenset[str] = frozenset(),
    ) -> Compiled:
        from ..ttir.lower import unspecialise

        kwargs = dict(kwargs)
        grid, warmup = kwargs.pop("grid", None), kwargs.pop("warmup", False)
        for hook in kernel.pre_run_hooks:
            hook(*args, **kwargs)
        kwargs.setdefault("debug", False)
        *_, backend, binder = binder_of(kernel)
        args_by_name, specialization, options = binder(*args, **kwargs)
        _, signature, constexprs, _ = kernel._pack_args(backend, kwargs, args_by_name, specialization, options)
        signature, constexprs = unspecialise(kernel, signature, constexprs, args_by_name)
        options = {k: v for k, v in kwargs.items() if k not in signature}
        if may_reject and config[1] > 1 and _fails_static_assert(kernel, signature, constexprs, options):
            raise _Rejected(config[0])
        if not warmup:
            scope = taken(kernel, constexprs)  # Triton compiles before it asks for the grid
            numbers = grid(args_by_name) if callable(grid) else grid
            given = dict(args_by_name), grid_of(numbers), signature, constexprs, options, config, restored, reset
            self.record(Bound(kernel, *given, scope))
        constants = {p.name: args_by_name[p.name] for p in kernel.params if p.is_constexpr}
        return Compiled(kernel, {**constants, **options}, config)


_BINDERS: dict[tuple[int, str], Any] = table("launches.binders", {})  # by id of the kernel, and driver


def binder_of(kernel: Any) -> Any:
    """The function that binds the arguments of a kernel: Triton writes and compiles it, once per process and driver."""
    from triton.runtime.driver import driver

    key = id(kernel), type(driver.active).__qualname__
    if key not in _BINDERS:
        _BINDERS[key] = kernel, kernel.create_binder()
    return _BINDERS[key][1]


def _restored(tuner: Any, tried: int) -> frozenset[str]:
    """The parameters that an autotuner puts back or zeroes between runs of the configurations that it tries; "*" where
    hooks may do so, or where there is only one to try."""
    names = [*(getattr(tuner, "restore_value", None) or ()), *(getattr(tuner, "reset_to_zero", None) or ())]
    hooks = [getattr(tuner, "user_defined_pre_hook", False), *(c.pre_hook for c in tuner.configs)]
    return frozenset([*names, *(["*"] if any(hooks) or tried < 2 else [])])


def _reset(tuner: Any) -> frozenset[str]:
    """The parameters that an autotuner zeroes between tuning and the launch that counts; "*" where a hook may do
    anything to them then. A later call with the same key does neither."""
    if len(tuner.configs) < 2:
        return frozenset()
    if getattr(tuner, "user_defined_pre_hook", False):
        return frozenset("*")
    return frozenset(getattr(tuner, "reset_to_zero", None) or ())


class _Rejected(Exception):
    def __init__(self, config: int) -> None:
        super().__init__(config)
        self.config = config


def _fails_static_assert(
    kernel: Any, signature: dict[str, Any], constexprs: dict[Any, Any], options: dict[str, Any]
) -> bool:
    from triton.compiler.errors import CompileTimeAssertionFailure

    from ..errors import Unsupported
    from ..ttir.lower import lower

    try:
        lower(kernel, signature, constexprs, options)
    except Unsupported as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, CompileTimeAssertionFailure):
            cause = cause.__cause__
        return cause is not None
    return False


def _pruned(tuner: Any, kwargs: dict[str, Any]) -> list[Any]:
    """Early pruning as the tuner does it; a model that cannot be asked without a device prunes nothing."""
    try:
        return list(tuner.prune_configs(kwargs)) or list(tuner.configs)
    except Exception:
        return list(tuner.configs)


def grid_of(numbers: Any) -> tuple[int, int, int]:
    """Three numbers from what a launch gives. Raises TypeError for a float, as Triton does."""
    parts = tuple(index(n) for n in (numbers if isinstance(numbers, (tuple, list)) else (numbers,)))
    return (*parts, *(1,) * (3 - len(parts)))  # type: ignore[return-value]


@contextmanager
def intercepted(record: Callable[[Bound], None], config: int = 0) -> Iterator[None]:
    """Every launch inside goes to `record` and not to a device. `config`: which autotune configuration, modulo their
    number."""
    from triton.runtime.autotuner import Autotuner, Heuristics
    from triton.runtime.jit import JITFunction, KernelInterface

    interception = Interception(record, config)

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return interception.launch(self, args, kwargs)

    def item(self: Any, grid: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: interception.launch(self, args, {**kwargs, "grid": grid})

    with ExitStack() as stack:
        stack.enter_context(_bare())
        for kind in (JITFunction, Autotuner, Heuristics):
            stack.enter_context(replaced(kind, {"run": run}))
        stack.enter_context(replaced(KernelInterface, {"__getitem__": item}))
        _active.append(interception)
        stack.callback(_active.pop)
        yield


@contextmanager
def executed(run: Callable[[Bound], None]) -> Iterator[None]:
    """Every launch inside that reaches a JITFunction goes to `run`; autotuners and heuristics do what they do."""
    from triton.runtime.jit import JITFunction

    interception = Interception(run, 0)

    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        return interception.bind(self, args, kwargs, (0, 1))

    _active.append(interception)
    try:
        with replaced(JITFunction, {"run": launch}), _bare():
            yield
    finally:
        _active.remove(interception)


def _bare() -> AbstractContextManager[None]:
    """Where torch.library.wrap_triton(kernel) is the kernel, as within an operator made by triton_op."""
    from torch._library import triton

    return triton.set_wrap_triton_enabled(False)  # type: ignore[no-any-return]
