"""RoCo: an attention block that also returns the sums of the weights of each token of the cache, and of their squares,
over all queries."""

from trilift import case

from .vanilla import cached, heads, merged, weights
from .vanilla import sizes as sizes


@case(
    x="f16[M,H*D]", wq="f16[H*D,H*D]", wk="f16[H*D,H*D]", wv="f16[H*D,H*D]",
    keys="f16[H,P+M,D]", values="f16[H,P+M,D]",
)  # fmt: skip
def ro_co(x, wq, wk, wv, keys, values):
    q, k, v = (heads(x @ w, keys) for w in (wq, wk, wv))
    w = weights(q, cached(keys, k))
    return merged(w @ cached(values, v)), w.sum(1), (w * w).sum(1)
