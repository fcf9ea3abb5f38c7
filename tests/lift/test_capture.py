"""The pretended device, launches and torch operations as they are recorded, and host code that cannot be."""

from types import SimpleNamespace

import pytest
import torch
import triton
import triton.language as tl
from torch.library import custom_op, triton_op, wrap_triton
from triton.tools.tensor_descriptor import TensorDescriptor

from trilift.lift.capture import launches
from trilift.lift.capture.fake_cuda import MULTIPROCESSORS, pretend
from trilift.lift.capture.places import is_host
from trilift.lift.capture.run import capture, launching
from trilift.lift.capture.trace import Descriptor, TensorRef, TorchOp
from trilift.lift.cases.declaration import case, make_case
from trilift.lift.errors import CaseError, NoLaunch, Unsupported


@triton.jit
def scale_kernel(y, x, n, a, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, a * tl.load(x + i, mask=i < n), mask=i < n)


@triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((16, 1), (32, 2), (64, 4))], key=["n"])
@triton.heuristics({"EVEN": lambda a: a["n"] % a["BLOCK"] == 0})
@triton.jit
def tuned_kernel(y, x, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.autotune([triton.Config({"BLOCK": b}) for b in (16, 32, 64)], key=["n"])
@triton.jit
def assert_kernel(y, x, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK != 32)
    tl.store(y + tl.arange(0, BLOCK), 0.0)


@triton.jit
def pair_kernel(y, xs, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(xs[0] + i) + xs[1])


@triton.jit
def block_kernel(y, d, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :], d.load([0, 0]))


def scale(x, a, block=16):
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), block),)](y, x, x.numel(), a, BLOCK=block, num_warps=1)
    return y


class Scale(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x, a):
        assert x.is_cuda
        ctx.a = a
        return scale(x, a)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, g):
        assert g.is_cuda and g.device.type == "cuda"
        return scale(g.contiguous(), ctx.a), None


def trace(fn, dims=None, config=0, seed=0, **specs):
    return capture(make_case(fn.__name__, fn, specs), dims or {"M": 3, "N": 5}, config, seed)


def names(found):
    return [str(e.func.overloadpacket) if isinstance(e, TorchOp) else e.kernel for e in found.events]


# ---- launches


def test_a_launch_has_names_numbers_and_views():
    found = trace(lambda x, a: scale(x, a), {"N": 37, "a": 0.5}, x="f32[N]", a="f32")
    (launch,) = found.launches
    assert (launch.kernel, launch.grid, launch.config) == ("scale_kernel", (3, 1, 1), (0, 1))
    assert list(launch.args) == ["y", "x", "n", "a", "BLOCK"]
    assert (launch.args["n"], launch.args["a"], launch.args["BLOCK"]) == (37, 0.5, 16)
    assert launch.constexprs == {"BLOCK"} and launch.options["num_warps"] == 1
    assert launch.args["x"] == found.inputs["x"] and launch.args["x"].buffer.origin == "input:x"
    assert launch.args["y"] == found.outputs["out"] and launch.args["y"].buffer.origin == "aten.empty_like"
    assert launch.host.file == __file__ and launch.file == __file__


def test_integers_equal_to_one_stay_arguments():
    (launch,) = trace(lambda x: scale(x, 2.0), {"N": 1}, x="f32[N]").launches
    assert len(launch.operands) == len(launch.module().entry.args) == 4
    assert launch.operands[2] == 1 and launch.constexprs == {"BLOCK"}


def test_lowering_is_lazy_and_cached():
    a, b = (trace(lambda x: scale(x, 2.0), {"N": n}, x="f32[N]").launches[0] for n in (5, 37))
    assert a.module() is b.module()


def test_none_and_tuples():
    def host(x):
        y = torch.empty_like(x)
        pair_kernel[(1,)](y, (x, 3, None), BLOCK=8)
        return y

    (launch,) = trace(host, {}, x="f32[8]").launches
    assert [type(v).__name__ for v in launch.args["xs"]] == ["TensorRef", "int", "NoneType"]
    assert [type(v).__name__ for v in launch.operands] == ["TensorRef", "TensorRef", "int"]
    assert len(launch.operands) == len(launch.module().entry.args)


def test_host_descriptors():
    def host(x):
        y = torch.empty(16, 16, device=x.device)
        block_kernel[(1,)](y, TensorDescriptor.from_tensor(x, [16, 16]), BLOCK=16)
        return y

    (launch,) = trace(host, {"M": 20, "N": 24}, x="f32[M,N]").launches
    d = launch.args["d"]
    assert isinstance(d, Descriptor) and (d.shape, d.strides, d.block_shape) == ((20, 24), (24, 1), (16, 16))
    assert len(launch.operands) == len(launch.module().entry.args)


