"""The programs of Trinity as cases, programs on views of tensors, and tile programs."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trilift.lift.capture.case_files import by_file, load
from trilift.lift.cases.declaration import Case, make_case
from trilift.lift.errors import CaseError, Unsupported
from trilift.lift.language.parse import formula
from trilift.lift.pytorch.read import read_case
from trilift.lift.simplify.saturation import simplify
from trilift.lift.terms import construct as T
from trilift.lift.terms.spec import Formula
from trilift.reports.experiments.superoptimizer import trinity
from trilift.superopt.mugraph.cost import Model
from trilift.superopt.mugraph.graph import MuGraph
from trilift.superopt.mugraph.json import from_json, to_json
from trilift.superopt.program.formulas import formulas as formulas_of
from trilift.superopt.program.formulas import reference
from trilift.superopt.program.program import Input, Node, Part, Program, extent
from trilift.superopt.program.views import expression, viewed
from trilift.superopt.tiles.run import run
from trilift.superopt.tiles.text import parse, text
from trilift.superopt.tiles.tile_program import TileProgram, check, lowered, sequence, stores

CORPUS = Path(__file__).parents[2] / "corpus" / "trinity"
FILES = {c.name: str(f) for f in sorted(CORPUS.glob("[a-z]*.py")) for c in load(str(f))}
SMALL = {"M": 3, "P": 5, "H": 2, "D": 4, "N": 5, "F": 7}
ROOFLINES = {  # microseconds on an H200: 4.3 TB/s, 790 TFLOP/s
    "vanilla": (27.37, 33.21), "pre_norm": (27.37, 33.21), "qk_norm": (27.37, 33.21), "key_former": (27.63, 33.78),
    "ro_co": (27.40, 33.27), "swi_glu": (101.54, 124.95),
}  # fmt: skip


def named(name: str) -> Case:
    return load(FILES[name], [name])[0]


@cache
def formulas(name: str, simplified: bool = False) -> tuple[Formula, ...]:
    found = read_case(named(name), named(name).fn).formulas
    return tuple(simplify(f).formula for f in found) if simplified else found


def program(of: Case, found: Sequence[Formula], sizes: Mapping[str, int], hoist: bool = True) -> Program:
    dtypes = {n: s.dtype for n, s in of.tensors.items()}
    return viewed(found, dtypes, {n: s.shape or () for n, s in of.tensors.items()}, dict(sizes), hoist)


# ---- what a program does to tensors ----------------------------------------------------------------------------------


def view(x: np.ndarray, parts: Sequence[Part], p: Program, dims: Mapping[str, int]) -> np.ndarray:
    """The part of an array, as an array over the axes that shares its memory."""
    out = torch.from_numpy(x)
    for d, part in reversed(list(enumerate(parts))):
        start, sizes = extent(part.start, dict(dims)), [p.sizes[a] for a in part.axes]
        assert start >= 0 and start + math.prod(sizes) <= x.shape[d]
        out = out.narrow(d, start, math.prod(sizes)).unflatten(d, sizes) if sizes else out.select(d, start)
    return np.asarray(out)


def numbers(p: TileProgram, dims: Mapping[str, int]) -> TileProgram:
    """The program with numbers for the sizes in its functions."""
    number = lambda t: T.rewrite(t, lambda s: T.const(dims[s.attr]) if s.op == "size" else None)  # noqa: E731

    def node(n: Node) -> Node:
        return Node(n.op, tuple(map(node, n.args)), number(n.attr) if isinstance(n.attr, T.Term) else n.attr, n.axes)

    return replace(p, body=sequence([replace(s, value=node(s.value)) for s in stores(p.body)]))


def results(p: Program, tensors: Mapping[str, np.ndarray], dims: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Every output by the name of its tensor, each input that is written in place; what nothing is stored to is nan."""
    tile = numbers(lowered(p), dims)
    check(tile)
    held: dict[str, Any] = {x.name: np.nan * np.ones([p.sizes[a] for a in x.axes]) for x in tile.tensors.values()}
    held |= {x.name: view(tensors[x.tensor], x.parts, p, dims) if x.parts else tensors[x.tensor] for x in p.inputs}
    after = run(tile, held, {})
    out: dict[str, np.ndarray] = {}
    for name, axes, _, _ in p.outputs:
        place = p.places.get(name)
        if place is None:
            out[name] = after[name]
            continue
        shape = [extent(n, dict(dims)) for n in place.shape]
        empty = tensors[place.tensor].copy() if place.in_place else np.full(shape, np.nan)
        whole = out.setdefault(place.tensor, empty)
        assert axes == tuple(a for part in place.parts for a in part.axes)
        view(whole, place.parts, p, dims)[...] = after[name]
    return out


