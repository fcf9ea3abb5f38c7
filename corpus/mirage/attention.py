"""Grouped-query attention: G groups of heads, M rows for the queries and heads of a group."""

import torch

from trilift import case


def sizes(batch: int) -> dict[str, int]:
    return {"G": 2 * batch, "M": 256, "D": 64, "N": 4096}


@case(q="f16[G,M,D]", k="f16[G,D,N]", v="f16[G,N,D]")
def attention(q, k, v):
    weights = torch.exp(q @ k)
    return weights / weights.sum(-1, keepdim=True) @ v


def scaled_dot_product(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k.transpose(1, 2), v, scale=1.0)


RIVALS = {"attention": {"scaled_dot_product_attention": scaled_dot_product}}
