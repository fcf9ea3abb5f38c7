"""An attention block after a norm of its input, without gain or epsilon."""

import torch

from trilift import case

from .vanilla import cached, heads, merged, weights
from .vanilla import sizes as sizes


def rms(x):
    return x / torch.sqrt((x**2).mean(-1, keepdim=True))


@case(
    x="f16[M,H*D]", wq="f16[H*D,H*D]", wk="f16[H*D,H*D]", wv="f16[H*D,H*D]",
    keys="f16[H,P+M,D]", values="f16[H,P+M,D]",
)  # fmt: skip
def pre_norm(x, wq, wk, wv, keys, values):
    q, k, v = (heads(rms(x) @ w, keys) for w in (wq, wk, wv))
    return merged(weights(q, cached(keys, k)) @ cached(values, v))
