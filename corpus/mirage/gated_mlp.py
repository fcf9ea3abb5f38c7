"""The gated half of a feed-forward layer."""

import torch

from trilift import case


def sizes(batch: int) -> dict[str, int]:
    return {"M": batch, "K": 4096, "N": 4096}


@case(x="f16[M,K]", w="f16[K,N]", v="f16[K,N]")
def gated_mlp(x, w, v):
    return torch.nn.functional.silu(x @ w) * (x @ v)
