"""attn-gym: gates, scans and reductions of its linear attention."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from trilift import case

from ._setup import gradients, package

groups = package("attn_gym.linear._delta_rule.triton.group_sum", "attn-gym")
slots = package("attn_gym.linear._delta_rule.triton.fold_slots", "attn-gym")
plain = package("attn_gym.linear._delta_rule.triton.plain_gate", "attn-gym")
soft = package("attn_gym.linear._delta_rule.triton.softplus_gate", "attn-gym")
masks = package("attn_gym.linear.kda.fwd.triton.masking", "attn-gym")
norm = package("attn_gym.linear.kda.fwd.triton.l2norm_fwd", "attn-gym")
EPS = 1e-6


@case(x="f32[T,3*H,D]")
def group_sum(x):
    return groups.group_sum(x, 3, out_dtype=torch.float32)


@group_sum.reference
def _(x):
    return x.unflatten(1, (-1, 3)).sum(2)


@case(x="f32[T,3*H,D]", y="f32[T,3*H,D]")
def group_sum_of_two(x, y):
    return groups.group_sum(x, 3, out_dtype=torch.float32, addend=y)


@group_sum_of_two.reference
def _(x, y):
    return (x + y).unflatten(1, (-1, 3)).sum(2)


@case(x="f32[1,T,D]", active="bool[T]")
def mask_rows(x, active):
    return masks.mask_inactive_rows(x, active)


@mask_rows.reference
def _(x, active):
    return torch.where(active[:, None], x, 0.0)


def scanned(x, reverse):
    """Sums within chunks of 64 positions, of logarithms to the base 2."""
    t = torch.arange(x.shape[1])
    now, then = t[:, None], t[None, :]
    before = now <= then if reverse else then <= now
    passed = (before & (now // 64 == then // 64))[None, :, :, None, None]
    return torch.where(passed, x[:, None], 0.0).sum(2) / math.log(2)


@case(x="f32[1,T,H,D]")
def gate_scan(x):
    return plain._plain_gate_scan_cuda(x, None, None, False)


@gate_scan.reference
def _(x):
    return scanned(x, False)


@case(x="f32[1,T,H,D]")
def gate_scan_reverse(x):
    return plain._plain_gate_scan_cuda(x, None, None, True)


@gate_scan_reverse.reference
def _(x):
    return scanned(x, True)


@case(g="f32[B,T,H,D]", a="f32[H]", b="f32[H,D]")
def softplus_gate(g, a, b):
    return soft._softplus_gate_fwd_cuda(g, a, b, False)


@softplus_gate.reference
def _(g, a, b):
    return -torch.exp(a)[:, None] * F.softplus(g + b)


@case(g="f32[B,T,H,D]", a="f32[H]", b="f32[H,D]", dy="f32[B,T,H,D]")
def softplus_gate_backward(g, a, b, dy):
    return soft._softplus_gate_bwd_cuda(g, a, b, dy, False)


def unit(x):
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + EPS)


@case(x="f32[B,T,H,D]")
def l2norm(x):
    return norm._l2norm_fwd_cuda(x, EPS)


@l2norm.reference
def _(x):
    return unit(x), torch.rsqrt(x.square().sum(-1) + EPS).flatten()


@case(x="f32[B,T,H,D]", dy="f32[B,T,H,D]")
def l2norm_backward(x, dy):
    _, scale = norm._l2norm_fwd_cuda(x, EPS)
    return norm._l2norm_bwd_cuda(x, scale, dy, None, False)


@l2norm_backward.reference
def _(x, dy):
    return gradients(unit, dy, x)


@case(m="f32[S,H,48,16]", i="i64[R,2] < S")
def fold_slots(m, i):
    return slots.fold_slots_fused(m, i)
