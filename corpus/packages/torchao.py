"""torchao: block-wise quantisation and products of quantised matrices."""

from __future__ import annotations

from trilift import case

from ._setup import package


def prepare() -> None:
    """Autotune keys that name no argument, which current Triton rejects when the kernel is defined, are left out."""
    from triton.runtime.autotuner import Autotuner

    if getattr(Autotuner.__init__, "drops_stale_keys", False):
        return
    plain = Autotuner.__init__

    def init(self, fn, arg_names, configs, key, *rest, **options):
        plain(self, fn, arg_names, configs, [k for k in key if k in arg_names], *rest, **options)

    init.drops_stale_keys = True
    Autotuner.__init__ = init


blocks = package("torchao.kernel.blockwise_quantization", "torchao", prepare)
int8 = package("torchao.prototype.quantized_training.int8_mm", "torchao", prepare)
fp8 = package("torchao.prototype.float8nocompile.kernels.fp8_dynamic_tensorwise", "torchao", prepare)
hadamard = package("torchao.prototype.attention.quantization.triton_hadamard_utils", "torchao", prepare)
training = package("torchao.prototype.blockwise_fp8_training.kernels", "torchao", prepare)
experts = package("torchao.prototype.moe_training.ep.kernels", "torchao", prepare)


def blocked(x):
    """[M, N] as [M // 16, N // 16, 16, 16]"""
    return x.unflatten(1, (-1, 16)).unflatten(0, (-1, 16)).transpose(1, 2)


@case(x="f32[M,16*N]")
def quantise_activations(x):
    return blocks.fp8_blockwise_act_quant(x, 16)


@quantise_activations.reference
def _(x):
    scale = x.unflatten(1, (-1, 16)).abs().amax(-1) / 448
    return x / scale.repeat_interleave(16, 1), scale


@case(x="f32[16*M,16*N]")
def quantise_weights(x):
    return blocks.fp8_blockwise_weight_quant(x, 16)


@quantise_weights.reference
def _(x):
    scale = blocked(x).abs().amax((-1, -2)) / 448
    return x / scale.repeat_interleave(16, 0).repeat_interleave(16, 1), scale


@case(x="f8e4m3fn[16*M,16*N]", s="f32[M,N]")
def dequantise_weights(x, s):
    return blocks.fp8_blockwise_weight_dequant(x, s, 16)


@dequantise_weights.reference
def _(x, s):
    return x * s.repeat_interleave(16, 0).repeat_interleave(16, 1)


@case(a="f8e4m3fn[M,32*K]", s="f32[M,K]", b="f8e4m3fn[32*N,32*K]", t="f32[N,K]")
def blockwise_matmul(a, s, b, t):
    return blocks.blockwise_fp8_gemm(a, s, b, t, 32)


@blockwise_matmul.reference
def _(a, s, b, t):
    return (a * s.repeat_interleave(32, 1)) @ (b * t.repeat_interleave(32, 0).repeat_interleave(32, 1)).T


@case(a="i8[M,K]", b="i8[K,N]", r="f32[M,1]", c="f32[1,N]")
def scaled_int8_matmul(a, b, r, c):
    return int8.scaled_int8_mm_cuda(a, b, r, c)


@scaled_int8_matmul.reference
def _(a, b, r, c):
    return (a.double() @ b.double()) * r * c


@case(x="f32[M,N]")
def tensor_scale(x):
    import triton.language as tl

    return fp8._hp_tensor_to_scale(x, tl.float32, 448.0, fp8.KernelAlgorithm.ATOMIC_MAX)


@tensor_scale.reference
def _(x):
    return 448 / x.abs().max().clamp_min(1e-12)


@case(x="bf16[B,H,S,16]")
def inverse_hadamard(x):
    return hadamard.inverse_hadamard_transform(x, 1)