def wanted(of: Case, tensors: Mapping[str, np.ndarray], found: Sequence[Formula]) -> dict[str, np.ndarray]:
    """What PyTorch says, in float64."""
    given = {n: torch.from_numpy(x.copy()) for n, x in tensors.items()}
    said = of.fn(**given)
    said = said if isinstance(said, tuple) else (said,)
    names = [f.name for f in found if f.in_place is None]
    outputs: dict[str, np.ndarray] = {n: x.numpy() for n, x in zip(names, said, strict=True)}
    return outputs | {n: given[n].numpy() for n in (f.in_place for f in found) if n is not None}


def drawn(of: Case, dims: Mapping[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {n: rng.standard_normal(of.shape(n, dims)) for n in of.tensors}


def agrees(of: Case, found: Sequence[Formula], p: Program, dims: Mapping[str, int]) -> bool:
    tensors = drawn(of, dims)
    mine, theirs = results(p, tensors, dims), wanted(of, tensors, found)
    assert {*mine} == {*theirs}
    return all(np.allclose(mine[n], theirs[n], rtol=1e-9, atol=1e-9) for n in theirs)


# ---- the six programs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FILES])
@pytest.mark.parametrize("simplified", [False, True])
@pytest.mark.parametrize("hoist", [False, True])
def test_a_program_does_what_pytorch_does(name: str, simplified: bool, hoist: bool) -> None:
    of, found = named(name), formulas(name, simplified)
    dims = {n: SMALL[n] for n in of.names}
    p = program(of, found, dims, hoist)
    assert agrees(of, found, p, dims)
    one = dims | {n: 1 for n in ("M", "P") if n in dims}
    assert agrees(of, found, program(of, found, one, hoist), one)


@pytest.mark.parametrize("name", [*FILES])
def test_a_program_has_its_roofline(name: str) -> None:
    of = named(name)
    for model, microseconds in zip(("llama", "falcon"), ROOFLINES[name], strict=True):
        p = program(of, formulas(name), by_file(FILES[name]).sizes(model))
        assert Model(p).roofline * 1e6 == pytest.approx(microseconds, abs=0.006)


def test_what_outputs_have_in_common_is_computed_once() -> None:
    products = {"vanilla": 7, "pre_norm": 7, "qk_norm": 7, "key_former": 7, "ro_co": 7, "swi_glu": 4}
    for name, count in products.items():
        p = program(named(name), formulas(name), {n: SMALL[n] for n in named(name).names}, hoist=False)
        sums = [n for n in p.nodes if n.op == "sum" and n.args[0].op == "mul"]
        assert len(sums) == count, name


def test_a_cache_is_read_before_and_written_behind() -> None:
    p = program(named("vanilla"), formulas("vanilla"), {n: SMALL[n] for n in named("vanilla").names})
    zero, dims = T.const(0), {n: T.size(n) for n in "MPHD"}
    keys = next(x for x in p.inputs if x.tensor == "keys")
    assert keys.shape == (dims["H"], T.add(dims["P"], dims["M"]), dims["D"])
    assert keys.parts == (Part(zero, ("h",)), Part(zero, ("p",)), Part(zero, ("d",))) and p.extents["p"] is dims["P"]
    place = p.places["keys_0"]
    assert place.in_place and place.parts[1].start is dims["P"] and place.shape[1] is T.add(dims["P"], dims["M"])
    assert [x.axes for x in p.inputs if x.tensor == "x"] == [("m", "j"), ("i", "j")]
    assert p.places["out"].parts[1].axes == ("h", "d")


def test_a_program_is_text_and_json() -> None:
    for name in FILES:
        of = named(name)
        p = program(of, formulas(name), {n: SMALL[n] for n in of.names})
        again = from_json(to_json(MuGraph(p, (), {}))).program
        assert again == p and again.places == p.places and again.extents == p.extents
        told = text(lowered(p))
        assert text(parse(told, {n: SMALL[n] for n in of.names})) == told


@pytest.mark.parametrize("name", [*FILES])
def test_formulas_of_a_program_are_the_program_again(name: str) -> None:
    of = named(name)
    dims = {n: SMALL[n] for n in of.names}
    p = program(of, formulas(name), dims)
    again = program(of, formulas_of(p, p.extents), dims)
    tensors = drawn(of, dims)
    first, second = (results(replace(q, places={}), tensors, dims) for q in (p, again))
    assert {*first} == {*second} and all(np.allclose(first[n], second[n]) for n in first)


# ---- mutated twins ---------------------------------------------------------------------------------------------------


def shifted(parts: Sequence[Part], by: int) -> tuple[Part, ...]:
    """Parts of which the second starts later."""
    return tuple(replace(x, start=T.add(x.start, by)) if k == 1 else x for k, x in enumerate(parts))


def stored_too_early(p: Program) -> Program:
    """The new keys on the last of the old ones."""
    place = p.places["keys_0"]
    return replace(p, places={**p.places, "keys_0": replace(place, parts=shifted(place.parts, -1))})


def read_too_late(p: Program) -> Program:
    """The old keys without the first, with the first new one."""
    late = lambda x: replace(x, parts=shifted(x.parts, 1)) if x.tensor == "keys" else x  # noqa: E731
    return replace(p, inputs=tuple(map(late, p.inputs)))


def heads_last(p: Program) -> Program:
    """Columns of a projection as D rows of H."""

    def turned(x: Input) -> Input:
        return replace(x, axes=(x.axes[0], "d", "h"), parts=(x.parts[0], Part(T.const(0), ("d", "h"))))

    return replace(p, inputs=tuple(turned(x) if x.tensor == "wv" else x for x in p.inputs))


def merged_last(p: Program) -> Program:
    """Columns of the output as D rows of H."""
    (name, axes, value, dtype), *rest = p.outputs
    place = p.places[name]
    turned = replace(place, parts=(place.parts[0], Part(T.const(0), ("d", "h"))))
    return replace(p, outputs=((name, (axes[0], "d", "h"), value, dtype), *rest), places={**p.places, name: turned})


@pytest.mark.parametrize("twin", [stored_too_early, read_too_late, heads_last, merged_last])
@pytest.mark.parametrize("name", [n for n in FILES if n != "swi_glu"])
def test_a_wrong_view_is_another_program(name: str, twin: Callable[[Program], Program]) -> None:
    of, found = named(name), formulas(name)
    dims = {n: SMALL[n] for n in of.names}
    p = program(of, found, dims)
    assert agrees(of, found, p, dims) and not agrees(of, found, twin(p), dims)


# ---- other programs --------------------------------------------------------------------------------------------------


def rotary(x: Any, c: Any, s: Any) -> Any:
    half = x.shape[-1] // 2
    return x * c + torch.cat([-x[:, half:], x[:, :half]], -1) * s


def swapped_heads(x: Any, a: Any, b: Any) -> Any:
    return x.view(x.shape[0], a.shape[0], b.shape[0], -1).permute(2, 0, 1, 3).softmax(-1)


def padded(x: Any, w: Any) -> Any:
    wide = torch.nn.functional.pad(x, (0, w.shape[0] - x.shape[1]))
    return wide @ w, torch.exp(wide) @ w


def appended(cache: Any, new: Any) -> Any:
    out = torch.cat([cache, new, 2 * new], 1)
    return out, out.sum(1)


def first_and_last(x: Any) -> Any:
    return x[:, :1] + x[:, -1:] * x[:, 1:-1].sum(1, keepdim=True)


def written_behind(x: Any, y: Any) -> Any:
    x[:, y.shape[1] :] = y
    return x, x.sum(1)


@pytest.mark.parametrize(
    ("fn", "specs", "outputs"),
    [
        (rotary, {"x": "f32[M,2*D]", "c": "f32[M,2*D]", "s": "f32[M,2*D]"}, 2),
        (swapped_heads, {"x": "f32[M,H*F*D]", "a": "f32[H]", "b": "f32[F]"}, 1),
        (padded, {"x": "f32[M,N]", "w": "f32[N+P,D]"}, 2),
        (appended, {"cache": "f32[H,P,D]", "new": "f32[H,M,D]"}, 4),
        (first_and_last, {"x": "f32[M,N+2]"}, 1),
        (written_behind, {"x": "f32[M,2*N]", "y": "f32[M,N]"}, 4),
    ],
)
def test_what_is_taken_apart_is_what_pytorch_says(fn: Callable[..., Any], specs: dict[str, str], outputs: int) -> None:
    of = make_case("program", fn, specs)
    found = read_case(of, of.fn).formulas
    dims = {n: SMALL[n] for n in of.names}
    p = program(of, found, dims)
    assert len(p.outputs) == outputs and agrees(of, found, p, dims)


def moved(x: Any) -> Any:
    x[:, : x.shape[1] - 1] = 2 * x[:, 1:]
    return x.sum(1)


def doubled(x: Any) -> Any:
    return x.mul_(2)


def windows(x: Any, y: Any) -> Any:
    return (x.unfold(0, 3, 1) * y).sum(1)


@pytest.mark.parametrize(
    ("fn", "specs", "why"),
    [
        (moved, {"x": "f32[M,N]"}, "x is written in place, but its overwritten elements are read"),
        (doubled, {"x": "f32[M,N]"}, "x is written in place, but its overwritten elements are read"),
        (windows, {"x": "f32[N+2]", "y": "f32[3]"}, "is not indexed by axes or their digits"),
        (lambda x: x.diagonal() * 2, {"x": "f32[N,N]"}, r"x\[n, n\] is not indexed by axes or their digits"),
        (lambda x: x.tril(), {"x": "f32[N,N]"}, "computed from indices cannot be a tensor"),
    ],
)
def test_what_cannot_be_taken_apart_is_refused(fn: Callable[..., Any], specs: dict[str, str], why: str) -> None:
    of = make_case("program", fn, specs)
    with pytest.raises((Unsupported, CaseError), match=why):
        lowered(program(of, read_case(of, of.fn).formulas, {n: SMALL[n] for n in of.names}))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("out[m < M] = x[m] * y[m]", r"whether the tensor x has x\[m\] is not certain for all sizes"),
        ("out[n < N] = where(n < M, y[n], x[n])", r"whether the tensor y has y\[n\] is not certain for all sizes"),
        ("out[n < N] = where(n < K, x[n], x[n - K])", r"x\[n - K\] is not certain for all sizes"),
        ("out[m < M] = sum(n < N, x[n // M] * y[m])", r"x\[n // M\] is not indexed by axes"),
        ("out[m < M] = y[M - 1 - m]", "is not indexed by axes"),
    ],
)
def test_what_is_not_certain_for_all_sizes_is_refused(said: str, why: str) -> None:
    shapes = {"x": [T.size("N")], "y": [T.size("M")]}
    f = formula(said, shapes)
    with pytest.raises(Unsupported, match=why):
        viewed([f], {}, shapes, {"M": 3, "N": 7, "K": 2})


