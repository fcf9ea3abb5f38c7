"""Host functions that work on several CUDA streams. Those called `wrong_` leave an order open."""

import torch
import triton
import triton.language as tl

from trilift import case


@triton.jit
def scale_kernel(x, o, N, c, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < N, other=0.0) * c, mask=i < N)


def scaled(x, o, c):
    scale_kernel[(triton.cdiv(x.numel(), 128),)](x, o, x.numel(), c, BLOCK=128)
    return o


@case(x="f32[N]")
def wrong_no_wait(x):
    t, side = torch.empty_like(x), torch.cuda.Stream()
    with torch.cuda.stream(side):
        scaled(x, t, 2.0)
    return scaled(t, torch.empty_like(x), 3.0)


@case(x="f32[N]")
def wrong_start(x):
    """The side stream does not wait for what the current one has begun."""
    t, side = scaled(x, torch.empty_like(x), 2.0), torch.cuda.Stream()
    with torch.cuda.stream(side):
        o = scaled(t, torch.empty_like(x), 3.0)
    torch.cuda.current_stream().wait_stream(side)
    return o


@case(x="f32[N]")
def wrong_end(x):
    """The caller's stream does not wait."""
    t, side = scaled(x, torch.empty_like(x), 2.0), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        return scaled(t, torch.empty_like(x), 3.0)


@case(x="f32[N]")
def wrong_torch_operation(x):
    t, side = torch.empty_like(x), torch.cuda.Stream()
    with torch.cuda.stream(side):
        scaled(x, t, 2.0)
    return t * 3.0


@case(x="f32[N]")
def wrong_event_too_early(x):
    t, side, done = torch.empty_like(x), torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        done.record()
        scaled(x, t, 2.0)
    done.wait()
    return scaled(t, torch.empty_like(x), 3.0)


@case(x="f32[N]")
def wrong_event_waited_elsewhere(x):
    t, side, third, done = torch.empty_like(x), torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        scaled(x, t, 2.0)
        done.record()
    third.wait_event(done)
    return scaled(t, torch.empty_like(x), 3.0)


@case(x="f32[N]")
def wrong_set_stream(x):
    """The stream stays another one: the caller's has not waited for it."""
    before, side = torch.cuda.current_stream(), torch.cuda.Stream()
    torch.cuda.set_stream(side)
    t = scaled(x, torch.empty_like(x), 6.0)
    torch.cuda.set_stream(before)
    return t


@case(x="f32[N]")
def wrong_two_sides(x):
    a, b = torch.cuda.Stream(), torch.cuda.Stream()
    t, o = torch.empty_like(x), torch.empty_like(x)
    with torch.cuda.stream(a):
        scaled(x, t, 2.0)
    with torch.cuda.stream(b):
        scaled(t, o, 3.0)
    for s in (a, b):
        torch.cuda.current_stream().wait_stream(s)
    return o


@case(x="f32[N]")
def unfinished_to_cpu(x):
    """The host reads what the copy has not written yet."""
    return scaled(x, torch.empty_like(x), 3.0).to("cpu", non_blocking=True) * 2.0


@case(x="f32[N]")
def unfinished_result(x):
    return scaled(x, torch.empty_like(x), 6.0).to("cpu", non_blocking=True)


@case(x="f32[N]")
def unfinished_into_pinned(x):
    h = torch.empty(x.shape, dtype=x.dtype, device="cpu", pin_memory=True)
    h.copy_(scaled(x, torch.empty_like(x), 3.0), True)
    return h * 2.0


@case(x="f32[N]")
def unfinished_by_name(x):
    h = torch.empty(x.shape, pin_memory=True)
    h.copy_(other=scaled(x, torch.empty_like(x), 3.0), non_blocking=True)
    return h * 2.0


@case(x="f32[N]")
def unfinished_source(x):
    """The host changes what the copy has not read yet."""
    h = torch.full(x.shape, 2.0, device="cpu").pin_memory()
    d = h.to(x.device, non_blocking=True)
    h.zero_()
    return scaled(x, torch.empty_like(x), 3.0) * d


