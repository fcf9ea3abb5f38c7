"""flag-gems' silu and product, then liger-kernel's RMS norm: three launches of packages."""

import torch

from trilift import case

from ..packages.flag_gems import ops
from ..packages.liger import EPS, liger, rms


@case(a="f32[M,N]", b="f32[M,N]", g="f32[N]")
def packaged_gate(a, b, g):
    return liger.LigerRMSNormFunction.apply(ops.mul(ops.silu(a), b), g, EPS)


@packaged_gate.reference
def _(a, b, g):
    return rms(torch.nn.functional.silu(a) * b, g)