def test_two_outputs_may_be_one_value() -> None:
    of = make_case("program", lambda x: (2 * x, 2 * x), {"x": "f32[M,N]"})
    found = read_case(of, of.fn).formulas
    p = program(of, found, {"M": 3, "N": 5})
    assert len(p.outputs) == 2 and agrees(of, found, p, {"M": 3, "N": 5})


# ---- random programs -------------------------------------------------------------------------------------------------

TENSORS = {"x": "f32[M,H*D]", "y": "f32[H,P+M,D]", "z": "f32[H*D,P+M]"}
DRAWN = ({"M": 3, "P": 8, "H": 5, "D": 7}, {"M": 2, "P": 11, "H": 3, "D": 5})  # sums and doubles are no other sizes


def drawn_function(seed: int) -> Callable[..., Any]:
    """Views, parts, sums and softmaxes of two tensors at random, and their product."""

    def fn(x: Any, y: Any, z: Any) -> Any:
        rng = random.Random(seed)
        heads, length, width = y.shape
        new, columns = x.shape[0], heads * width

        def moved(t: Any) -> Any:
            what, d = rng.randrange(7), rng.randrange(t.dim())
            wide = [e for e in range(t.dim()) if t.shape[e] == columns]
            long = [e for e in range(t.dim()) if t.shape[e] == length]
            if what == 0 and wide and t.dim() < 4:
                return t.unflatten(wide[0], (heads, width))
            if what == 1 and long:
                return [t.narrow(long[0], 0, length - new), t.narrow(long[0], length - new, new)][rng.randrange(2)]
            if what == 2 and t.dim() > 1:
                return t.transpose(d, 0)
            if what == 3 and t.dim() > 1:
                return t.sum(d)
            if what == 4:
                return (0.1 * t).softmax(d)
            if what == 5 and t.dim() > 1:
                return torch.exp(torch.nn.functional.pad(0.1 * t.transpose(d, -1), (1, new))).sum(-1)
            return torch.cat([t, 2 * t], d)

        out = rng.choice([x, y, z])
        for _ in range(4):
            out = moved(out)
        if rng.random() < 0.3:
            y[:, length - new :] = x.unflatten(1, (heads, width)).transpose(0, 1)
        return moved(out * rng.choice([x, z]).sum())

    return fn


