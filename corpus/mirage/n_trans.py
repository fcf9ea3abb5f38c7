"""nTrans: a residual step on normed rows. The paper's norm is the length of a row and its step is x + a * (h - x); the
script's norm is the root of the mean square, the length over sqrt(K), and its step is x + a * (h + x), h normed."""

import torch

from trilift import case


def sizes(batch: int) -> dict[str, int]:
    return {"M": batch, "K": 4096}


def unit(x):
    return x / torch.sqrt((x**2).sum(-1, keepdim=True))


def rms(x):
    return unit(x) * x.shape[-1] ** 0.5


@case(h="f16[M,K]", x="f16[M,K]", a="f16[M,K]")
def n_trans_paper(h, x, a):
    return unit(x + a * unit(h - x))


@case(h="f16[M,K]", x="f16[M,K]", a="f16[M,K]")
def n_trans_script(h, x, a):
    return rms(x + a * (rms(h) + x))
