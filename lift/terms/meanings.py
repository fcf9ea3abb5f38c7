"""What operations mean, beyond their row in `lift.terms.ops`: one registry for every stage.

A stage that needs another meaning of operations (values of a finite field, intervals, SMT-LIB, Triton source ...)
declares a domain and registers a meaning for each operation that it knows:

    INTERVAL = Domain("interval", missing="unbounded", says="between which numbers the result lies")

    @meaning(INTERVAL, "exp")
    def _(x: Interval) -> Interval: ...

What a missing meaning does is said once, where the domain is declared. `trilift ops` prints all operations and domains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Missing = Literal["error", "opaque", "unbounded"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Domain:
    """One meaning of operations. `missing`: what an operation without a meaning is: an "error" that names it, "opaque"
    (equal only to itself) or "unbounded" (nothing is known of it). `derived`: operations that have a meaning because
    another stage rewrites them first, with how; `refused`: those that must not have one, with why."""

    name: str
    missing: Missing
    says: str
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
        """The meaning of an operation. Raises KeyError, naming operation and domain, where it is missing."""
        if op not in self.rows:
            raise KeyError(f"operation {op} has no meaning in domain {self.name} ({self.says})")
        return self.rows[op]

    def __contains__(self, op: str) -> bool:
        return op in self.rows

    def put(self, op: str, value: Any) -> None:
        """Registers a meaning. Raises ValueError for a second one of the same operation."""
        if op in self.rows:
            raise ValueError(f"operation {op} has two meanings in domain {self.name}")
        self.rows[op] = value

    def update(self, ops: Iterable[str], value: Any) -> None:
        """Registers one meaning for several operations."""
        for op in ops:
            self.put(op, value)


DOMAINS: dict[str, Domain] = {}


def meaning(domain: Domain, *ops: str) -> Callable[[F], F]:
    """Registers the decorated function as the meaning of the operations in the domain."""

    def register(f: F) -> F:
        domain.update(ops, f)
        return f

    return register
