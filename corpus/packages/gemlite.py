"""gemlite: packing of low-precision weights into words, and scaling of activations."""

from __future__ import annotations

import torch

from trilift import case

from ._setup import package

bits = package("gemlite.bitpack", "gemlite")
quantise = package("gemlite.quant_utils", "gemlite")


def shifts(count):
    return torch.arange(count, dtype=torch.int32) * (32 // count)


@case(w="u8[M,8*N] < 16")
def pack_columns(w):
    return bits.pack_weights_over_cols_triton(w, 4, 32, False)[0]


@pack_columns.reference
def _(w):
    return (w.to(torch.int32).unflatten(1, (-1, 8)) << shifts(8)).sum(-1).to(torch.int32)


@case(w="u8[8*M,N] < 16")
def pack_rows(w):
    return bits.pack_weights_over_rows_triton(w, 4, 32, False)[0]


@pack_rows.reference
def _(w):
    return (w.to(torch.int32).unflatten(0, (-1, 8)) << shifts(8)[:, None]).sum(1).to(torch.int32)


@case(w="i32[M,N]")
def unpack_columns(w):
    return bits.unpack_over_cols_triton(w, 4, 8 * w.shape[1])


@unpack_columns.reference
def _(w):
    return (w[..., None] >> shifts(8) & 15).flatten(1).to(torch.uint8)


@case(w="i32[M,N]")
def unpack_rows(w):
    return bits.unpack_over_rows_triton(w, 8, 4 * w.shape[0])


@unpack_rows.reference
def _(w):
    return (w[:, None] >> shifts(4)[:, None] & 255).flatten(0, 1).to(torch.uint8)


@case(x="f32[M,K]")
def scale_per_token(x):
    return quantise.scale_activations_per_token_triton_v1(x, torch.int8)


@case(x="f32[M,K]")
def scale_per_token_rows(x):
    return quantise.scale_activations_per_token_triton_v2(x, torch.float8_e4m3fn)
