# expect: precision-loss at line 21
"""Two rows are added in fp16 before they reach the fp32 accumulator; pattern of meta-pytorch/torchrec#3730."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def pooled_embedding_kernel(table_ptr, user_ptr, item_ptr, out_ptr, L, D, BLOCK: tl.constexpr):
    bag = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for l in range(L):
        user = tl.load(user_ptr + bag * L + l)
        item = tl.load(item_ptr + bag * L + l)
        a = tl.load(table_ptr + user * D + cols, mask=cols < D, other=0.0)
        b = tl.load(table_ptr + item * D + cols, mask=cols < D, other=0.0)
        acc += (a + b).to(tl.float32)
    tl.store(out_ptr + bag * D + cols, acc, mask=cols < D)


def pooled_embedding(table, user, item):
    (B, L), D = user.shape, table.shape[1]
    out = torch.empty((B, D), dtype=torch.float32, device=table.device)
    pooled_embedding_kernel[(B, triton.cdiv(D, 128))](table, user, item, out, L, D, BLOCK=128)
    return out


@case(
    table="f16[V,D]",
    user="i64[B,L] < V",
    item="i64[B,L] < V",
    where="B < 2**31 and V < 2**31 and L < 2**30 and D <= 2**20",
)
def sums_of_bags(table, user, item):
    return pooled_embedding(table, user, item)


@sums_of_bags.reference
def _(table, user, item):
    table = table.float()
    return (table[user] + table[item]).sum(dim=1)
