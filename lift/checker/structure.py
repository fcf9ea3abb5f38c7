"""The form of a certificate, looked at before anything else: the keys, and the kind of each value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .polynomials import FOLDS, Data, Wrong

Test = Callable[[Data, str, int], None]  # the value, where it is, the number of terms; raises Wrong
NAMES = ("size", "scalar", "read", "element", "pointer", "carry", "undef")  # terms with a name as attribute


def _plain(what: str, *types: type) -> Test:
    def test(x: Data, where: str, terms: int) -> None:  # noqa: ARG001
        if not isinstance(x, types) or (isinstance(x, bool) and bool not in types):
            raise Wrong(f"{where} is not {what}")

    return test


def _term(x: Data, where: str, terms: int) -> None:
    WHOLE(x, where, terms)
    if not 0 <= x < terms:
        raise Wrong(f"{where} is not the number of a term")


def _several(of: Test, length: int | None = None) -> Test:
    def test(x: Data, where: str, terms: int) -> None:
        if not isinstance(x, list) or length not in (None, len(x)):
            raise Wrong(f"{where} is not a list" + (f" of {length}" if length else ""))
        for k, y in enumerate(x):
            of(y, f"{where}[{k}]", terms)

    return test


def _mapped(of: Test) -> Test:
    def test(x: Data, where: str, terms: int) -> None:
        if not isinstance(x, dict):
            raise Wrong(f"{where} is not an object")
        for k, y in x.items():
            of(y, f"{where}[{k!r}]", terms)

    return test


def _maybe(of: Test) -> Test:
    def test(x: Data, where: str, terms: int) -> None:
        if x is not None:
            of(x, where, terms)

    return test


def _record(keys: Mapping[str, Test], more: Mapping[str, Test] | None = None) -> Test:
    """An object with these keys; `more`: those that it may have."""

    def test(x: Data, where: str, terms: int) -> None:
        if not isinstance(x, dict):
            raise Wrong(f"{where} is not an object")
        for k, of in keys.items():
            if k not in x:
                raise Wrong(f"{where} has no {k}")
            of(x[k], f"{where}.{k}", terms)
        for k, of in (more or {}).items():
            if k in x:
                of(x[k], f"{where}.{k}", terms)

    return test


WHOLE, WORD, TRUTH = _plain("a whole number", int), _plain("a text", str), _plain("true or false", bool)
TERMS = _several(_term)
VIEW = _record({"buffer": WORD, "offset": _term, "shape": TERMS, "strides": TERMS})
CONTENT = {"axes": TERMS, "term": _term}
SITE = {"line": WHOLE, "lanes": TERMS, "loops": _several(WHOLE), "guard": _term}
INVERSE = _record({"index": TERMS, "values": _several(_several(_term, 2))})
ACCESS = _record(
    {
        **SITE,
        "kind": WORD,
        "order": WHOLE,
        "pointer": _term,
        "value": _maybe(_term),
        "inverse": _several(INVERSE),
    }
)
CARRY = _record({"name": WORD, "lanes": TERMS, "init": _term, "next": _term, "form": _maybe(_term)})
LOOP = _record(
    {
        "counter": _term,
        "trips": _term,
        "guard": _term,
        "line": WHOLE,
        "outer": TERMS,
        "outer_loops": _several(WHOLE),
        "carries": _several(CARRY),
    }
)
LAUNCH = _record(
    {
        "kernel": WORD,
        "ttir": WORD,
        "grid": TERMS,
        "pointers": _mapped(_record({"dtype": WORD})),
        "loops": _several(LOOP),
        "accesses": _several(ACCESS),
        "arithmetic": _several(_record({**SITE, "kind": WORD, "bits": WHOLE, "term": _term})),
        "after": _mapped(_record({**CONTENT, "view": VIEW})),
    }
)
HOST = _record({"outputs": _several(_record({**CONTENT, "view": VIEW}))})
EVENTS = {"launch": LAUNCH, "host": HOST}


def _event(x: Data, where: str, terms: int) -> None:
    _record({"kind": WORD})(x, where, terms)
    if x["kind"] not in EVENTS:
        raise Wrong(f"{where}.kind is neither launch nor host")
    EVENTS[x["kind"]](x, where, terms)
    for k, v in x.get("pointers", {}).items():
        VIEW(v, f"{where}.pointers[{k!r}]", terms)


def _buffer(x: Data, where: str, terms: int) -> None:
    _record({"name": WORD, "dtype": WORD, "length": _term, "input": TRUTH})(x, where, terms)
    if not x["dtype"]:
        raise Wrong(f"{where}.dtype is empty")
    if not x["input"]:
        _record({"axis": _term, "initial": _term})(x, where, terms)


CONFIGURATION = _record(
    {
        "number": WHOLE,
        "label": WORD,
        "vacuous": TRUTH,
        "facts": TERMS,
        "example": _mapped(WHOLE),
        "bounds": _mapped(_several(_term, 2)),
        "buffers": _several(_buffer),
        "inputs": _mapped(VIEW),
        "outputs": _mapped(VIEW),
        "events": _several(_event),
    }
)
CLAUSE = _record(
    {"kind": WORD, "text": WORD, "term": _maybe(_term), "configuration": _maybe(WHOLE)},
    {"arithmetic": _several(WHOLE, 3)},
)
PART = _record(
    {
        "label": WORD,
        "formulas": _mapped(_record(CONTENT)),
        "contract": _several(CLAUSE),
        "configurations": _several(CONFIGURATION),
    }
)
RUN = _record(
    {
        "dims": _mapped(_plain("a number", int, float)),
        "tuned": WHOLE,
        "calls": WORD,
        "launches": _several(_record({"kernel": WORD, "ttir": WORD})),
    }
)
VERSIONS = {"triton": WORD, "torch": WORD}
MADE = _record(
    {**VERSIONS, "case": WORD, "host": WORD, "reference": _maybe(WORD), "runs": _several(RUN)},
)
CERTIFICATE = _record({"case": WORD, "file": WORD, "against": WORD, "made": MADE})


def _row(row: Data, where: str, terms: int) -> None:
    if not isinstance(row, list) or len(row) != 4:
        raise Wrong(f"{where} is not a list of 4")
    op, sort, attr, args = row
    WORD(op, f"{where}[0]", terms)
    WORD(sort, f"{where}[1]", terms)
    TERMS(args, f"{where}[3]", terms)
    if op == "axis" or op in FOLDS:
        _several(lambda x, at, n: None, 2)(attr, f"{where}[2]", terms)
        WORD(attr[0], f"{where}[2][0]", terms)
        _term(attr[1], f"{where}[2][1]", terms)
    elif op in NAMES:
        WORD(attr, f"{where}[2]", terms)
    elif attr is not None and not isinstance(attr, bool | int | float | str):
        raise Wrong(f"{where}[2] is neither a number nor a text")


def validate(certificate: Data, version: int) -> None:
    """Raises Wrong, which says where, for what is not a certificate of this version."""
    _record({})(certificate, "the file", 0)
    if certificate.get("certificate") != version or isinstance(certificate["certificate"], bool):
        raise Wrong(f"not a certificate of version {version}")
    CERTIFICATE(certificate, "it", 0)
    if not isinstance(certificate.get("parts"), list) or not certificate["parts"]:
        raise Wrong("it has no list of parts")
    for k, part in enumerate(certificate["parts"]):
        _part(part, f"parts[{k}]")


def _part(part: Data, where: str) -> None:
    _record({})(part, where, 0)
    if not isinstance(part.get("terms"), list):
        raise Wrong(f"{where} has no list of terms")
    terms = len(part["terms"])
    for k, row in enumerate(part["terms"]):
        _row(row, f"{where}.terms[{k}]", k)
    PART(part, where, terms)
    numbers = [c["number"] for c in part["configurations"]]
    if len(set(numbers)) < len(numbers):
        raise Wrong(f"two configurations of {where} have one number")
