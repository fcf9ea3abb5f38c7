"""Functions of torch.nn.functional that are read as their textbook form, before PyTorch takes them apart for speed."""

from __future__ import annotations

import math
import os
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import torch
from torch.fx.traceback import set_stack_trace
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes


def attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """softmax(query @ key.T * scale + mask) @ value."""
    if dropout_p:
        return NotImplemented
    if enable_gqa:
        key, value = (t.repeat_interleave(query.shape[-3] // t.shape[-3], -3) for t in (key, value))
    scores = (query @ key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    # a row that a mask hides altogether gives zeros; a causal row sees at least itself
    weights = torch.softmax(scores, -1) if attn_mask is None else torch.ops.aten._safe_softmax(scores, -1)
    return weights @ value


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5) -> Any:
    """Only for a symbolic eps, which PyTorch's own operator would take as a number."""
    if not isinstance(eps, torch.SymFloat):
        return NotImplemented
    dims = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(dims, keepdim=True)
    out = centred * torch.rsqrt(centred.square().mean(dims, keepdim=True) + eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """x / sqrt(mean(x^2) + eps) * weight, with eps as it was given (PyTorch rounds it to the type of x)."""
    dims = tuple(range(-len(normalized_shape), 0))
    eps = _default_eps(input.dtype) if eps is None else eps
    out = input * torch.rsqrt(input.square().mean(dims, keepdim=True) + eps)
    return out if weight is None else out * weight


@cache
def _default_eps(dtype: torch.dtype) -> float:
    """The eps of PyTorch's rms_norm where it is left out: of the type it computes in, or of the type of x, which
    versions of PyTorch differ in. A tiny x is x / sqrt(eps) after it."""
    types = [
        float(torch.finfo(t).eps) for t in (dtype, torch.float32) if torch.finfo(t).bits >= torch.finfo(dtype).bits
    ]
    with _disable_current_modes():
        x = torch.full((1,), 2.0**-14, dtype=dtype)
        ratio = float(x) / float(torch.ops.aten.rms_norm(x, [1]))
    return min(types, key=lambda eps: abs(math.log(ratio**2 / (eps + float(x) ** 2))))


def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """(1 - s) * nll + s/C * sum of all classes. Only smoothed and weighted: there PyTorch takes C as a number."""
    if weight is None or not label_smoothing or input.dim() != 2 or target.dtype.is_floating_point:
        return NotImplemented
    log_p = torch.log_softmax(input, 1)
    ignored = target == ignore_index
    smooth = -(log_p * weight).sum(1).masked_fill(ignored, 0.0)
    total = weight.gather(0, target.masked_fill(ignored, 0)).masked_fill(ignored, 0.0).sum()
    reduced = {"none": lambda t: t, "sum": torch.sum, "mean": lambda t: t.sum() / total}[reduction](smooth)
    nll = torch.nn.functional.nll_loss(log_p, target, weight, ignore_index=ignore_index, reduction=reduction)
    return (1 - label_smoothing) * nll + label_smoothing / input.shape[1] * reduced


def one_hot(tensor: Any, num_classes: Any = -1) -> Any:
    """1 where the class is the element, with a number of classes that stays symbolic."""
    if isinstance(num_classes, int) and num_classes < 0:
        return NotImplemented
    return (tensor.unsqueeze(-1) == torch.arange(num_classes, device=tensor.device)).long()


def take_along_dim(input: Any, indices: Any, dim: Any = None) -> Any:
    """gather, with the other dimensions broadcast."""
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    d = dim % input.dim()
    shape = [m if k == d else _wider(n, m) for k, (n, m) in enumerate(zip(input.shape, indices.shape, strict=True))]
    sizes = [n if k == d else m for k, (n, m) in enumerate(zip(input.shape, shape, strict=True))]
    return input.expand(sizes).gather(d, indices.expand(shape))


def _wider(n: Any, m: Any) -> Any:
    return m if isinstance(n, int) and n == 1 else n


def _through_2d(pool: Callable[..., Any]) -> Callable[..., Any]:
    """Pooling over one dimension as pooling over two, the first of size 1."""

    def pool_1d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *more: Any, **options: Any) -> Any:
        one = lambda v, unit: (unit, v[0] if isinstance(v, list | tuple) else v)  # noqa: E731
        if more or options.get("dilation", 1) != 1 or options.get("return_indices"):
            return NotImplemented
        options = {k: v for k, v in options.items() if k in ("ceil_mode", "count_include_pad")}
        step = one(kernel_size if stride is None else stride, 1)
        return pool(input.unsqueeze(-2), one(kernel_size, 1), step, one(padding, 0), **options).squeeze(-2)

    return pool_1d


def einsum(equation: Any, *operands: Any) -> Any:
    """The sum over the letters that the result lacks of the product of the operands, no dimensions merged."""
    operands = tuple(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    if not isinstance(equation, str) or "." in equation:
        return NotImplemented
    left, _, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if any(len(set(t)) != len(t) for t in terms):
        return NotImplemented
    if "->" not in equation:
        right = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    letters = right + "".join(dict.fromkeys(c for t in terms for c in t if c not in right))
    product = math.prod(_spread(x, t, letters) for x, t in zip(operands, terms, strict=True))
    inner = list(range(len(right), len(letters)))
    return product.sum(inner) if inner else product  # type: ignore[union-attr, return-value]


Device: TypeAlias = torch.device | str | None


def tensor(
    data: object, dtype: torch.dtype | None = None, device: Device = None, requires_grad: bool = False, **more: object
) -> object:
    """A tensor of one symbolic number, for which PyTorch's own function would ask."""
    if requires_grad or more or not isinstance(data, torch.SymInt | torch.SymFloat):
        return NotImplemented
    usual = torch.int64 if isinstance(data, torch.SymInt) else torch.get_default_dtype()
    return torch.full((), data, dtype=usual if dtype is None else dtype, device=device)


def new_tensor(
    like: torch.Tensor, data: object, *, dtype: torch.dtype | None = None, device: Device = None, **more: object
) -> object:
    """The same of the dtype and on the device of `like`."""
    return NotImplemented if more else tensor(data, dtype or like.dtype, like.device if device is None else device)


def _spread(x: Any, letters: str, every: str) -> Any:
    """x with one dimension per letter of `every`, of size 1 where x lacks it."""
    x = x.permute([letters.index(c) for c in every if c in letters])
    for k, c in enumerate(every):
        x = x if c in letters else x.unsqueeze(k)
    return x


_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
OTHERS = (
    os.path.dirname(torch.__file__) + os.sep,
    *(os.path.join(_ROOT, part, "") for part in ("lift", "verify", "superopt", "reports")),
)
STANDARD = sysconfig.get_path("stdlib") + os.sep
INSTALLED = tuple(sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib"))  # may be below STANDARD
INSTEAD: dict[Any, Callable[..., Any]] = {
    torch.nn.functional.scaled_dot_product_attention: attention,
    torch.nn.functional.layer_norm: layer_norm,
    torch.nn.functional.rms_norm: rms_norm,
    torch.rms_norm: rms_norm,
    torch.nn.functional.cross_entropy: cross_entropy,
    torch.nn.functional.one_hot: one_hot,
    torch.take_along_dim: take_along_dim,
    torch.Tensor.take_along_dim: take_along_dim,
    torch.nn.functional.max_pool1d: _through_2d(torch.nn.functional.max_pool2d),
    torch.max_pool1d: _through_2d(torch.nn.functional.max_pool2d),
    torch.nn.functional.avg_pool1d: _through_2d(torch.nn.functional.avg_pool2d),
    torch.einsum: einsum,
    torch.functional.einsum: einsum,
    torch.tensor: tensor,
    torch.as_tensor: tensor,
    torch.Tensor.new_tensor: new_tensor,
}


def is_user(file: str) -> bool:
    """Not PyTorch's, this package's or Python's own."""
    standard = file.startswith(STANDARD) and not file.startswith(INSTALLED)
    return not standard and not file.startswith(("<", *OTHERS))


def _user_line() -> list[str]:
    frame = sys._getframe(2)
    while frame is not None and not is_user(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    return [] if frame is None else [f'File "{frame.f_code.co_filename}", line {frame.f_lineno}']


class Textbook(TorchFunctionMode):  # type: ignore[misc]
    """Calls the textbook form of the functions above, and notes the user's line of every call in the graph."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        set_stack_trace(_user_line())
        form = INSTEAD.get(func)
        if form is not None:
            with self:
                out = form(*args, **kwargs)
            if out is not NotImplemented:
                return out
        return func(*args, **kwargs)
