"""RMSNorm and a linear layer. The paper's norm has a gain, its script's has none."""

import torch

from trilift import case


def sizes(batch: int) -> dict[str, int]:
    return {"M": 2 * batch, "K": 4096, "N": 6144}


@case(x="f16[M,K]", g="f16[K]", w="f16[K,N]")
def rms_norm_linear_paper(x, g, w):
    return (x * g / torch.sqrt((x**2).mean(-1, keepdim=True))) @ w


@case(x="f16[M,K]", w="f16[K,N]")
def rms_norm_linear_script(x, w):
    return (x / torch.sqrt((x**2).mean(-1, keepdim=True))) @ w
