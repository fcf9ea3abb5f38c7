"""QKNorm: attention after a norm without gain or epsilon. The paper norms queries and keys, its script the last axes of
queries and values, as the keys are stored transposed."""

import torch

from trilift import case

from .attention import sizes as sizes


def rms(x, axis=-1):
    return x / torch.sqrt((x**2).mean(axis, keepdim=True))


@case(q="f16[G,M,D]", k="f16[G,D,N]", v="f16[G,N,D]")
def normed_attention_paper(q, k, v):
    weights = torch.exp(rms(q) @ rms(k, 1))
    return weights / weights.sum(-1, keepdim=True) @ v


@case(q="f16[G,M,D]", k="f16[G,D,N]", v="f16[G,N,D]")
def normed_attention_script(q, k, v):
    weights = torch.exp(rms(q) @ k)
    return weights / weights.sum(-1, keepdim=True) @ rms(v)
