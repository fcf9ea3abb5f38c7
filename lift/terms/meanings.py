"""The meanings of operations beyond their row in `lift.terms.ops`: one registry for every stage.

A stage that needs another meaning of operations (values of a finite field, intervals, SMT-LIB, Triton source ...)
declares a domain and registers a meaning for each operation that it knows:

    INTERVAL = Domain("interval", missing="unbounded", says="between which numbers a term lies")

    @meaning(INTERVAL, "abs")
    def _(e: Enclosure, t: Term, xs: Sequence[Interval]) -> Interval: ...

    INTERVAL.fill({"sin": _within(-1, 1), "cos": _within(-1, 1)})

A domain declares once how it treats an operation without a meaning (`missing`). `trilift ops --domains` prints all
operations and domains. A loop that asks often takes `DOMAIN.rows`, a plain dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from ..errors import Unsupported

Missing = Literal["error", "opaque", "unbounded", "call"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Domain:
    """One meaning of operations. Raises ValueError for a name that another domain has.

    missing   what an operation without a meaning is: an "error" that names it, "opaque" (a function that is equal only
              to itself), "unbounded" (nothing is known of its value), "call" (printed as a call of its name)
    says      what a meaning says of an operation, in a few words
    error     the text of the error, with {op}; by default it names operation and domain
    of_terms  whether it is asked of terms, which hold no operation that its row builds of others (x - y is x + -1 * y);
              else it is asked of all operations of Triton IR
    column    the column of `lift.terms.ops.Op` that holds its meanings, beside `rows`
    types     result types of the operations that it is asked of; none of other types may have a meaning
    rows      the meanings by operation
    derived   operations that have a meaning because another step rewrites them first, with how
    refused   operations that must not have a meaning, with why
    """

    name: str
    missing: Missing
    says: str
    error: str = ""
    of_terms: bool = True
    column: str = ""
    types: tuple[str, ...] = ("real", "int", "bool", "same")
    rows: dict[str, Any] = field(default_factory=dict)
    derived: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name in DOMAINS:
            raise ValueError(f"domain {self.name} is declared twice")
        DOMAINS[self.name] = self

    def get(self, op: str) -> Any | None:
        """The meaning of an operation, None where it is missing."""
        return self.rows.get(op)

    def __getitem__(self, op: str) -> Any:
        """The meaning of an operation. Raises Unsupported, naming operation and domain, where it is missing."""
        if op not in self.rows:
            raise Unsupported(self.error.format(op=op) if self.error else f"{op} has no meaning in domain {self.name}")
        return self.rows[op]

    def __contains__(self, op: str) -> bool:
        return op in self.rows

    def put(self, op: str, value: Any) -> None:
        """Registers a meaning. Raises ValueError for a second one of the same operation, or for one that is refused."""
        if op in self.rows:
            raise ValueError(f"operation {op} has two meanings in domain {self.name}")
        if op in self.refused:
            raise ValueError(f"operation {op} must have no meaning in domain {self.name}: {self.refused[op]}")
        self.rows[op] = value

    def fill(self, rows: Mapping[str, Any]) -> None:
        """Registers the meanings of a table."""
        for op, value in rows.items():
            self.put(op, value)

    def derive(self, ops: Iterable[str], how: str) -> None:
        """Notes that another step rewrites these operations first. Those with a row keep it."""
        self.derived.update((op, how) for op in ops if op not in self.rows)


DOMAINS: dict[str, Domain] = {}


def meaning(domain: Domain, *ops: str) -> Callable[[F], F]:
    """Registers the decorated function as the meaning of the operations in the domain."""

    def register(f: F) -> F:
        domain.fill(dict.fromkeys(ops, f))
        return f

    return register
