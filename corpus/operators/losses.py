"""cross_entropy with and without ignored rows, its backward in place, and kl_div."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from trilift import case


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, loss_ptr, V, stride, ignore_index, HAS_IGNORE: tl.constexpr, BLOCK: tl.constexpr
):
    """One row: log of the sum of exponentials by a running maximum, minus the target's logit."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    if HAS_IGNORE:  # noqa: SIM102 - the outer one is decided while compiling
        if target == ignore_index:
            tl.store(loss_ptr + row, 0.0)
            return
    logits_ptr += row * stride
    top = -float("inf")
    total = 0.0
    for start in range(0, V, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + cols, mask=cols < V, other=-float("inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new_top) + tl.sum(tl.exp(x - new_top), axis=0)
        top = new_top
    picked = tl.load(logits_ptr + target).to(tl.float32)
    tl.store(loss_ptr + row, top + tl.log(total) - picked)


@triton.jit
def cross_entropy_backward_kernel(logits_ptr, target_ptr, dloss_ptr, V, stride, BLOCK: tl.constexpr):
    """Overwrites the logits of a row by their gradient, (softmax - one_hot) * dloss."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    dloss = tl.load(dloss_ptr + row)
    cols = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * stride + cols, mask=cols < V, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    p = e / tl.sum(e, axis=0)
    tl.store(logits_ptr + row * stride + cols, tl.where(cols == target, p - 1.0, p) * dloss, mask=cols < V)


@triton.jit
def kl_div_kernel(pred_ptr, true_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Sum over a row of true * (log(true) - pred), pred being logarithms of probabilities."""
    row = tl.program_id(0).to(tl.int64)
    acc = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        pred = tl.load(pred_ptr + row * N + cols, mask=cols < N, other=0.0)
        true = tl.load(true_ptr + row * N + cols, mask=cols < N, other=1.0)
        acc += tl.sum(tl.where(cols < N, true * (tl.log(tl.maximum(true, 1e-10)) - pred), 0.0), axis=0)
    tl.store(out_ptr + row, acc)


def row_losses(logits, target, ignore_index, block=1024):
    M, V = logits.shape
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    has_ignore = ignore_index is not None
    cross_entropy_kernel[(M,)](
        logits, target, loss, V, logits.stride(0), ignore_index or 0, HAS_IGNORE=has_ignore, BLOCK=block
    )
    return loss


@case(logits="f32[M,V]", target="i64[M] < V")
def cross_entropy(logits, target):
    return row_losses(logits, target, None).mean()


@cross_entropy.reference
def _(logits, target):
    return F.cross_entropy(logits, target)


@case(logits="f32[M,V]", target="i64[M] < V", ignore_index=0)
def cross_entropy_ignore(logits, target, ignore_index):
    return row_losses(logits, target, ignore_index)


@cross_entropy_ignore.reference
def _(logits, target, ignore_index):
    loss = torch.logsumexp(logits, dim=-1) - logits.gather(1, target[:, None])[:, 0]
    return torch.where(target == ignore_index, 0.0, loss)


@case(logits="f32[M,V]", target="i64[M] < V", dloss="f32[M]")
def cross_entropy_backward(logits, target, dloss):
    M, V = logits.shape
    block = triton.next_power_of_2(V)
    cross_entropy_backward_kernel[(M,)](logits, target, dloss, V, logits.stride(0), BLOCK=block)
    return logits


@cross_entropy_backward.reference
def _(logits, target, dloss):
    one_hot = (torch.arange(logits.shape[1]) == target[:, None]).to(logits.dtype)
    return logits.copy_((torch.softmax(logits, dim=-1) - one_hot) * dloss[:, None])


@case(pred="f32[M,N]", true="f32[M,N] > 0")
def kl_div(pred, true):
    M, N = pred.shape
    rows = torch.empty((M,), dtype=torch.float32, device=pred.device)
    kl_div_kernel[(M,)](pred, true, rows, N, BLOCK=1024)
    return rows.sum() / M


@kl_div.reference
def _(pred, true):
    return (true * (torch.log(torch.clamp(true, min=1e-10)) - pred)).sum() / pred.shape[0]
