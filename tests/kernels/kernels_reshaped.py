"""Host functions and references that give a tensor another shape in place, and beside each one a wrong twin."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def doubled_kernel(x, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < N), mask=i < N)


def doubled(x, out=None):
    out = torch.empty_like(x) if out is None else out
    doubled_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


def turned_before_the_launch(x):
    y = x * 1.0
    y.t_()
    return doubled(y, torch.empty_like(x)) + y.t_()


def turned_view(x):
    out = torch.empty((x.shape[1], x.shape[0]), device=x.device)
    seen = out.view(x.shape)
    doubled(x, seen)
    return seen.t_()


def base_of_a_turned_view(x):
    out = doubled(x)
    seen = out.view(x.shape[1], x.shape[0])
    seen.t_()
    seen.mul_(2.0)
    return out


def written_by_a_turned_view(x):
    """The first row of the turned view is the first column of the view."""
    out = x * 2.0
    seen = out.view(x.shape[1], x.shape[0])
    seen.t_()
    seen[0].mul_(2.0)
    return out


def written_by_a_view(x):
    out = doubled(x)
    out.view(x.shape[1], x.shape[0])[:, 0].mul_(2.0)
    return out


def turned_twice(x):
    out = x * 2.0
    out.t_()
    out.t_()
    return out


FORMS = {  # what the host function makes of the kernel's result, and the same without changing it
    "turned": (lambda x: doubled(x).t_(), lambda x: (2 * x).T, lambda x: (3 * x).T),
    "transposed": (lambda x: doubled(x).transpose_(0, 1), lambda x: (2 * x).T, lambda x: (x + 2).T),
    "swapped": (lambda x: doubled(x).swapaxes_(0, 1), lambda x: (2 * x).T, lambda x: (3 * x).T),
    "unsqueezed": (lambda x: doubled(x).unsqueeze_(0), lambda x: (2 * x)[None], lambda x: (3 * x)[None]),
    "squeezed": (lambda x: doubled(x[None]).squeeze_(0), lambda x: 2 * x, lambda x: 3 * x),
    "strided": (
        lambda x: doubled(x).as_strided_((x.shape[1], x.shape[0]), (1, x.shape[1])), lambda x: (2 * x).T,
        lambda x: (2 * x).reshape(x.shape[1], x.shape[0]),
    ),
    "turned_and_doubled": (lambda x: doubled(x).t_().mul_(2), lambda x: 4 * x.T, lambda x: 2 * x.T),
    "turned_before": (turned_before_the_launch, lambda x: 3 * x, lambda x: 2 * x),
    "turned_view": (turned_view, lambda x: 2 * x.T, lambda x: 3 * x.T),
    "base": (base_of_a_turned_view, lambda x: 4 * x, lambda x: 2 * x),
    "column": (written_by_a_view, written_by_a_turned_view, lambda x: 2 * x),
    "of_reference": (doubled, turned_twice, written_by_a_turned_view),
    "square": (lambda x: doubled(x).t_(), lambda x: (2 * x).T, lambda x: 2 * x),
}  # fmt: skip


def _case(form, reference):
    found = case(x="f32[32,32]" if form == "square" else "f32[M,N]")(FORMS[form][0])
    found.reference(reference)
    return found


RIGHT = {form: _case(form, reference) for form, (_, reference, _) in FORMS.items()}
WRONG = {form: _case(form, reference) for form, (_, _, reference) in FORMS.items()}


@case(x="f32[M,N]")
def resized(x):
    out = doubled(x)
    return out.resize_(x.shape[0] * x.shape[1])


resized.reference(lambda x: (2 * x).flatten())
