"""The normal form of terms under facts, and when two of them are equal.

    poly < literals < algebra < piecewise < rules.fold < variables < signs < rules.* < equality < rules.argmax < zero

Imports go from right to left only. A rule is given the engine, a term and what is known (`algebra.Algebra`, `Context`);
what it needs of a family that stands to its right it asks the engine (`Algebra.condition`, `.sign`, `.lattice`,
`.nonempty`, `.zero`), to which that family gave an answer. Here every family is imported, so that no rule is missing.
"""

from . import piecewise, signs, zero
from .rules import indicator, maximum, product, sum  # noqa: A004 - the family of sums

__all__ = ["indicator", "maximum", "piecewise", "product", "signs", "sum", "zero"]
