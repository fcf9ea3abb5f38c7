# expect: broken-contract at line 23
"""The gradient of a sum is one number expanded: reads go on behind it; pattern of ROCm/TransformerEngine#623."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def squared_relu_backward_kernel(grad_ptr, x_ptr, dx_ptr, n_elements, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n_elements
    grad = tl.load(grad_ptr + at, mask=mask, other=0.0)
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    tl.store(dx_ptr + at, 2.0 * tl.maximum(x, 0.0) * grad, mask=mask)


def squared_relu_backward(grad, x):
    dx = torch.empty_like(x)
    n = x.numel()
    squared_relu_backward_kernel[(triton.cdiv(n, 1024),)](grad, x, dx, n, BLOCK=1024)
    return dx


@case(grad="f32[1]", x="f32[M,N]", where="M * N < 2**30")
def gradient_of_sum(grad, x):
    """What autograd hands to the backward of `squared_relu(x).sum()`."""
    return squared_relu_backward(grad.expand(x.shape), x)


@gradient_of_sum.reference
def _(grad, x):
    return 2.0 * torch.relu(x) * grad
