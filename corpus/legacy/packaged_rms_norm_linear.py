"""liger-kernel's RMS norm, then flag-gems' linear layer: two launches of packages."""

import torch

from trilift import case

from ..packages.flag_gems import ops
from ..packages.liger import EPS, liger, rms


@case(x="f32[M,K]", g="f32[K]", w="f32[K,N]", bias="f32[N]")
def packaged_rms_norm_linear(x, g, w, bias):
    return ops.addmm(bias, liger.LigerRMSNormFunction.apply(x, g, EPS), w)


@packaged_rms_norm_linear.reference
def _(x, g, w, bias):
    return torch.addmm(bias, rms(x, g), w)
