"""A feed-forward layer after attention: the output projection, the residual, a norm, and a gated pair of layers."""

import torch

from trilift import case

from .pre_norm import rms

MODELS = {"llama": {"N": 4096, "F": 16384}, "falcon": {"N": 4544, "F": 18176}}


def sizes(model: str) -> dict[str, int]:
    return {"M": 16, **MODELS[model]}


@case(
    o="f16[M,N]", wo="f16[N,N]", x="f16[M,N]",
    up="f16[N,F]", gate="f16[N,F]", down="f16[F,N]",
)  # fmt: skip
def swi_glu(o, wo, x, up, gate, down):
    h = rms(o @ wo + x)
    return ((h @ up) * torch.nn.functional.silu(h @ gate)) @ down
