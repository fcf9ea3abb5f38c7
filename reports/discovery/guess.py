"""A signature for a kernel that is seen without its launch: types of parameters and values of constexprs.

The first guess comes from the source: what is loaded from is a pointer, what is tested is a flag, what shapes a tile
is a power of two; autotune configurations and defaults come before all. When Triton rejects it, the parameters that the
offending line depends on are changed one at a time, and a change is kept if Triton then gets further.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from .usage import Usage, names, usage

INTEGER = re.compile(
    r"(^|_)(idx|idxs|ind|inds|index|indexes|indices|indptr|label|labels|target|targets|token|tokens|ids?|cu|seqlens?|lens?|lengths?|"
    r"offsets?|chunk_indices|chunk_offsets|table|slots?|perm|loc|count|counts|hist|expert|topk_ids|seed|cnt|num|pos|position|order)"
    r"($|_|s$)|seqlen|indices|indptr|offsets$|_idx|lut",
    re.I,
)
BOOLEAN = re.compile(r"(^|_)(mask|masks|flag|flags|cond|condition|bool)($|_)", re.I)
REAL = re.compile(
    r"eps|scale|init|alpha|beta|gamma|(^|_)(p|lr|slope|value|val|momentum|decay|smoothing|softcap|cap|rate|prob|threshold|ratio|factor|lambda|"
    r"negative_slope|weight_decay|margin|temperature|limit|delta|min|max|low|high|mean|std|rstd|start_value|fill|other|inv\w*)($|_)",
    re.I,
)
STRIDE = re.compile(r"stride|_s\d$|numel|size|dim|len|^[A-Z]$|n_|num_|^[mnkbhdt]$", re.I)
FLAG = re.compile(
    r"^(is|has|use|do|need|with|enable|store|output|save|apply|allow|even|causal|return|norm|accumulate|reverse|add)(_|$)",
    re.I,
)
DTYPE = re.compile(r"dtype|_type$|(^|_)ty$", re.I)
WARPS = {"num_warps", "num_stages", "num_ctas", "maxnreg"}
SIZES = (16, 32, 64, 128, 8, 4, 2, 1)
ATTEMPTS = 300


@dataclass
class Guess:
    """The arguments of `lift.ttir.lower`, by parameter name: a Triton type, or "constexpr" with its value in
    `constexprs`."""

    signature: dict[str, Any]
    constexprs: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)

    def changed(self, name: str, kind: str, value: Any = None) -> Guess:
        constexprs = {k: v for k, v in self.constexprs.items() if k != name}
        if kind == "constexpr":
            constexprs[name] = value
        return Guess({**self.signature, name: kind}, constexprs, self.options)


def first(kernel: Any) -> Guess:
    """The guess from the source alone. `kernel` is the JITFunction with its Autotuner and Heuristics around it."""
    fn, configs, heuristics = unwrapped(kernel)
    used, out = usage(fn), Guess({}, {})
    tuned = configs[0].all_kwargs() if configs else {}
    pending = []
    out.options = {k: v for k, v in tuned.items() if k in WARPS and v is not None}
    for param in fn.params:
        name = param.name
        if name in tuned and name not in WARPS:
            out = out.changed(name, "constexpr", tuned[name])
        elif param.is_constexpr or name in heuristics:
            out = out.changed(name, "constexpr", _constants(name, param, used, name in heuristics)[0])
        else:
            pending.append(param)
    for param in pending:
        out = out.changed(param.name, *_types(param.name, param, used, _sizes(used, out))[0])
    return Guess({p.name: out.signature[p.name] for p in fn.params}, out.constexprs, out.options)


def climb(kernel: Any, attempt: Callable[[Guess], Any]) -> tuple[Guess, Any]:
    """The first guess that `attempt` accepts, with its result; `attempt` raises what lift.ttir.lower raises.

    Raises the last error, with the most frequent message, when no change of one parameter gets further."""
    fn, configs, heuristics = unwrapped(kernel)
    used, params = usage(fn), {p.name: p for p in fn.params}
    guess, budget = first(kernel), ATTEMPTS
    try:
        return guess, attempt(guess)
    except Exception as error:
        best: Any = error
    seen = Counter([getattr(best, "why", "")])
    tried: set[str] = {repr(guess)}
    improved = True
    while improved and budget > 0:
        improved = False
        for candidate in _neighbours(fn, params, used, guess, best, heuristics):
            if repr(candidate) in tried:
                continue
            tried.add(repr(candidate))
            budget -= 1
            if budget <= 0:
                break
            try:
                return candidate, attempt(candidate)
            except Exception as error:
                seen[getattr(error, "why", "")] += 1
                if depth(error) > depth(best):
                    guess, best, improved = candidate, error, True
                    break
    best.why = seen.most_common(1)[0][0]  # what no change of a parameter helps against
    raise best


def depth(error: BaseException) -> tuple[int, ...]:
    """How far Triton got: the line of the kernel, then of the helper it calls there, and so on."""
    lines = []
    cause = error.__cause__
    while cause is not None:
        lines.append(getattr(getattr(cause, "node", None), "lineno", 0))
        cause = cause.__cause__
    return tuple(lines) or (0,)


def unwrapped(kernel: Any) -> tuple[Any, list[Any], set[str]]:
    """The JITFunction inside, the autotune configurations, the names that heuristics set."""
    from triton.runtime.jit import JITFunction

    configs: list[Any] = []
    heuristics: set[str] = set()
    while not isinstance(kernel, JITFunction):
        found = getattr(kernel, "configs", None)
        configs = configs or (list(found) if isinstance(found, (list, tuple)) else [])
        values = getattr(kernel, "values", None)
        heuristics |= set(values) if isinstance(values, dict) else set()
        kernel = kernel.fn
    return kernel, configs, heuristics


def _neighbours(
    fn: Any, params: dict[str, Any], used: Usage, guess: Guess, error: Exception, heuristics: set[str]
) -> Iterator[Guess]:
    """Guesses that differ in one parameter, those of the offending line first; then all floats at once."""
    near = [n for n in _blamed(fn, used, error) if n in params]
    for group in (near, [n for n in params if n not in near]):
        columns = [list(_alternatives(n, params[n], used, guess, n in heuristics)) for n in group]
        for row in zip_longest(*columns):
            yield from (g for g in row if g is not None)
    for dtype in ("*fp16", "*bf16", "*i32", "*i8", "*fp64"):
        yield Guess(
            {n: dtype if k == "*fp32" else k for n, k in guess.signature.items()}, guess.constexprs, guess.options
        )


def _alternatives(name: str, param: Any, used: Usage, guess: Guess, heuristic: bool) -> Iterator[Guess]:
    kind = guess.signature[name]
    if kind == "constexpr" and (param.is_constexpr or heuristic):
        for value in _constants(name, param, used, heuristic):
            if repr(value) != repr(guess.constexprs.get(name)):
                yield guess.changed(name, "constexpr", value)
    else:
        for other, value in _types(name, param, used, _sizes(used, guess)):
            if other != kind:
                yield guess.changed(name, other, value)


def _blamed(fn: Any, used: Usage, error: Exception) -> list[str]:
    """The names that the offending line reads, then all they are computed from."""
    line = depth(error)[0]
    inner = [
        n for n in ast.walk(ast.parse(fn.src)) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)
    ]
    if not inner:
        return []
    direct = list(dict.fromkeys(names(max(inner, key=lambda n: n.lineno))))
    return direct + sorted(used.origins(set(direct)) - set(direct))


def _constants(name: str, param: Any, used: Usage, heuristic: bool) -> list[Any]:
    """Values to try for a constexpr, likely ones first."""
    import triton.language as tl

    out: list[Any] = []
    literals = [v for v in used.literals.get(name, []) if v is not ...]
    if None not in literals and not any(isinstance(v, bool) for v in literals):
        out += literals
    dtypes = [tl.float32, tl.bfloat16, tl.float16, tl.int32, tl.int64, tl.float8e4nv]
    if param.has_default:
        out.append(param.default)
    if (name in used.dtypes and not name.isupper()) or DTYPE.search(name):
        out += dtypes
    if any(isinstance(v, str) for v in literals):
        out += literals
    if FLAG.search(name) or (name in used.flags and name not in used.sizes) or (heuristic and not _size(name, used)):
        out += [True, False]
    out += [v for v in literals if v is not None]
    if name in used.tuples or re.search(r"strides$|shapes?$|sizes$", name, re.I):
        out += [(1,) * n for n in (4, 3, 2, 5, 1)]
    sizes = list(SIZES)
    if not _size(name, used):
        sizes = [2, 1, 4, *SIZES]
    if REAL.search(name) and not _size(name, used):
        out.append(0.5)
    return list({repr(v): v for v in [*out, *sizes, True, False, None, *dtypes, 0.5, ""]}.values())


def _sizes(used: Usage, guess: Guess) -> list[int]:
    """Tile extents: the values of the size constexprs."""
    found = {v for n, v in guess.constexprs.items() if type(v) is int and v >= 16 and _size(n, used)}
    return [*sorted(found), *({16, 64} - found)]


def _size(name: str, used: Usage) -> bool:
    return name in used.sizes or bool(
        re.search(r"block|blk|tile|chunk|size|^B[A-Z]$|_[MNK]$|^[MNKDHVCT]$|dim", name, re.I)
    )


def _descriptors(rank: int, sizes: list[int]) -> list[tuple[Any, Any]]:
    """Host descriptors of a rank: tiles of two of the kernel's sizes (one, all), the other extents 1."""
    pairs = [[1] * (rank - 2) + [a, b] for a in sizes for b in sizes] if rank > 1 else []
    pairs += [[1] * (rank - 3) + [a, 1, b] for a in sizes for b in sizes] if rank > 3 else []
    blocks = [*pairs, *([1] * (rank - 1) + [a] for a in sizes), *([a] * rank for a in sizes)]
    kinds = ("fp16", "fp32", "fp8e4nv")
    return [(f"tensordesc<{kind}[{','.join(map(str, block))}]>", None) for kind in kinds for block in blocks]


