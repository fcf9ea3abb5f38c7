"""The contents of buffers between the events of a configuration, as functions of the element's number.

after a host operation    out[i, ...] = values(i, ...)
after a launch            what `verify.memory.effects` says of the elements of the view that it writes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trilift.lift.terms import construct as T
from trilift.lift.terms.term import Term

from ..integers.logical_index import layout, rewritten
from ..integers.quotient import canonical
from ..model.configuration import Buffer, HostOp, View
from ..model.program import Element
from ..normal_form.algebra import Undecided

Content = Callable[[Term], Term]


@dataclass
class Memory:
    """The contents of every buffer. `distinct`: whether two indices of a view are never at one element."""

    distinct: Callable[[View], bool] = lambda view: False
    contents: dict[Buffer, Content] = field(default_factory=dict)

    def copy(self) -> Memory:
        """The contents now, whatever is written later."""
        return Memory(self.distinct, dict(self.contents))

    def at(self, buffer: Buffer, o: Term) -> Term:
        """Element o. Raises Undecided where it is not known."""
        return self.contents.get(buffer, buffer.initial)(o)

    def forget(self, buffer: Buffer, why: Undecided) -> None:
        """Nothing is known of the buffer from now on."""

        def content(_: Term) -> Term:
            raise Undecided(why.what, why.place, why.why)

        self.contents[buffer] = content

    def host(self, event: HostOp, buffers: dict[str, Buffer]) -> None:
        """A torch operation."""
        before = self.copy()
        for view, value in zip(event.outputs, event.values, strict=True):

            def element(index: Sequence[Term], value: Element = value) -> Term:
                return before.substituted(value(index), buffers)

            self.define(view, element)

    def substituted(self, t: Term, buffers: dict[str, Buffer]) -> Term:
        """A term over elements of buffers by name, as a term over their contents."""

        def one(s: Term) -> Term | None:
            if s.op == "read" and s.attr in buffers:
                new = self.at(buffers[s.attr], s.args[0])
                return new if new is not s else None
            return None

        return T.rewrite(t, one)

    def define(self, view: View, element: Element) -> None:
        """The elements of a view have new values; the rest of the buffer stays."""
        try:
            self.contents[view.buffer] = self.overlaid(view, element)
        except Undecided as stop:
            self.forget(view.buffer, stop)

    def overlaid(self, view: View, element: Element) -> Content:
        """The contents of the view's buffer with new values in the view. Raises Undecided."""
        buffer = view.buffer
        if not dense(view) and not self.distinct(view):
            raise Undecided(f"{buffer.name} is written through a view that may have two elements at one place")
        old = self.contents.get(buffer, buffer.initial)
        whole = covers(view)

        def content(o: Term) -> Term:
            index, inside = place(view, o)
            value = element(index)
            return value if whole or inside is T.const(True) else T.where(inside, value, old(o))

        return content


def size(view: View) -> Term:
    return T.mul(*view.shape) if view.shape else T.const(1)


def covers(view: View) -> bool:
    """Whether a dense view is the whole buffer."""
    return dense(view) and view.offset is T.const(0) and canonical(size(view)) is canonical(view.buffer.length)


def gaps(view: View) -> tuple[list[int], list[bool]]:
    """Dimensions with more than one element, largest stride first; whether each is followed by a gap, unlike
    strides[d] = shape[e] * strides[e] (= 1 after the last)."""
    view = rewritten(view, {})
    order = layout(view)
    after = [*(canonical(T.mul(view.shape[e], view.strides[e])) for e in order[1:]), T.const(1)]
    return order, [view.strides[d] is not n for d, n in zip(order, after, strict=False)]


def dense(view: View) -> bool:
    """Whether the elements of a view lie behind one another."""
    order, gap = gaps(view)
    return not any(gap) and all(view.shape[d] is T.const(1) for d in range(len(view.shape)) if d not in order)


def place(view: View, o: Term) -> tuple[tuple[Term, ...], Term]:
    """The logical index of element o of the buffer, and the condition that it is in the view; of a view without two
    indices at one element."""
    order, gap = gaps(view)
    index: list[Term] = [T.const(0)] * len(view.shape)
    rest = T.sub(o, view.offset)
    whole = T.mul(view.shape[order[0]], view.strides[order[0]]) if order else T.const(1)
    inside = [T.make("le", 0, rest), T.make("lt", rest, whole)]
    for k, d in enumerate(order):
        stride = view.strides[d]
        index[d] = rest if stride is T.const(1) else T.make("floordiv", rest, stride)
        if k and gap[k - 1]:
            inside.append(T.make("lt", index[d], view.shape[d]))
        if k + 1 < len(order) or gap[k]:
            rest = T.make("mod", rest, stride)
    if gap and gap[-1]:
        inside.append(T.make("eq", rest, 0))
    return tuple(index), T.make("and", True, *inside)