def test_random_programs_do_what_pytorch_does() -> None:
    equal, refused = 0, 0
    for seed in range(16):
        of = make_case("program", drawn_function(seed), TENSORS)
        found = read_case(of, of.fn).formulas
        for dims, hoist in zip(DRAWN, (False, True), strict=True):
            try:
                p = program(of, found, dims, hoist)
            except Unsupported:
                refused += 1
                continue
            assert agrees(of, found, p, dims), seed
            equal += 1
    assert equal >= 24 and refused <= 4


def test_the_table_has_every_program() -> None:
    assert {*FILES} == {*ROOFLINES}
    rows = trinity._programs(FILES["ro_co"], lambda said: None)
    assert [(r.model, r.inputs, r.outputs, r.written) for r in rows] == [("llama", 7, 7, 28), ("falcon", 7, 7, 28)]
    assert trinity._row(rows[0])[-2:] == ("117.83", "27.40")


# ---- what a host function needs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FILES])
def test_views_and_references_are_python(name: str) -> None:
    of = named(name)
    dims = {n: SMALL[n] for n in of.names}
    p, tensors = program(of, formulas(name), dims), drawn(of, dims)
    given = {n: torch.from_numpy(x) for n, x in tensors.items()}
    for x in p.inputs:
        if x.parts:
            seen = eval(expression(x.tensor, x.parts, x.shape, p.extents), {**given, **dims})
            assert seen.untyped_storage().data_ptr() == given[x.tensor].untyped_storage().data_ptr()
            assert np.array_equal(seen.numpy(), view(tensors[x.tensor], x.parts, p, dims))
    imports, functions, calls = reference(p, p.extents)
    known: dict[str, Any] = {}
    exec("\n".join([*imports, "import torch", *functions]), known)
    values = results(replace(p, places={}), tensors, dims)
    assert [f for f, _ in calls] == [f"{n}_reference" for n in values]
    for (f, parameters), (_, value) in zip(calls, values.items(), strict=True):
        said = known[f](**{n: given[n] if n in given else dims[n] for n in parameters})
        assert np.allclose(said.numpy(), value)


