"""Host functions and references that use a module beside them, and ones that make texts of sizes and of tensors."""

from __future__ import annotations

import string

import settings_beside
from host_functions import scale

from trilift import case


@case(x="f32[N]")
def flag(x):
    return scale(x, settings_beside.factor())


@case(x="f32[N]")
def counter(x):
    return scale(x, settings_beside.counted())


@case(x="f32[N]")
def counter_of_a_class(x):
    return scale(x, settings_beside.counted_in_a_class())


@case(x="f32[N]")
def iterator_of_a_class(x):
    return scale(x, next(settings_beside.FACTORS[0]))


@case(x="f32[N]")
def length_by_a_helper(x):
    return scale(x, 2.0 + 0 * settings_beside.length(x))


@case(x="f32[N]")
def text_of_data(x):
    return scale(x, 3.0 if "7.5000" in repr(x) else 2.0)


@case(x="f32[N]")
def text_in_a_message(x):
    if x.shape[0] < 0:
        raise ValueError(f"{x} of {x.shape}")
    return scale(x, 2.0)


@case(x="f32[N]")
def looked_up(x):
    return scale(x, globals().get("FACTOR", 2.0))


for _case in (flag, looked_up, counter, iterator_of_a_class, counter_of_a_class, length_by_a_helper, text_of_data):
    _case.reference(lambda x: 2 * x)


@text_in_a_message.reference
def _(x):
    if x.shape[0] < 0:
        raise ValueError(f"{x} of {x.shape}")
    return 2 * x


@case(x="f32[N]")
def flag_of_the_reference(x):
    return scale(x, 2.0)


@flag_of_the_reference.reference
def _(x):
    return settings_beside.factor() * x


def read_as(choose):
    """A case whose reference computes 3 x for some sizes or data, of which it asks a text."""

    def texts(x):
        return scale(x, 2.0)

    c = case(x="f32[N]")(texts)
    c.reference(lambda x: (3 if choose(x) else 2) * x)
    return c


TEXTS = {
    "of a size": read_as(lambda x: str(x.shape[0]) == "77003"),
    "formatted": read_as(lambda x: f"{x.shape[0]}" == "77003"),
    "by a format": read_as(lambda x: "{}".format(x.shape[0]) == "77003"),  # noqa: UP032
    "by per cent": read_as(lambda x: "%s" % x.shape[0] == "77003"),  # noqa: UP031
    "of a shape": read_as(lambda x: "77003" in str(x.shape)),
    "of a tuple": read_as(lambda x: str(tuple(x.shape)) == "(77003,)"),
    "its length": read_as(lambda x: len(repr(x.shape[0])) == 7),
    "joined": read_as(lambda x: ",".join(map(str, x.shape)) == "77003"),
    "of a template": read_as(lambda x: string.Template("$n").substitute(n=x.shape[0]) == "77003"),
    "of an error": read_as(lambda x: str(KeyError(x.shape[0])) == "77003"),
    "of data": read_as(lambda x: "7.5000" in repr(x)),
    "of a sum": read_as(lambda x: f"{x.sum()}" == "7.5"),
}
