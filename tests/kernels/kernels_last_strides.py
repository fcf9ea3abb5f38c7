"""Host functions that ask whether a last stride is 1: right and wrong on one side or the other."""

from __future__ import annotations

import torch
from kernels_layouts import doubled

from trilift import case


def twice(spec, where="N <= 64"):
    def decorate(fn):
        found = case(x=spec, where=where)(fn)
        found.reference(lambda x: 2 * x)
        return found

    return decorate


@twice("f32[M,N] strided")
def made_dense(x):
    return doubled(x if x.stride(-1) == 1 else x.contiguous())


@twice("f32[M,N] strided")
def refused(x):
    assert x.stride(-1) == 1
    return doubled(x)


@twice("f32[M,N] rows")
def refused_rows(x):
    assert x.stride(-1) == 1
    return doubled(x)


@twice("f32[M,N] rows")
def rows_taken_for_dense(x):
    return doubled(x, in_stride=x.shape[1])


@twice("f32[M,N] strided")
def gaps_are_left(x):
    """Wrong where the last stride is not 1, which is no clause's to leave out."""
    return doubled(x if x.stride(-1) != 1 else x.contiguous())


@case(x="f32[M,N] strided", y="f32[M,N] strided", where="N <= 64")
def made_dense_both(x, y):
    x, y = (t if t.stride(-1) == 1 else t.contiguous() for t in (x, y))
    return torch.cat((doubled(x), doubled(y)))


made_dense_both.reference(lambda x, y: torch.cat((2 * x, 2 * y)))
