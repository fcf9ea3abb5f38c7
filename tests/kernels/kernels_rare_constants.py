"""Kernels that are compiled for another constant at few sizes or addresses, chosen by heuristics or by autotuning."""

import torch
import triton
import triton.language as tl

from trilift import case


def fewer(configs, args, **_):
    """The configurations that add something for large inputs, the others for small ones."""
    return [c for c in configs if c.kwargs["EXTRA"] == int(args["n"] > 5000)]


def adding(choose):
    """A kernel that copies x and adds the constant EXTRA, which `choose` decides."""

    @choose
    @triton.jit
    def adding_kernel(x, y, n, EXTRA: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i, mask=i < n) + EXTRA, mask=i < n)

    def copied(x):
        y, n = torch.empty_like(x), x.numel()
        options = {"BLOCK": 64} if isinstance(adding_kernel, triton.runtime.autotuner.Heuristics) else {}
        adding_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n, **options)
        return y

    copied.__name__ = copied.__qualname__ = choose.__name__
    found = case(x="f32[N]")(copied)
    found.reference(lambda x: x.clone())
    return found


def at_one_size(kernel):
    return triton.heuristics({"EXTRA": lambda a: int(a["n"] == 5003)})(kernel)


def at_large_sizes(kernel):
    configs = [triton.Config({"BLOCK": 64, "EXTRA": k}) for k in (0, 1)]
    return triton.autotune(configs, key=["n"], prune_configs_by={"early_config_prune": fewer})(kernel)


def at_an_address(kernel):
    return triton.heuristics({"EXTRA": lambda a: int(a["x"].data_ptr() % 32 == 16)})(kernel)


one_size, large_sizes, address = map(adding, (at_one_size, at_large_sizes, at_an_address))
