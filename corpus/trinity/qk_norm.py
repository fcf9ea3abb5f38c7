"""An attention block whose queries and keys are normed in each head, the keys before they are cached."""

from trilift import case

from .pre_norm import rms
from .vanilla import cached, heads, merged, weights
from .vanilla import sizes as sizes


@case(
    x="f16[M,H*D]", wq="f16[H*D,H*D]", wk="f16[H*D,H*D]", wv="f16[H*D,H*D]",
    keys="f16[H,P+M,D]", values="f16[H,P+M,D]",
)  # fmt: skip
def qk_norm(x, wq, wk, wv, keys, values):
    q, k, v = (heads(x @ w, keys) for w in (wq, wk, wv))
    return merged(weights(rms(q), cached(keys, rms(k))) @ cached(values, v))
