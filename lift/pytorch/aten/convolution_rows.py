"""PyTorch operators that slide a window over a tensor: convolution, pooling, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import Unsupported
from ...terms import construct as T
from ...terms import index as I
from ...terms.term import Term
from ..symbolic_tensor import ONE, Index, SymbolicTensor, bound, kind, reshape, tensor
from .elementwise import elementwise, where
from .operator_row import Meaning, Row, Rows
from .reduction_rows import averaged, summed
from .shape_rows import ZERO, Size, conj

ROWS = Rows(__name__)


def _each(v: Sequence[Any] | Any, n: int) -> list[Any]:
    """One value per spatial dimension."""
    v = list(v) if isinstance(v, list | tuple) else [v]
    return v * n if len(v) == 1 else v


def _sum_over(sizes: Sequence[Term], body: Callable[[Index], Term], op: str = "sum") -> Term:
    axes = [bound(n) for n in sizes]
    out = body(tuple(ZERO if a.size is ONE else T.axis(a) for a in axes))
    for a in reversed(axes):
        out = out if a.size is ONE else T.fold(op, a, out)
    return out


def _inside(position: Sequence[Term], sizes: Sequence[Term]) -> Term:
    low = [T.const(True) if I.nonnegative(p) else T.make("le", 0, p) for p in position]
    return conj(*low, *(I.less(p, n) for p, n in zip(position, sizes, strict=True)))


@ROWS("convolution _convolution")
def _convolution(
    input: SymbolicTensor, weight: SymbolicTensor, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> SymbolicTensor:  # fmt: skip
    """out[n, o, p] = sum over c, k of weight[o, c, k] * input[n, g*C + c, p*stride + k*dilation - padding]."""
    n = input.rank - 2
    s, pad, dil, extra = (_each(v, n) for v in (stride, padding, dilation, output_padding))
    if transposed:
        out = _transposed_convolution(input, weight, s, pad, dil, extra, groups)
    else:
        out = _plain_convolution(input, weight, s, pad, dil, groups)
    return out if bias is None else elementwise(T.add, out, reshape(bias, (bias.shape[0], *[1] * n)))


def _plain_convolution(
    x: SymbolicTensor, w: SymbolicTensor, s: list[Any], pad: list[Any], dil: list[Any], groups: int
) -> SymbolicTensor:
    n = x.rank - 2
    reach = [x.shape[2 + d] + 2 * T.const(pad[d]) - dil[d] * (w.shape[2 + d] - 1) - 1 for d in range(n)]
    out = [I.floordiv(reach[d], s[d]) + 1 for d in range(n)]
    per_group = I.quotient(w.shape[0], T.const(groups))

    def at(i: Index) -> Term:
        def body(k: Index) -> Term:
            place = [I.normal(i[2 + d] * s[d] + k[1 + d] * dil[d] - pad[d]) for d in range(n)]
            channel = k[0] if groups == 1 else I.normal(I.floordiv(i[1], per_group) * w.shape[1] + k[0])
            value = w.at((i[1], *k)) * x.at((i[0], channel, *place))
            return where(_inside(place, x.shape[2:]), value, 0)

        return _sum_over(w.shape[1:], body)

    return tensor((x.shape[0], w.shape[0], *out), at, kind([x, w]))


def _transposed_convolution(
    x: SymbolicTensor, w: SymbolicTensor, s: list[Any], pad: list[Any], dil: list[Any], extra: list[Any], groups: int
) -> SymbolicTensor:
    """out[n, o, q] = sum over c, p, k with q = p*stride + k*dilation - padding of weight[c, o, k] * input[n, c, p]."""
    n = x.rank - 2
    sizes = [
        (x.shape[2 + d] - 1) * s[d] - 2 * T.const(pad[d]) + dil[d] * (w.shape[2 + d] - 1) + extra[d] + 1
        for d in range(n)
    ]
    outputs, inputs = w.shape[1], I.quotient(x.shape[1], T.const(groups))

    def at(i: Index) -> Term:
        def body(k: Index) -> Term:
            reach = [I.normal(i[2 + d] + T.const(pad[d]) - k[1 + d] * dil[d]) for d in range(n)]
            place = [I.floordiv(r, s[d]) for d, r in enumerate(reach)]
            on = [T.make("eq", I.mod(r, s[d]), 0) for d, r in enumerate(reach) if s[d] != 1]
            group = I.floordiv(i[1], outputs)
            channel = k[0] if groups == 1 else I.normal(group * inputs + k[0])
            own = i[1] if groups == 1 else I.mod(i[1], outputs)
            value = w.at((channel, own, *k[1:])) * x.at((i[0], channel, *place))
            return where(conj(_inside(place, x.shape[2:]), *on), value, 0)

        return _sum_over((inputs, *w.shape[2:]), body)

    return tensor((x.shape[0], I.normal(outputs * groups), *sizes), at, kind([x, w]))


@ROWS("convolution_backward")
def _convolution_backward(
    grad_output: SymbolicTensor, input: SymbolicTensor, weight: SymbolicTensor, bias_sizes: object, stride: Any,
    padding: Any, dilation: Any, transposed: bool, output_padding: object, groups: int, output_mask: object,
) -> tuple[SymbolicTensor, ...]:  # fmt: skip
    if transposed:
        raise Unsupported("aten.convolution_backward", why="transposed")
    n = input.rank - 2
    s, pad, dil = (_each(v, n) for v in (stride, padding, dilation))
    spatial = [0, *range(2, input.rank)]
    dx = _transposed_convolution(grad_output, weight, s, pad, dil, [0] * n, groups)
    dx = SymbolicTensor(
        input.shape, dx.at, dx.type
    )  # the size that floor division by the stride has lost is known here
    per_group = I.quotient(weight.shape[0], T.const(groups))

    def weight_at(i: Index) -> Term:
        def body(j: Index) -> Term:
            place = [I.normal(j[1 + d] * s[d] + i[2 + d] * dil[d] - pad[d]) for d in range(n)]
            channel = i[1] if groups == 1 else I.normal(I.floordiv(i[0], per_group) * weight.shape[1] + i[1])
            value = grad_output.at((j[0], i[0], *j[1:])) * input.at((j[0], channel, *place))
            return where(_inside(place, input.shape[2:]), value, 0)

        return _sum_over((grad_output.shape[0], *grad_output.shape[2:]), body)

    return dx, tensor(weight.shape, weight_at, weight.type), summed(grad_output, spatial)


def _windows(
    x: SymbolicTensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, n: int
) -> tuple[list[Term], list[Term], Callable[[Index, Index], tuple[Index, Term]]]:
    """Output sizes, window sizes, and (index, k) -> (position in x, is it inside)."""
    if ceil_mode:
        raise Unsupported("pooling with ceil_mode")
    size, pad, dil = (_each(v, n) for v in (kernel, padding, dilation))
    s = _each(stride, n) if stride not in ([], (), None) else size
    spatial = x.shape[x.rank - n :]
    reach = [spatial[d] + 2 * T.const(pad[d]) - dil[d] * (T.const(size[d]) - 1) - 1 for d in range(n)]
    out = [I.floordiv(reach[d], s[d]) + 1 for d in range(n)]

    def place(i: Index, k: Index) -> tuple[Index, Term]:
        p = tuple(I.normal(i[len(i) - n + d] * s[d] + k[d] * dil[d] - pad[d]) for d in range(n))
        return (*i[: len(i) - n], *p), _inside(p, spatial)

    return out, [T.const(k) for k in size], place


def _max_pool(n: int) -> Meaning:
    """The greatest element of each window, and its position in the input (row-major over the pooled dimensions)."""

    def meaning(
        self: SymbolicTensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> tuple[SymbolicTensor, SymbolicTensor]:
        sizes, window, place = _windows(self, kernel_size, stride, padding, dilation, ceil_mode, n)
        spatial = self.shape[self.rank - n :]
        flat = bound(I.numel(tuple(window)))

        def value(i: Index, k: Index) -> Term:
            position, inside = place(i, k)
            return where(inside, self.at(position), -float("inf"))

        def position(i: Index) -> Term:
            k = ZERO if flat.size is ONE else T.axis(flat)
            first = T.fold("argmax", flat, value(i, I.unravel(k, tuple(window))))
            return I.linear(place(i, I.unravel(first, tuple(window)))[0][self.rank - n :], spatial)

        shape = (*self.shape[: self.rank - n], *sizes)
        greatest = tensor(shape, lambda i: _sum_over(window, lambda k: value(i, k), "amax"), self.type)
        return greatest, tensor(shape, position, T.INT)

    return meaning


MAX_POOL = "self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False"
ROWS.add(*(Row(f"max_pool{n}d_with_indices", MAX_POOL, _max_pool(n), f"torch.nn.MaxPool{n}d") for n in (1, 2, 3)))


def _avg_pool(n: int) -> Callable[..., SymbolicTensor]:
    def meaning(
        self: SymbolicTensor, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: Any = None,
    ) -> SymbolicTensor:  # fmt: skip
        sizes, window, place = _windows(self, kernel_size, stride, padding, 1, ceil_mode, n)

        def at(i: Index) -> Term:
            value = lambda k: where(place(i, k)[1], self.at(place(i, k)[0]), 0)  # noqa: E731
            present = lambda k: where(place(i, k)[1], 1, 0)  # noqa: E731
            count = I.numel(tuple(window)) if count_include_pad else _sum_over(window, present)
            return _sum_over(window, value) / (count if divisor_override is None else divisor_override)

        return tensor((*self.shape[: self.rank - n], *sizes), at, T.REAL)

    return meaning


AVG_POOL = "self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True"
ROWS.add(
    Row("avg_pool1d", AVG_POOL, _avg_pool(1), "torch.nn.AvgPool1d"),
    Row("avg_pool2d", f"{AVG_POOL}, divisor_override=None", _avg_pool(2), "torch.nn.AvgPool2d"),
    Row("avg_pool3d", f"{AVG_POOL}, divisor_override=None", _avg_pool(3), "torch.nn.AvgPool3d"),
)


@ROWS("_adaptive_avg_pool2d adaptive_avg_pool2d adaptive_avg_pool1d _adaptive_avg_pool3d")
def _adaptive_avg_pool(self: SymbolicTensor, output_size: Size) -> SymbolicTensor:
    """Only to size 1 (a mean), or where the sizes divide."""
    out = self
    for k, n in enumerate(output_size):
        d = self.rank - len(output_size) + k
        q, total = I.quotient(self.shape[d], T.const(n)), self.shape[d]
        if I.normal(q * n) is not total:
            raise Unsupported("aten.adaptive_avg_pool", why=f"could not show that {total} is a multiple of {n}")
        split = reshape(out, (*out.shape[:d], n, q, *out.shape[d + 1 :]))
        out = averaged(split, d + 1)
    return out