@pytest.mark.parametrize(("config", "taken", "block"), [(0, 0, 16), (2, 2, 64), (4, 1, 32)])
def test_every_autotune_config_is_a_launch_of_its_own(config, taken, block):
    def host(x):
        y = torch.empty_like(x)
        tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](y, x, x.numel())
        return y

    found = trace(host, {"N": 64}, config, x="f32[N]")
    (launch,) = found.launches
    assert (found.configs, launch.config) == (3, (taken, 3))
    assert (launch.args["BLOCK"], launch.args["EVEN"], launch.grid) == (block, True, (64 // block, 1, 1))
    assert {"EVEN", "BLOCK"} <= launch.constexprs and launch.options["num_warps"] == 2**taken


def test_pruned_configs_are_skipped():
    def fits(configs, args, **_):
        return [c for c in configs if c.kwargs["BLOCK"] <= args["n"]]

    configs = [triton.Config({"BLOCK": b}) for b in (64, 32, 16)]
    kernel = triton.autotune(configs, key=["n"], prune_configs_by={"early_config_prune": fits})(scale_kernel)

    def host(x):
        kernel[(1,)](x, x, x.numel(), 1.0)

    assert trace(host, {"N": 40}, x="f32[N]").launches[0].config == (1, 3)


def test_configs_that_fail_a_static_assert_are_skipped():
    def host(x):
        assert_kernel[(1,)](x, x, x.numel())

    assert [trace(host, {"N": 40}, k, x="f32[N]").launches[0].config for k in range(3)] == [(0, 3), (2, 3), (2, 3)]


def test_a_warmed_up_kernel_is_launched_later():
    def host(x):
        y = torch.empty_like(x)
        compiled = scale_kernel.warmup(y, x, x.numel(), 2.0, BLOCK=16, grid=(1,))
        assert compiled.n_regs > 0
        compiled[(4, 1, 1)](y, x, x.numel(), 2.0)
        return y

    (launch,) = trace(host, {"N": 40}, x="f32[N]").launches
    assert launch.grid == (4, 1, 1) and launch.args["BLOCK"] == 16


def test_a_compiled_kernel_is_kept_between_runs():
    kept = []

    def host(x):
        kept or kept.append(scale_kernel.warmup(x, x, x.numel(), 2.0, BLOCK=16, grid=(1,)))
        kept[0][(1,)](x, x, x.numel(), 2.0)

    assert [len(trace(host, {"N": n}, x="f32[N]").launches) for n in (5, 7)] == [1, 1]


# ---- torch


def test_torch_operations_between_launches_in_order():
    found = trace(lambda x: scale(x.t().contiguous(), 2.0).sum(0), x="f32[M,N]")
    assert names(found) == ["aten.t", "aten.clone", "aten.empty_like", "scale_kernel", "aten.sum"]
    view = found.events[0].outputs[0]
    assert view.buffer is found.inputs["x"].buffer and view.strides == (1, 5) and view.shape == (5, 3)


def test_backward_is_seen_as_its_operations():
    def host(x, g):
        x.requires_grad_()
        return torch.autograd.grad(Scale.apply(x, 3.0) * 2, x, g)[0]

    found = trace(host, x="f32[M,N]", g="f32[M,N]")
    assert [launch.args["a"] for launch in found.launches] == [3.0, 3.0]
    assert names(found) == [
        "aten.empty_like",
        "scale_kernel",
        "aten.mul",
        "aten.mul",
        "aten.empty_like",
        "scale_kernel",
    ]


def test_backward_into_grad():
    def host(x):
        x.requires_grad_()
        (Scale.apply(x, 2.0) ** 2).sum().backward()
        return x.grad

    found = trace(host, x="f32[M,N]")
    assert len(found.launches) == 2 and found.outputs["out"].shape == (3, 5)


def scale_op(x: torch.Tensor, a: float) -> torch.Tensor:
    return scale(x, a) * 2


def scale_wrapped(x: torch.Tensor, a: float) -> torch.Tensor:
    y = torch.empty_like(x)
    wrap_triton(scale_kernel)[(1,)](y, x, x.numel(), a, BLOCK=16)
    return y * 2


CUSTOM = {
    "custom_op": custom_op("lift_test::scale", scale_op, mutates_args=()),
    "custom_op on cuda": custom_op("lift_test::scale_cuda", scale_op, mutates_args=(), device_types="cuda"),
    "triton_op": triton_op("lift_test::scale_triton", scale_wrapped, mutates_args=()),
}


@pytest.mark.parametrize("kind", CUSTOM)
def test_custom_operators_are_what_they_do(kind):
    assert names(trace(lambda x: CUSTOM[kind](x, 3.0), x="f32[M]")) == ["aten.empty_like", "scale_kernel", "aten.mul"]


def test_a_wrapped_kernel_is_launched_as_itself():
    assert names(trace(lambda x: scale_wrapped(x, 3.0), x="f32[M]")) == ["aten.empty_like", "scale_kernel", "aten.mul"]
    made_before = wrap_triton(scale_kernel)

    def host(x):
        y = torch.empty_like(x)
        made_before[(1,)](y, x, x.numel(), 3.0, BLOCK=16)
        return y

    assert names(trace(host, x="f32[M]")) == ["aten.empty_like", "scale_kernel"]


def test_compiled_functions_run_as_they_are_written():
    @torch.compile
    def twice(x):
        return x * 2 + 1

    found = trace(lambda x: scale(twice(x) + torch.compile(lambda y: y - 1)(x), 1.0), x="f32[M]")
    assert names(found)[:4] == ["aten.mul", "aten.add", "aten.sub", "aten.add"]


def test_views_share_a_buffer_and_know_their_offset():
    def host(x):
        return scale(x[1:], 1.0)

    ref = trace(host, x="f32[M,N]").launches[0].args["x"]
    assert (ref.address - ref.buffer.address, ref.shape, ref.strides) == (20, (2, 5), (5, 1))
    assert ref.addresses()[1, 2] == ref.buffer.address + 4 * (5 + 5 + 2)


def test_outputs_are_named():
    x = torch.ones(2)
    scale_and = lambda extra: trace(lambda x: (scale(x, 1.0), *extra), x="f32[M]")  # noqa: E731
    assert list(scale_and(()).outputs) == ["out"]
    assert list(scale_and((None, 3, [x, x])).outputs) == ["out0", "out1", "out2"]
    named = trace(lambda x: {"y": scale(x, 1.0), "more": (x, x), "n": 3}, x="f32[M]")
    assert list(named.outputs) == ["y", "more0", "more1"]


def test_samples_are_the_inputs_before_the_run():
    found = trace(lambda x: (x.zero_(), scale(x, 1.0)), x="f32[M]", seed=5)
    assert found.samples["x"].any() and found.inputs["x"].buffer.tensor.sum() == 0


def test_uninitialised_memory_is_reproducible_and_known_as_such():
    def host(x):
        return scale(x, float(torch.empty(3).sum()))

    found = trace(host, x="f32[M]")
    assert found.launches[0].args["a"] == 0.0
    assert found.events[0].outputs[0].buffer.origin == "aten.empty"


# ---- the device


def test_the_pretended_device_answers_and_goes_away():
    available, stream = torch.cuda.is_available, torch.cuda.current_stream
    with pretend():
        assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
        assert torch.cuda.get_device_properties(0).multi_processor_count == MULTIPROCESSORS
        assert triton.runtime.driver.active.get_current_target().backend == "cuda"
        x = torch.zeros(3, device="cuda")
        assert x.device == torch.device("cuda:0") and x.is_cuda and x.cuda().get_device() == 0
        with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.Stream()):
            assert torch.ones(2, device=x.device).to("cuda:0").is_cuda
        assert torch.accelerator.current_accelerator().type == "cuda"
    assert torch.cuda.is_available is available and torch.cuda.current_stream is stream
    assert x.device.type == "cpu"


def test_launching_works_as_before_afterwards():
    run, item = type(scale_kernel).run, triton.KernelInterface.__getitem__
    trace(lambda x: scale(x, 1.0), x="f32[M]")
    assert type(scale_kernel).run is run and triton.KernelInterface.__getitem__ is item


# ---- host code that is refused


@pytest.mark.parametrize(
    "read",
    [lambda x: x.sum().item(), lambda x: bool(x[0] > 0), lambda x: x.tolist(), lambda x: x.nonzero(),
     lambda x: x[x > 0], lambda x: x.numpy(), lambda x: scale(x, 1.0).max().item()],
)  # fmt: skip
def test_reading_data_is_unsupported_and_says_where(read):
    def host(x):
        read(x)
        return scale(x, 1.0)

    with pytest.raises(Unsupported, match="host code reads tensor data") as caught:
        trace(host, x="f32[M]")
    assert caught.value.place.file == __file__


def test_reading_what_no_input_changes_is_fine():
    def host(x, i):
        n = torch.tensor([2.0, 3.0]).sum().item()
        kept = (i != -100).sum().item()
        assert (i * (i != -100)).max() < 7
        return scale(x, n + kept)

    @case(x="f32[M]", i="i64[M] < V")
    def bounded(x, i):
        return host(x, i)

    assert capture(bounded, {"M": 3, "V": 7}).launches[0].args["a"] == 8.0
    with pytest.raises(Unsupported, match="reads tensor data"):
        trace(host, x="f32[M]", i="i64[M]")


def test_no_launch():
    c = make_case("c", lambda x: x + 1, {"x": "f32[M]"})
    with pytest.raises(CaseError, match="launches no kernel"):
        launching(c, 2)
    assert names(capture(c, {"M": 3})) == ["aten.add"]
    cube = make_case("cube", lambda x: x + 1, {"x": "f32[M,N,K]"})
    with pytest.raises(NoLaunch):  # and not for want of 64 GiB for 2048 * 2048 * 2048 elements
        launching(cube, 2)


def test_a_kernel_of_tritons_interpreter_names_the_variable():
    def kernel(x):
        pass

    node = SimpleNamespace(fn=kernel)  # as triton.jit makes it where the variable is set
    with pytest.raises(CaseError, match=r"kernel was declared with TRITON_INTERPRET set.*help: unset TRITON_INTERPRET"):
        launches.Interception(lambda bound: None, 0).walk(node, (), {}, set())


def test_launches_are_looked_for_at_larger_sizes():
    def host(x, y):
        return x + 1 if x.shape[0] < 600 else scale(x, 1.0)

    c = make_case("c", host, {"x": "f32[M]", "y": "f32[N]"}, "N <= 4")
    assert [t.dims["M"] >= 600 and t.dims["N"] <= 4 for t in launching(c, 2)] == [True, True]


def test_a_wrapper_that_raises_is_the_cases_fault():
    def host(x):
        if x.shape[1] % 3:
            raise ValueError("3 must divide N\nmore")
        return scale(x, 1.0)

    with pytest.raises(CaseError) as caught:
        trace(host, x="f32[M,N]")
    assert str(caught.value).startswith("wrapper raised at M=3, N=5")
    assert caught.value.why == "ValueError: 3 must divide N" and "with where=" in caught.value.help
    assert caught.value.place.file == __file__


def test_a_wrapper_that_raises_at_every_shape_gets_no_advice_on_shapes():
    def host(x):
        raise ValueError("not today")

    with pytest.raises(CaseError) as caught:
        trace(host, x="f32[M,N]")
    assert caught.value.why == "ValueError: not today" and not caught.value.help


def test_a_where_that_works_is_suggested():
    def host(x, y):
        assert x.shape[1] % 16 == 0, "N must be a multiple of 16"
        return scale(x, 1.0)

    with pytest.raises(CaseError) as caught:
        trace(host, x="f32[M,N]", y="f32[K]", dims={"M": 3, "N": 5, "K": 7})
    assert caught.value.help == 'it runs with where="N % 16 == 0"'


def test_a_host_function_that_exits():
    with pytest.raises(CaseError, match="wrapper raised at M=3") as caught:
        trace(lambda x: exit(3), x="f32[M]")
    assert "SystemExit" in caught.value.why


def test_a_trace_keeps_its_tensors_alive():
    found = trace(lambda x: scale(scale(x, 1.0), 2.0), x="f32[M]")
    refs = [v for launch in found.launches for v in launch.args.values() if isinstance(v, TensorRef)]
    assert len({r.buffer.address for r in refs}) == 3
    assert all(r.buffer.tensor.untyped_storage().data_ptr() == r.buffer.address for r in refs)


def test_zero_size_dims():
    (launch,) = trace(lambda x: scale(x, 1.0), {"M": 0}, x="f32[M]").launches
    assert launch.grid == (0, 1, 1) and launch.args["x"].shape == (0,)


def test_a_folder_called_triton_is_host_code() -> None:
    """attn-gym keeps its wrappers in such folders; Triton's own files are told by where it is installed."""
    assert is_host("/home/someone/kernels/triton/gate.py")
    assert not is_host(triton.__file__) and not is_host(triton.language.__file__) and not is_host(torch.__file__)


def test_views_of_a_large_new_tensor_are_not_copied():
    """A tensor of T x T elements that only kernels write takes no memory, nor do its views; one that is filled does."""

    def run(x):
        n = x.shape[0]
        scores = torch.empty(n, n)
        scale_kernel[(1,)](scores.view(-1), x, n, 2.0, BLOCK=16)
        filled = torch.empty(n, n).fill_(3.0)
        return scores.view(-1)[:n], filled.view(-1)[:n], scores.fill_(5.0).view(-1)[:n]

    found = trace(run, {"N": 1100}, x="f32[N]")
    views = [e.values[0] for e in found.events if isinstance(e, TorchOp) and e.func.is_view and e.values[0].dim() == 1]
    untouched = [v for v in views if v.stride() == (0,)]
    assert len(untouched) == 3 and all(v[0] == 0 for v in untouched)  # the argument, and the view and part returned
    assert [float(v[0]) for v in views if v.stride() == (1,)] == [3.0, 3.0, 5.0, 5.0]
