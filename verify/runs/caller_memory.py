"""The memory of the caller: inputs that are changed, outputs that share memory, launches that autotuning repeats.

The contents that a host function leaves in its inputs are part of its result. If the reference leaves an input alone,
so must it:

    x[i, ...] = x[i, ...]     the claim about an input x that the function may write and the reference does not
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trilift.lift.capture.trace import Descriptor, Launch, TensorRef, TorchOp, Trace
from trilift.lift.cases.declaration import Case
from trilift.lift.errors import TriliftError
from trilift.lift.language.axis_names import letters
from trilift.lift.pytorch.aten import operators
from trilift.lift.pytorch.symbolic_tensor import type_of_name
from trilift.lift.replay.execute import results
from trilift.lift.replay.torch_ops import refs, written_arguments
from trilift.lift.terms import term as T
from trilift.lift.terms.spec import Formula
from trilift.lift.terms.term import Axis
from trilift.lift.ttir.ir import Block, Module, Op, Value
from trilift.lift.ttir.written_pointers import WRITERS

from ..model.slices import parents
from ..model.verdict import Clause

ATOMICS = frozenset(("tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_reduce"))
READERS = frozenset(("tt.load", "tt.descriptor_load", "tt.descriptor_gather"))
ZEROS = frozenset(("zeros", "zeros_like", "new_zeros", "zero_", "zero"))  # what leaves nothing but zeros
EMPTY = frozenset(("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"))
FILLS = frozenset(("zero_", "fill_", "copy_"))  # operations that leave nothing of what a tensor held
IDEMPOTENT = frozenset(("max", "min", "umax", "umin", "and", "or", "exch"))


def untouched(case: Case, name: str) -> Formula:
    """The formula of an input that keeps its contents."""
    shape = case.dims(name)
    axes = tuple(Axis(n, s) for n, s in zip(letters(shape), shape, strict=True))
    index = tuple(T.const(0) if a.size is T.const(1) else T.axis(a) for a in axes)
    dtype = case.tensors[name].dtype
    return Formula(name, axes, T.read(name, index, type_of_name(dtype)), dtype, name)


def is_untouched(f: Formula) -> bool:
    """Whether a formula says that an input keeps its contents."""
    index = tuple(T.const(0) if a.size is T.const(1) else T.axis(a) for a in f.axes)
    return f.in_place == f.name == f.term.attr and f.term.op == "read" and f.term.args == index


def returned_inputs(trace: Trace) -> dict[str, str]:
    """input -> output, for outputs that are an input itself which something may have written."""
    same = {x: name for name, (_, x) in results(trace).items() if x is not None and x != name}
    changed = set(_written(trace)) if same else set()
    return {x: name for x, name in same.items() if trace.inputs[x].buffer.address in changed}


def _written(trace: Trace) -> Iterator[int]:
    """The addresses of buffers that an event may write."""
    for e in trace.events:
        refs = _touched(e, _writes) if isinstance(e, Launch) else [ref for _, ref in written_arguments(e)]
        yield from (ref.buffer.address for ref in refs)


def _touched(e: Launch, operations: Callable[[Op], bool]) -> list[TensorRef]:
    """The tensors that operations of a launch may go to; all of them where that is not known."""
    module = e.module()
    found = sources(module, [op.operands[0] for op in module.walk() if operations(op)])
    return [
        x
        for v, x in zip(module.entry.args, e.operands, strict=True)
        if isinstance(x, TensorRef) and (found is None or v in found)
    ]


def sources(module: Module, pointers: Iterable[Value]) -> set[Value] | None:
    """The arguments of the kernel that pointers may come from, through loops and branches; None where that is not
    known."""
    above, out = parents(module), set[Value]()
    todo, seen = list(pointers), set[Value]()
    while todo:
        v = todo.pop()
        if v in seen:
            continue
        seen.add(v)
        if any(v is x for x in module.entry.args):
            out.add(v)
            continue
        before = _of_result(v) if isinstance(v.owner, Op) else _of_argument(v, above, module)
        if not before:
            return None
        todo += before
    return out


def _of_result(v: Value) -> list[Value]:
    """The pointers that a result may be."""
    op = v.owner
    assert isinstance(op, Op)
    if op.name in ("tt.load", "tt.int_to_ptr"):
        return []
    if not op.regions:
        return [x for x in op.operands if x.type.element == "ptr"]
    k = _number(v, op.results)
    return ([op.operands[3 + k]] if op.name == "scf.for" else []) + [x.operands[k] for x in _ends(op)]


def _of_argument(v: Value, above: Mapping[Block, Op], module: Module) -> list[Value]:
    """The pointers that an argument of a block may be: of the iteration before, or of a branch."""
    if not isinstance(v.owner, Block):
        return []
    k, op = _number(v, v.owner.args), above.get(v.owner)
    if op is None:
        jumps = (x for last in module.walk() for x in last.successors)
        return [values[k] for label, values in jumps if label == v.owner.label]
    if op.name == "scf.for":
        return [op.operands[2 + k], *(x.operands[k - 1] for x in _ends(op))]
    return [x for last in (op, *_ends(op)) for x in last.operands if x.type.element == "ptr"]


def _number(v: Value, values: Sequence[Value]) -> int:
    return next(k for k, x in enumerate(values) if x is v)


def _ends(op: Op) -> list[Op]:
    """The last operations of the blocks of an operation."""
    return [last for r in op.regions for b in r.blocks for last in b.ops[-1:]]


def _writes(op: Op) -> bool:
    return op.name in WRITERS


def _reads(op: Op) -> bool:
    return op.name in READERS


def _accumulates(op: Op) -> bool:
    """Whether the operation twice is not the operation once."""
    return op.name in ATOMICS and op.attrs.get("atomic_rmw_op") not in IDEMPOTENT


def repeated(trace: Trace) -> str:
    """The kernel that autotuning runs several times on memory which it changes and reads, and a tensor of that memory,
    in words; "" where there is none."""
    for e in trace.launches:
        if e.config[1] < 2 or "*" in e.restored:
            continue
        restored = {x.buffer.address for n, x in e.args.items() if n in e.restored and isinstance(x, TensorRef)}
        changed = {x.buffer.address for x in _touched(e, _writes)} & {x.buffer.address for x in _touched(e, _reads)}
        changed |= {x.buffer.address for x in _touched(e, _accumulates)}
        names = [n for n, x in e.args.items() if isinstance(x, TensorRef) and x.buffer.address in changed - restored]
        if names:
            why = f"autotuning runs {e.kernel} several times on `{names[0]}`, which it reads and changes"
            return f'broken-contract: {why}; pass restore_value=["{names[0]}"], or reset_to_zero for a sum'
    return ""


def reset(trace: Trace) -> str:
    """The kernel that autotuning launches on memory whose contents it has zeroed after tuning, or may have changed by
    a hook, in words; "" where there is none. The first call of a key does so, and a later one does not."""
    filled = {x.buffer.address for x in trace.inputs.values()}
    for e in trace.events:
        if not isinstance(e, Launch):
            filled = _filled(filled, e)
            continue
        named = e.args.items() if "*" in e.reset else [(n, e.args[n]) for n in e.reset if n in e.args]
        tensors = [(n, x.base if isinstance(x, Descriptor) else x) for n, x in named]
        held = lambda x: "*" in e.reset or x.buffer.address in filled or x.buffer.origin == "host"  # noqa: E731, B023
        lost = [n for n, x in tensors if isinstance(x, TensorRef) and held(x)]
        if lost:
            what = "autotuning may change by pre_hook" if "*" in e.reset else "autotuning zeroes by reset_to_zero"
            why = f"{what} what `{lost[0]}` holds before the first launch of {e.kernel}, and not before later ones"
            return f'broken-contract: {why}; pass restore_value=["{lost[0]}"]'
        filled |= {x.buffer.address for x in _touched(e, _writes)}
    return ""


def _filled(before: set[int], e: TorchOp) -> set[int]:
    """The addresses of buffers that hold more than zeros after an operation."""
    name = operators.packet(e.func)
    to = {x.buffer.address for _, x in written_arguments(e)}
    new = {x.buffer.address for x in e.outputs}
    whole = {x.buffer.address for x in e.outputs if math.prod(x.shape) * x.itemsize == x.buffer.nbytes}
    if name in ZEROS:
        return before - whole
    return before | to | (set() if name in EMPTY or e.func.is_view else new)


def remembered(trace: Trace) -> str:
    """The launch or operation that finds what an earlier call left in a tensor that the host function keeps, in words;
    "" where none is seen to. Only what an operation fills as a whole is known to hold no more of it."""
    acts = [*zip(trace.events, map(_used, trace.events), strict=True)]
    changed = {x.buffer.address for _, (_, to) in acts for x in to}
    for e, (of, to) in acts:
        if found := next((x for x in of if x.buffer.origin == "host" and x.buffer.address in changed), None):
            what = e.kernel if isinstance(e, Launch) else str(e.func)
            return f"{what} finds in a {found.dtype} tensor what an earlier call of the host function left there"
        if not isinstance(e, Launch) and operators.packet(e.func) in FILLS:
            changed -= {x.buffer.address for x in to if math.prod(x.shape) * x.itemsize == x.buffer.nbytes}
    return ""


def _used(e: Launch | TorchOp) -> tuple[list[TensorRef], list[TensorRef]]:
    """The tensors that it may read, and those that it may write."""
    if isinstance(e, Launch):
        return [*_touched(e, _reads), *_touched(e, _accumulates)], [*_touched(e, _writes)]
    to = [x for _, x in written_arguments(e)]
    if e.func.is_view or operators.packet(e.func) == "lift_fresh":
        return [], to
    return [x for x in refs((e.args, e.kwargs)) if operators.packet(e.func) not in FILLS or x not in to], to


# ---- shared memory ---------------------------------------------------------------------------------------------------


def kept(again: Trace) -> dict[str, str]:
    """output -> the reason why it may not be a new tensor: a second call returned memory that it did not allocate."""
    why = "the host function returns memory that this thread did not allocate in this call: the next may overwrite it"
    return {n: why for n, ref in again.outputs.items() if ref.buffer.origin == "host" and ref.buffer.nbytes}


def shared(case: Case, trace: Trace, fn: Callable[..., object]) -> dict[str, list[str]]:
    """output -> what shares its memory (an input, an output before it), unless it does so for the PyTorch function."""
    mine = {n: ref.buffer.address for n, ref in {**trace.inputs, **trace.outputs}.items() if ref.buffer.nbytes}
    outputs = list(trace.outputs)
    pairs = [(n, o) for k, n in enumerate(outputs) for o in (*trace.inputs, *outputs[:k])]
    found = [(n, o) for n, o in pairs if n in mine and o in mine and mine[n] == mine[o]]
    theirs = _storages(case, trace, fn, outputs) if found else {}
    out: dict[str, list[str]] = {}
    for n, o in found:
        if theirs.get(n) is None or theirs.get(n) != theirs.get(o):
            out.setdefault(n, []).append(o)
    return out


def misplaced(mine: Sequence[bool], theirs: Sequence[bool]) -> str:
    """The first result that one side returns and for which the other returns None; "" where results are not as many."""
    if len(mine) != len(theirs):
        return ""
    found = next((k for k, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b), None)
    if found is None:
        return ""
    sides = ("the host function", "the reference") if mine[found] else ("the reference", "the host function")
    return f"result {found} of {sides[0]} is None, that of {sides[1]} is not"


def _absent(case: Case, trace: Trace, fn: Callable[..., object]) -> tuple[bool, ...]:
    """Which results of the PyTorch function are None at one run; () where it raises."""
    import torch

    from trilift.lift.capture.run import absent

    try:
        with torch.random.fork_rng(devices=[]):
            return absent(fn(**case.sample(trace.dims, np.random.default_rng(0))))
    except Exception:  # whatever the function raises, it says nothing of its results
        return ()


def _storages(case: Case, trace: Trace, fn: Callable[..., object], outputs: Sequence[str]) -> Mapping[str, int]:
    """The storages of inputs and outputs at one run of the PyTorch function; none where it raises."""
    import torch

    from trilift.lift.capture.run import named_outputs

    args = case.sample(trace.dims, np.random.default_rng(0))
    try:
        with torch.random.fork_rng(devices=[]):
            theirs = named_outputs(fn(**args), case.tensors)
    except Exception:  # whatever the function raises, it says nothing of its memory
        return {}
    if len(theirs) != len(outputs):
        return {}
    if set(theirs) != set(outputs):
        theirs = dict(zip(outputs, theirs.values(), strict=True))
    named = {**case.named(args), **theirs}
    return {n: x.untyped_storage().data_ptr() for n, x in named.items()}


@dataclass(frozen=True)
class CallerMemory:
    """The use of memory that a proof about contents does not see, at one small run of a case. `fn`: the PyTorch
    function that the case is compared with, if any."""

    case: Case
    fn: Callable[..., object] | None
    seed: int

    @cached_property
    def trace(self) -> Trace | None:
        """A small run; None where the host function cannot be run."""
        from trilift.lift.capture.run import capture
        from trilift.lift.cases.shapes import choose

        try:
            return capture(self.case, choose(self.case, 1, self.seed)[0], seed=self.seed)
        except TriliftError:
            return None

    @cached_property
    def again(self) -> str:
        """The launch that autotuning repeats, or that finds other contents in its first call, in words."""
        return (repeated(self.trace) or reset(self.trace)) if self.trace is not None else ""

    @cached_property
    def second(self) -> Trace | None:
        """Another call at the same sizes: what it finds outside of its arguments, the host function keeps."""
        from trilift.lift.capture.run import capture

        return capture(self.case, self.trace.dims, seed=self.seed) if self.trace is not None else None

    @property
    def written(self) -> list[str]:
        """The inputs that something may write in that run."""
        if self.trace is None:
            return []
        changed = set(_written(self.trace))
        return [n for n, ref in self.trace.inputs.items() if ref.buffer.address in changed]

    @cached_property
    def kept(self) -> dict[str, str]:
        return kept(self.second) if self.second is not None else {}

    @cached_property
    def remembered(self) -> str:
        """The tensor that calls hand on to later ones, in words."""
        return remembered(self.second) if self.second is not None else ""

    @cached_property
    def shared(self) -> dict[str, list[str]]:
        return shared(self.case, self.trace, self.fn) if self.trace is not None and self.fn is not None else {}

    @cached_property
    def misplaced(self) -> str:
        """The results in whose place one side returns None and the other a tensor, in words."""
        if self.trace is None or self.fn is None or not self.trace.absent:
            return ""
        return misplaced(self.trace.absent, _absent(self.case, self.trace, self.fn))

    def wrong(self, output: str) -> str:
        """Why an output is not what its contents say; "" where nothing is known to be wrong."""
        return self.again or self.kept.get(output, "") or self.misplaced

    def clauses(self, output: str) -> list[Clause]:
        """One clause for each tensor that shares the memory of an output."""
        why = "the result, which the reference returns as a new tensor"
        return [
            Clause("memory", None, f"{output} shares its memory with {x}", why) for x in self.shared.get(output, [])
        ]
