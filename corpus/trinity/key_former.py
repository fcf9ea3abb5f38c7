"""KeyFormer: an attention block that also returns what each token of the cache weighs, over all queries, in a softmax
of noisy scores at a temperature."""

import torch

from trilift import case

from .vanilla import cached, heads, merged, weights
from .vanilla import sizes as sizes

TEMPERATURE = 1.5


@case(
    x="f16[M,H*D]", wq="f16[H*D,H*D]", wk="f16[H*D,H*D]", wv="f16[H*D,H*D]",
    keys="f16[H,P+M,D]", values="f16[H,P+M,D]", noise="f16[H,M,P+M]",
)  # fmt: skip
def key_former(x, wq, wk, wv, keys, values, noise):
    q, k, v = (heads(x @ w, keys) for w in (wq, wk, wv))
    e = torch.exp((q @ cached(keys, k).transpose(1, 2) + noise) / TEMPERATURE)
    importance = (e / e.sum(-1, keepdim=True)).sum(1)
    return merged(weights(q, keys) @ cached(values, v)), importance