def test_a_view_in_pytorch() -> None:
    p = program(named("vanilla"), formulas("vanilla"), {n: SMALL[n] for n in named("vanilla").names})
    said = {x.tensor: expression(x.tensor, x.parts, x.shape, p.extents) for x in p.inputs if x.parts}
    assert said["keys"] == "keys.narrow(1, 0, P)" and said["wq"] == "wq.unflatten(1, (H, D))"
    place = p.places["keys_0"]
    assert expression(place.tensor, place.parts, place.shape, p.extents) == "keys.narrow(1, P, M)"


SAID = """
from trilift.lift.terms import construct as T
from trilift.lift.capture.case_files import load
from trilift.superopt.tiles.tile_program import lowered
from trilift.superopt.tiles.text import text
from trilift.superopt.program.views import of_case

{before}
for c in load({file!r}):
    print(text(lowered(of_case(c, {sizes!r}))))
"""
BEFORE = "i, j = (T.axis(T.Axis(n, T.size('D'))) for n in 'kh'); T.read('values', [j, i]) * T.size('D') - T.size('H')"


def test_a_program_does_not_depend_on_which_terms_were_made_before_it() -> None:
    sizes = {n: SMALL[n] for n in named("key_former").names}
    texts = [SAID.format(before=b, file=FILES["key_former"], sizes=sizes) for b in ("", BEFORE)]
    said = [subprocess.run([sys.executable, "-c", t], capture_output=True, text=True, check=True).stdout for t in texts]
    assert said[0] == said[1] and "noise_1[h, m, i]" in said[0]
