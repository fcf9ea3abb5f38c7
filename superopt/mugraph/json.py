"""µGraphs as JSON and back.

    {"format": "trilift µGraph 1",
     "program": {"inputs": [...], "outputs": [...], "sizes": {axis: n}, "nodes": [...], "terms": [...]},
     "kernels": [{"name", "modes", "tiles", "operators": [{"out", "op", "args", "dims", "over", "inside"}],
                  "threads": [[the operators of a thread graph, by name]], ...}],
     "tensors": {name: {"name", "dims", "dtype"}}, "parts": {axis: n}}

A dimension is the name of its axis, with "/parts" behind it for one entry per part. A program on parts of
tensors has "parts" and "shape" of such inputs, and "places" of such outputs. Nodes and terms are lists in which each
names its arguments by their places before it, so that what is shared stays shared."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, get_args

from trilift.lift.errors import CaseError
from trilift.lift.terms import term as T
from trilift.lift.terms.term import Axis, Term

from ..program.program import Input, Node, Part, Place, Program
from .graph import Dim, Kernel, Mode, MuGraph, Operator, Tensor

FORMAT = "trilift µGraph 1"
Convert = Callable[[Any], Any]


def to_json(g: MuGraph) -> str:
    """The text of a graph: the same graph gives the same bytes."""
    data = {"format": FORMAT, "program": _Writer().program(g.program), **_written(g, ("program",))}
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)


def from_json(text: str) -> MuGraph:
    """The graph of a text. Raises CaseError where it is none."""
    try:
        data = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as e:
        raise CaseError("not a µGraph", why=str(e)) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise CaseError("not a µGraph", why=f'the format is not "{FORMAT}"')
    try:
        program = _Reader(data["program"]).program()
        found = MuGraph(program, **_read(MuGraph, data, ("format", "program")))
        _check(found)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as e:
        raise CaseError("malformed µGraph", why=f"{type(e).__name__}: {e}") from None
    return found


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a finite number")


def _check(g: MuGraph) -> None:
    """Raises ValueError where numbers are not positive, or a kernel has an axis that it does not say how to treat."""
    for what, numbers in (("size", g.program.sizes), *(("tile", k.tiles) for k in g.kernels)):
        for axis, n in numbers.items():
            _positive(f"the {what} of {axis}", n)
    for k in g.kernels:
        _positive(f"the warps of {k.name}", k.warps)
        _positive(f"the stages of {k.name}", k.stages)
        if wrong := [m for m in k.modes.values() if m not in get_args(Mode)]:
            raise ValueError(f"{wrong[0]} is not a mode of an axis")
        used = {d.axis for o in k.operators for d in o.dims} | {a for o in k.operators for a in o.over}
        if strange := sorted(used - (k.modes.keys() & k.tiles.keys())):
            raise ValueError(f"{k.name} has no mode and tile for the axis {strange[0]}")


def _positive(what: str, n: object) -> None:
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ValueError(f"{what} is {n!r}, not a positive number")


# ---- fields of dataclasses: all that is not named here is JSON already -----------------------------------------------


def _dim(d: Dim) -> str:
    return repr(d)


def _to_dim(text: str) -> Dim:
    axis, _, parts = text.partition("/")
    if parts not in ("", "parts"):
        raise ValueError(f"{text} is not a dimension")
    return Dim(axis, bool(parts))


def _each(f: Convert, of: Callable[[Any], Any] = list) -> Convert:
    return lambda items: of(map(f, items))


def _by_name(f: Convert) -> Convert:
    return lambda items: {name: f(v) for name, v in items.items()}


WRITE: dict[tuple[str, str], Convert] = {
    ("MuGraph", "kernels"): lambda ks: [_written(k) for k in ks],
    ("MuGraph", "tensors"): _by_name(lambda t: _written(t)),
    ("Kernel", "operators"): lambda os: [_written(o) for o in os],
    ("Operator", "dims"): lambda dims: sorted(map(_dim, dims)),
    ("Tensor", "dims"): _each(_dim),
}
READ: dict[tuple[str, str], Convert] = {
    ("MuGraph", "kernels"): _each(lambda k: Kernel(**_read(Kernel, k)), tuple),
    ("MuGraph", "tensors"): _by_name(lambda t: Tensor(**_read(Tensor, t))),
    ("Kernel", "operators"): _each(lambda o: Operator(**_read(Operator, o)), tuple),
    ("Kernel", "threads"): _each(tuple, tuple),
    ("Operator", "dims"): _each(_to_dim, frozenset),
    ("Operator", "args"): tuple,
    ("Operator", "over"): tuple,
    ("Tensor", "dims"): _each(_to_dim, tuple),
    ("Input", "axes"): tuple,
}


def _written(x: Any, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a dataclass."""
    kind = type(x).__name__
    names = [f.name for f in dataclasses.fields(x) if f.name not in without]
    return {n: WRITE.get((kind, n), lambda v: v)(getattr(x, n)) for n in names}


