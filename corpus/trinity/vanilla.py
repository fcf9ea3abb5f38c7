"""An attention block: projections, the cache, attention, heads merged again."""

import torch

from trilift import case

MODELS = {"llama": {"H": 32, "D": 128}, "falcon": {"H": 71, "D": 64}}


def sizes(model: str) -> dict[str, int]:
    return {"M": 16, "P": 1008, **MODELS[model]}


def heads(x, cache):
    """Rows of H * D columns as H heads of rows of D."""
    return x.view(x.shape[0], cache.shape[0], cache.shape[2]).transpose(0, 1)


def cached(cache, new):
    """The cache with the new rows behind those before them."""
    cache[:, cache.shape[1] - new.shape[1] :] = new
    return cache


def weights(q, keys):
    e = torch.exp(q @ keys.transpose(1, 2))
    return e / e.sum(-1, keepdim=True)


def merged(o):
    return o.transpose(0, 1).reshape(o.shape[1], -1)


@case(
    x="f16[M,H*D]", wq="f16[H*D,H*D]", wk="f16[H*D,H*D]", wv="f16[H*D,H*D]",
    keys="f16[H,P+M,D]", values="f16[H,P+M,D]",
)  # fmt: skip
def vanilla(x, wq, wk, wv, keys, values):
    q, k, v = (heads(x @ w, keys) for w in (wq, wk, wv))
    return merged(weights(q, cached(keys, k)) @ cached(values, v))