@case(x="f32[N]")
def unfinished_of_a_list(x):
    h = torch.empty(x.shape, pin_memory=True)
    torch._foreach_copy_([h], [scaled(x, torch.empty_like(x), 3.0)], non_blocking=True)
    return h * 2.0


@case(x="f32[N]")
def unfinished_beside_another(x):
    """x.to(other) copies to where the other lies."""
    h = torch.ones((1,), dtype=x.dtype, device="cpu")
    return scaled(x, torch.empty_like(x), 3.0).to(h, non_blocking=True) * 2.0


@case(x="f32[N]")
def unfinished_source_as_output(x):
    h = torch.full(x.shape, 2.0, device="cpu").pin_memory()
    d = h.to(x.device, non_blocking=True)
    torch.mul(h, 0.0, out=h)
    return scaled(x, torch.empty_like(x), 3.0) * d


@case(x="f32[N]")
def at_one_size_unfinished(x):
    c = scaled(x, torch.empty_like(x), 3.0).to("cpu", non_blocking=x.numel() == 70001)
    return c * 2.0


@case(x="f32[N]")
def right_copy_synchronized(x):
    c = scaled(x, torch.empty_like(x), 3.0).to("cpu", non_blocking=True)
    torch.cuda.current_stream().synchronize()
    return c * 2.0


@case(x="f32[N]")
def right_copy_before_another(x):
    """A copy to the CPU waits for all that the stream has to do."""
    t = scaled(x, torch.empty_like(x), 3.0)
    c = t.to("cpu", non_blocking=True)
    t.cpu()
    return c * 2.0


@case(x="f32[N]")
def right_copy_of_the_host(x):
    """A copy that only reads memory of the host, which stays as it is."""
    d = torch.full(x.shape, 2.0, device="cpu").pin_memory().to(x.device, non_blocking=True)
    return scaled(x, torch.empty_like(x), 3.0) * d


@case(x="f32[N]")
def right_copy_on_the_gpu(x):
    d = torch.empty_like(x)
    d.copy_(scaled(x, torch.empty_like(x), 3.0), non_blocking=True)
    return scaled(d, torch.empty_like(x), 2.0)


@case(x="f32[N]")
def right_copy_then_changed(x):
    """The copy is other memory than what it copies."""
    h = torch.full(x.shape, 2.0, device="cpu")
    d = h.cuda()
    h.zero_()
    return scaled(x, torch.empty_like(x), 3.0) * d


@case(x="f32[N]")
def right_waits(x):
    t, side = torch.empty_like(x), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        scaled(x, t, 2.0)
    torch.cuda.current_stream().wait_stream(side)
    return scaled(t, torch.empty_like(x), 3.0)


@case(x="f32[N]")
def right_events(x):
    t, side, done = torch.empty_like(x), torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        scaled(x, t, 2.0)
        done.record()
    torch.cuda.current_stream().wait_event(done)
    return scaled(t, torch.empty_like(x), 3.0)


@case(x="f32[N]")
def right_synchronize(x):
    t, side = torch.empty_like(x), torch.cuda.Stream()
    with torch.cuda.stream(side):
        scaled(x, t, 2.0)
    torch.cuda.synchronize()
    return scaled(t, torch.empty_like(x), 3.0)


@case(x="f32[N]")
def right_stream_synchronize(x):
    t, side = torch.empty_like(x), torch.cuda.Stream()
    with torch.cuda.stream(side):
        scaled(x, t, 2.0)
    side.synchronize()
    return scaled(t, torch.empty_like(x), 3.0)


@case(x="f32[N]")
def right_current_stream(x):
    """Whatever the current stream is, all is done on it."""
    with torch.cuda.stream(torch.cuda.current_stream()):
        t = scaled(x, torch.empty_like(x), 2.0)
    return scaled(t, torch.empty_like(x), 3.0)


for _case in [c for c in vars().copy().values() if getattr(c, "reference", None) is not None]:
    _case.reference(lambda x: x * 6.0)
