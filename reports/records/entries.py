"""The entries of the JSON document as types, as schema.json describes them.

They are plain data (dicts, lists, texts and numbers), so that they cross between processes and `json.dumps` writes them
as they are."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

Number = float | str  # infinities and NaN are text
Row = dict[str, Any]  # a Record, or a kernel that no case launches: what filters and the cache take


class Location(TypedDict):
    """A place in a file; line 0 and column 0 where they are not known."""

    file: str
    line: int
    column: int


class KernelLocation(TypedDict):
    """A kernel that a case launches."""

    name: str
    file: str
    line: int


class Error(Location):
    """An error: a construct that trilift cannot read, a wrong case, or a failure of trilift itself; `draw.error` draws
    it."""

    kind: str
    what: str
    why: str
    help: str


class Formula(TypedDict):
    """The printed forms of a formula."""

    text: str
    latex: str
    torch: str


class Output(TypedDict):
    """One output of a case: its forms, or why it has none."""

    name: str
    text: str | None
    latex: str | None
    torch: str | None
    laws: list[str]
    lift: str
    strategies: NotRequired[dict[str, int]]  # how often each closed a goal


class Step(TypedDict):
    """A titled text of --explain."""

    title: str
    text: str


class Clause(TypedDict):
    """One line of a contract."""

    kind: str
    text: str
    why: str
    place: Location | None


class Counterexample(TypedDict):
    """The input on which a kernel is wrong, in the user's names. Among the dims are the strides of tensors that were
    laid out otherwise than the case draws them: "stride(x,0)"."""

    dims: dict[str, Any]
    seed: int
    config: int
    output: str
    index: list[int]
    element: str
    why: str
    got: Number
    expected: Number
    replay: str | None
    place: Location | None  # of the kernel launched last there


class Proof(TypedDict):
    """The verdict on one output, with its evidence."""

    output: str
    dims: NotRequired[list[str]]  # where they are not the record's: of the second kernel of a comparison
    against: str
    verdict: str
    bound: float | None
    samples: int
    reason: str
    cause: str
    place: Location | None
    contract: list[Clause]
    counterexample: Counterexample | None
    conditions: dict[str, Any]
    smt: str | None
    seconds: float
    strategies: dict[str, dict[str, int]]  # goal -> how often each strategy closed it
    details: dict[str, Any]


class FindingStep(Location):
    """One step of how a finding comes about."""

    text: str


class Finding(TypedDict):
    """A finding: a defect of a kernel. The findings of an audit have all fields."""

    rule: str
    message: str
    file: str
    line: int
    counterexample: dict[str, Any]
    replay: str | None
    column: NotRequired[int]
    level: NotRequired[str]
    hint: NotRequired[str]
    script: NotRequired[str]
    steps: NotRequired[list[FindingStep]]
    suppression: NotRequired[dict[str, str]]


class Verdict(TypedDict):
    """The verdict on a case without a proof of any output."""

    verdict: str
    against: str
    reason: str
    place: Location | None
    proofs: list[Proof]


class Opinion(TypedDict):
    """The certificate of a proof, replayed by the checker: "checked" or "not checked", and what is not shown."""

    verdict: str
    solver: str
    obligations: int
    missing: list[str]


class Record(TypedDict):
    """One case: an entry of "cases"."""

    name: str
    file: str
    formula: Formula | None
    lift: str
    verdict: str
    against: str
    bound: float | None
    reason: str
    contract: list[str]
    findings: list[Finding]
    seconds: dict[str, float]
    launches: int
    outputs: list[Output]
    errors: list[Error]
    explain: list[Step]
    dims: list[str]
    where: str
    place: Location | None
    proofs: list[Proof]
    blocks: dict[str, int]
    kernels: list[KernelLocation]
    undecided: list[str]
    suppressed: list[Finding]
    checked: NotRequired[Opinion]  # with --check, of what is PROVED
    cached: NotRequired[bool]
    steps: NotRequired[list[str]]  # what each stage spent of its budget, with --debug