def _read(kind: type, data: dict[str, Any], without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Arguments of a dataclass. Raises TypeError for an unknown field."""
    names = {f.name for f in dataclasses.fields(kind)}
    if unknown := set(data) - names - set(without):
        raise TypeError(f"{kind.__name__} has no {sorted(unknown)[0]}")
    return {n: READ.get((kind.__name__, n), lambda v: v)(v) for n, v in data.items() if n not in without}


# ---- programs --------------------------------------------------------------------------------------------------------


@dataclass
class _Writer:
    """`nodes`, `terms`: those written, with the place of each."""

    nodes: list[dict[str, Any]] = field(default_factory=list)
    terms: list[dict[str, Any]] = field(default_factory=list)
    node_at: dict[Node, int] = field(default_factory=dict)
    term_at: dict[Term, int] = field(default_factory=dict)

    def program(self, p: Program) -> dict[str, Any]:
        for n in p.nodes:
            self.node(n)
        outputs = [{"name": o, "axes": list(axes), "node": self.node_at[v], "dtype": d} for o, axes, v, d in p.outputs]
        return {
            "inputs": [self.input(x) for x in p.inputs], "outputs": outputs, "sizes": p.sizes,
            "extents": {a: self.term(t) for a, t in p.extents.items()}, "nodes": self.nodes, "terms": self.terms,
            **({"places": {o: self.place(x) for o, x in p.places.items()}} if p.places else {}),
        }  # fmt: skip

    def input(self, x: Input) -> dict[str, Any]:
        out = _written(replace(x, element=None), ("parts", "shape"))
        out |= {"parts": self.parts(x.parts), "shape": [self.term(n) for n in x.shape]} if x.parts else {}
        return out if x.element is None else {**out, "element": self.term(x.element)}

    def parts(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        return [{"start": self.term(p.start), "axes": list(p.axes)} for p in parts]

    def place(self, x: Place) -> dict[str, Any]:
        shape, parts = [self.term(n) for n in x.shape], self.parts(x.parts)
        return {"tensor": x.tensor, "shape": shape, "parts": parts, "in_place": x.in_place}

    def node(self, n: Node) -> None:
        attr = {"term": self.term(n.attr)} if isinstance(n.attr, Term) else n.attr
        args = [self.node_at[a] for a in n.args]
        self.node_at[n] = len(self.nodes)
        self.nodes.append({"op": n.op, "args": args, "attr": attr, "axes": sorted(n.axes)})

    def term(self, t: Term) -> int:
        if t not in self.term_at:
            args, attr = [self.term(a) for a in t.args], self.attribute(t.attr)
            self.term_at[t] = len(self.terms)
            self.terms.append({"op": t.op, "args": args, "attr": attr, "type": t.type})
        return self.term_at[t]

    def attribute(self, v: Any) -> Any:
        if isinstance(v, Axis):
            return {"axis": v.name, "size": self.term(v.size)}
        if isinstance(v, float) and not math.isfinite(v):
            return {"float": repr(v)}
        if v is None or isinstance(v, bool | int | float | str):
            return v
        raise CaseError("this µGraph cannot be written as JSON", why=f"a term has {v!r}")


@dataclass
class _Reader:
    data: dict[str, Any]
    nodes: list[Node] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)

    def program(self) -> Program:
        d = self.data
        for t in d["terms"]:
            args = tuple(self.terms[k] for k in t["args"])
            self.terms.append(T.node(t["op"], args, self.attribute(t["attr"]), t["type"]))
        for n in d["nodes"]:
            attr = self.terms[n["attr"]["term"]] if isinstance(n["attr"], dict) else n["attr"]
            self.nodes.append(Node(n["op"], tuple(self.nodes[k] for k in n["args"]), attr, frozenset(n["axes"])))
        inputs, places = tuple(self.input(x) for x in d["inputs"]), d.get("places", {})
        outputs = tuple((o["name"], tuple(o["axes"]), self.nodes[o["node"]], o["dtype"]) for o in d["outputs"])
        extents = {a: self.terms[k] for a, k in d["extents"].items()}
        return Program(inputs, outputs, dict(d["sizes"]), extents, {o: self.place(x) for o, x in places.items()})

    def input(self, x: dict[str, Any]) -> Input:
        element, parts = x.get("element"), self.parts(x.get("parts", []))
        shape = tuple(self.terms[k] for k in x.get("shape", []))
        own = {"element": None if element is None else self.terms[element], "parts": parts, "shape": shape}
        return Input(**{**_read(Input, x), **own})

    def parts(self, parts: Sequence[dict[str, Any]]) -> tuple[Part, ...]:
        return tuple(Part(self.terms[p["start"]], tuple(p["axes"])) for p in parts)

    def place(self, x: dict[str, Any]) -> Place:
        shape = tuple(self.terms[k] for k in x["shape"])
        return Place(x["tensor"], shape, self.parts(x["parts"]), bool(x["in_place"]))

    def attribute(self, v: Any) -> Any:
        if isinstance(v, dict):
            return Axis(v["axis"], self.terms[v["size"]]) if "axis" in v else float(v["float"])
        return v