def _types(name: str, param: Any, used: Usage, sizes: list[int]) -> list[tuple[Any, Any]]:
    """Types to try for a run-time parameter, likely ones first; None is a constexpr."""
    floats: list[tuple[Any, Any]] = [("*fp32", None), ("*bf16", None), ("*fp16", None)]
    ints: list[tuple[Any, Any]] = [("*i32", None), ("*i64", None), ("*i8", None), ("*i1", None), ("*u8", None)]
    scalars: list[tuple[Any, Any]] = [("i32", None), ("fp32", None), ("i64", None), ("constexpr", 1)]
    if name in used.descriptors:
        return _descriptors(used.descriptors[name], sizes)
    if name in used.tuples or re.search(r"strides$|shapes?$|sizes$", name, re.I):
        scalars = [*((("i32",) * n, None) for n in (4, 3, 2, 5, 1)), *scalars]
    if param.annotation_type:
        return [(param.annotation_type, None), *scalars, *floats]
    none = [("constexpr", None)]
    default = param.default if param.has_default else ...
    if name in used.pointers and name in used.tuples:
        return [*((("*fp32",) * n, None) for n in (4, 2, 8, 16, 1)), *floats]
    if name in used.pointers or (re.search(r"ptr|pointer", name, re.I) and not STRIDE.search(name)):
        base = re.sub(r"_?(ptrs?|pointers?)(?![a-z])", "", name, flags=re.I)
        if BOOLEAN.search(base):
            return [("*i8", None), ("*i1", None), *ints, *floats, *none]
        integer = INTEGER.search(base) or name in used.integers
        return (
            [*ints[:2], *floats, *ints[2:], *none]
            if integer
            else [*floats, *ints, ("*fp8e4nv", None), ("*fp64", None), *none]
        )
    if default is None:
        return [*none, *floats, *scalars]
    if name not in used.integers and (isinstance(default, float) or (REAL.search(name) and not STRIDE.search(name))):
        return [("fp32", None), *scalars, *floats, *none]
    if isinstance(default, bool):
        return [("i1", None), *scalars]
    return [*scalars, *floats, *ints[:2], *none]
