"""What buffers hold between the events of a setting, as functions of the element's number.

after a host operation    out[i, ...] = values(i, ...)
after a launch            element e is the value of the site that writes it, if one does:
                          where(C(e), value(w(e)), before(e)), C and w of `verify.stores`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lift import term as T
from lift.term import Term

from .algebra import Undecided
from .setting import Buffer, HostOp, View

Content = Callable[[Term], Term]


@dataclass
class Memory:
    """The contents of every buffer. A buffer whose contents are not known has the reason why in `unknown`."""

    contents: dict[Buffer, Content] = field(default_factory=dict)
    unknown: dict[Buffer, Undecided] = field(default_factory=dict)

    def at(self, buffer: Buffer, o: Term) -> Term:
        """Element o. Raises Undecided where it is not known."""
        if buffer in self.unknown:
            raise self.unknown[buffer]
        found = self.contents.get(buffer)
        return found(o) if found is not None else buffer.initial(o)

    def forget(self, buffer: Buffer, why: Undecided) -> None:
        """Nothing is known of the buffer from now on."""
        self.unknown[buffer] = why

    def host(self, event: HostOp, buffers: dict[str, Buffer]) -> None:
        """A torch operation."""
        before = Memory(dict(self.contents), dict(self.unknown))
        for view, value in zip(event.outputs, event.values, strict=True):

            def element(index: Sequence[Term], value: Callable[[Sequence[Term]], Term] = value) -> Term:
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

    def define(self, view: View, element: Callable[[Sequence[Term]], Term]) -> None:
        """The elements of a view have new values; the rest of the buffer stays."""
        buffer = view.buffer
        index_of = inverse(view)
        if index_of is None:
            self.forget(buffer, Undecided(f"{buffer.name} is written through a view that is not dense"))
            return
        old = self.contents.get(buffer, buffer.initial)
        whole = covers(view)

        def content(o: Term) -> Term:
            value = element(index_of(o))
            if whole:
                return value
            inside = T.make("and", T.make("le", view.offset, o), T.make("lt", o, T.add(view.offset, size(view))))
            return T.where(inside, value, old(o))

        self.unknown.pop(buffer, None)
        self.contents[buffer] = content


def size(view: View) -> Term:
    return T.mul(*view.shape) if view.shape else T.const(1)


def covers(view: View) -> bool:
    """Whether a dense view is the whole buffer."""
    return view.offset is T.const(0) and size(view) is view.buffer.length


def inverse(view: View) -> Callable[[Term], tuple[Term, ...]] | None:
    """The logical index of an element of a dense view, by quotients and remainders; None if it is not dense."""
    order = sorted((d for d in range(len(view.shape)) if view.shape[d] is not T.const(1)),
                   key=lambda d: len(list(view.strides[d].walk())))  # fmt: skip
    step: Term = T.const(1)
    chain: list[int] = []
    left = list(order)
    while left:
        d = next((d for d in left if view.strides[d] is step), None)
        if d is None:
            return None
        chain.append(d)
        left.remove(d)
        step = T.mul(step, view.shape[d])

    def index(o: Term) -> tuple[Term, ...]:
        rest = T.sub(o, view.offset)
        out: list[Term] = [T.const(0)] * len(view.shape)
        for k, d in enumerate(chain):
            last = k == len(chain) - 1
            q = rest if view.strides[d] is T.const(1) else T.make("floordiv", rest, view.strides[d])
            out[d] = q if last else T.make("mod", q, view.shape[d])
        return tuple(out)

    return index
