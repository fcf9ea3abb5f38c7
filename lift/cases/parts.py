"""Parts of a case: integer scalars of every sign, and sizes at which a function does something else.

    s="i32"            ->  s with 1 <= s;  s = 0;  -s for s, with 1 <= s
    N where 1 < N      ->  1 < N;  N = 1
    N where N < 5001   ->  N < 5001;  5001 <= N

Everywhere else a symbol of type int is a size, and sizes are at least 1: here is the one place that makes it so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

from ..language.case_spec import Spec
from ..terms import construct as T
from ..terms.term import Term
from .declaration import Case, Reference

R = TypeVar("R")
PARTS_OF_A_CASE = 9  # three signs of two scalars


@dataclass(frozen=True, slots=True)
class Part:
    """`case` is the original where `where` holds and names are the terms of `images`: a number, or -name."""

    case: Case
    images: Mapping[str, Term]
    where: Term = T.const(True)

    @property
    def label(self) -> str:
        """s = 0, t < 0; empty where all scalars are positive."""
        return ", ".join(f"{n} = {t.attr}" if t.is_const else f"{n} < 0" for n, t in self.images.items())

    def numbers(self, dims: Mapping[str, int | float]) -> dict[str, int | float]:
        """Dims and scalars of `case` as those of the original."""
        return {**dims, **{n: t.attr if t.is_const else -dims[n] for n, t in self.images.items()}}

    def original(self, t: Term) -> Term:
        """A condition on the names of `case` as one on those of the original."""
        return _replaced(t, {n: T.mul(-1, T.size(n)) for n, image in self.images.items() if not image.is_const})


def may_be_less_than_one(s: object) -> bool:
    """Whether a spec is that of an integer scalar whose limits do not say that it is at least 1."""
    if not isinstance(s, Spec) or s.shape is not None or s.is_float or s.dtype == "bool" or s.positive:
        return False
    return s.low is None or not s.low.is_const or bool(s.low.attr < 1)


def signed(case: Case) -> tuple[Part, ...]:
    """The case by the signs of its integer scalars, that with positive ones first; the case alone where all of them are
    positive, and where there would be more than `PARTS_OF_A_CASE`."""
    free = [n for n, s in case.params.items() if may_be_less_than_one(s)]
    every = list(product(*(tuple(_images(n, case.params[n])) for n in free)))
    if not free or len(every) > PARTS_OF_A_CASE:
        return (Part(case, {}),)
    return tuple(_signed(case, dict(zip(free, images, strict=True))) for images in every)


def otherwise(case: Case, condition: Term) -> Part:
    """The part of a case where a condition over its dims and scalars is false. Where only N = 1 is left of a dim, it is
    the number."""
    left = T.make("not", condition)
    if (found := _single(condition)) is not None and found[0] in case.names:
        n, number = found
        return replace(_signed(case, {n: T.const(number)}), where=left)
    return Part(replace(case, where=T.make("and", True, case.where, left)), {}, left)


def _single(condition: Term) -> tuple[str, int] | None:
    """The name and the number that are excluded: 1 < n or 2 <= n, which a size may miss by 1 only, and n != 3."""
    if condition.op in ("lt", "le", "ne"):
        for a, b in (condition.args, condition.args[::-1] if condition.op == "ne" else condition.args):
            if a.is_const and b.op == "size" and (condition.op == "ne" or a.attr == 1 + (condition.op == "le")):
                return str(b.attr), 1 if condition.op != "ne" else int(a.attr)
    return None


def _images(name: str, s: Spec) -> Iterator[Term]:
    """The terms that stand for the scalar: itself, 0, its negative; without those that its limits rule out."""
    low = None if s.low is None or not s.low.is_const else s.low.attr
    low = 0 if s.low is None and s.dtype[0] == "u" else low
    high = None if s.high is None or not s.high.is_const else s.high.attr
    if high is None or high > 1:
        yield T.size(name)
    if (low is None or low <= 0) and (high is None or high > 0):
        yield T.const(0)
    if low is None or low < 0:
        yield T.mul(-1, T.size(name))


def _signed(case: Case, images: Mapping[str, Term]) -> Part:
    changed = {n: t for n, t in images.items() if t is not T.size(n)}
    params = {n: _param(n, s, images.get(n), changed) for n, s in case.params.items()}
    fn, reference = case.fn, case.reference.fn
    limits = [_replaced(c, changed) for n in images if n in case.params for c in _limits(n, case.params[n])]
    found = replace(
        case,
        fn=_called(fn, changed),
        reference=Reference(None if reference is None else _called(reference, changed)),
        params=params,
        where=T.make("and", True, _replaced(case.where, changed), *limits),
    )
    return Part(found, changed)


def _limits(name: str, s: Spec) -> Iterator[Term]:
    """Limits that are terms over dims: those that are numbers stay in the spec."""
    if s.low is not None and not s.low.is_const:
        yield T.make("le", s.low, T.size(name))
    if s.high is not None and not s.high.is_const:
        yield T.make("lt", T.size(name), s.high)


def _param(name: str, s: object, image: Term | None, changed: Mapping[str, Term]) -> object:
    if isinstance(s, list | tuple):
        return type(s)(_param(name, e, None, changed) for e in s)
    if not isinstance(s, Spec):
        return s
    if image is None:
        at = lambda t: None if t is None else _replaced(t, changed)  # noqa: E731
        shape = None if s.shape is None else tuple(_replaced(e, changed) for e in s.shape)
        return replace(s, shape=shape, low=at(s.low), high=at(s.high))
    if image.is_const:
        return image.attr
    low, high = s.low, s.high
    if name in changed:  # low <= -s < high
        low, high = (None if high is None else 1 - high), (None if low is None else 1 - low)
    low = T.const(max(1, low.attr)) if low is not None and low.is_const else T.const(1)
    return replace(s, low=low, high=high if high is not None and high.is_const else None)


def _replaced(t: Term, images: Mapping[str, Term]) -> Term:
    return T.rewrite(t, lambda s: images.get(str(s.attr)) if s.op == "size" else None) if images else t


def _called(fn: Callable[..., R], images: Mapping[str, Term]) -> Callable[..., R]:
    """The function, which gets 0 or the negative for these arguments."""
    if not images:
        return fn

    @functools.wraps(fn)
    def call(**given: Any) -> R:
        return fn(**{n: -v if n in images and not images[n].is_const else v for n, v in given.items()})

    return call


__all__ = ["Part", "may_be_less_than_one", "otherwise", "signed"]
