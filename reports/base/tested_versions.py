"""Versions of Python, PyTorch and Triton that trilift was tried with together: those of the page of `make matrix`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Versions:
    """One environment in which every operator gave the golden text, as "3.11", "2.13", "3.9"."""

    python: str
    torch: str
    triton: str


TESTED: tuple[Versions, ...] = (Versions("3.11", "2.13", "3.8"), Versions("3.11", "2.13", "3.9"))


def minor(version: str) -> str:
    """The first two numbers of a version: "2.13" of "2.13.0+cpu"."""
    return ".".join(version.split("+")[0].split(".")[:2])


def tested(python: str, torch: str, triton: str) -> bool:
    """Whether these versions were tried together; patch levels do not count."""
    return Versions(minor(python), minor(torch), minor(triton)) in TESTED


def span(versions: list[str]) -> str:
    """Versions in words: "3.9", "3.6 to 3.9"."""
    ordered = sorted(set(versions), key=lambda v: [int(n) for n in v.split(".")])
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def words() -> str:
    """All of them in one line."""
    rows = (f"{k} {span([getattr(t, k) for t in TESTED])}" for k in ("python", "torch", "triton"))
    return ", ".join(rows)
