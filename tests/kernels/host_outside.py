"""Host functions that ask modules which are in no table of questions: the answer may be another one elsewhere.

Each wrong one differs from its reference for another answer; its clause names the call. Right ones compute, or lock.
"""

from __future__ import annotations

import gc
import hashlib
import locale
import signal
import sys
import sysconfig
import threading

import torch

from trilift import case

from .host_functions import double, scale

LOCK = threading.RLock()


@case(x="f32[N]")
def by_thread(x):
    return scale(x, 2.0 if threading.current_thread().name == "MainThread" else 3.0)


@case(x="f32[N]")
def by_number_of_threads(x):
    return scale(x, 3.0 if threading.active_count() > 99 else 2.0)


@case(x="f32[N]")
def by_debugger(x):
    return scale(x, 2.0 if sys.gettrace() is None else 3.0)


@case(x="f32[N]")
def by_collector(x):
    return scale(x, 2.0 if gc.isenabled() else 3.0)


@case(x="f32[N]")
def by_language(x):
    return scale(x, 3.0 if locale.localeconv()["decimal_point"] == "," else 2.0)


@case(x="f32[N]")
def by_installation(x):
    return scale(x, 3.0 if sysconfig.get_config_var("Py_TRACE_REFS") else 2.0)


@case(x="f32[N]")
def by_handler(x):
    return scale(x, 3.0 if signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL else 2.0)


def factor():
    return 3.0 if gc.get_threshold()[0] == 7 else 2.0


@case(x="f32[N]")
def by_a_helper(x):
    return scale(x, factor())


@case(x="f32[N]")
def by_number_of_tasks(x):
    return scale(x, 3.0 if torch.get_num_interop_threads() == 77 else 2.0)


WRONG = {
    "by_thread": "threading.current_thread()",
    "by_number_of_threads": "threading.active_count()",
    "by_debugger": "sys.gettrace()",
    "by_collector": "gc.isenabled()",
    "by_language": "locale.localeconv()",
    "by_installation": "sysconfig.get_config_var()",
    "by_handler": "signal.getsignal()",
    "by_a_helper": "gc.get_threshold()",
    "by_number_of_tasks": "get_num_interop_threads()",
}


@case(x="f32[N]")
def locked(x):
    with LOCK:
        return scale(x, 2.0)


@case(x="f32[N]")
def named_by_a_digest(x):
    return scale(x, 2.0 if hashlib.sha256(b"two").hexdigest() else 3.0)


@case(x="f32[N]")
def rounded(x):
    return scale(x, float(round(2.25)))


RIGHT = ("locked", "named_by_a_digest", "rounded")

for _name in (*WRONG, *RIGHT):
    globals()[_name].reference(double)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(scale(x, 2.0))
        return torch.zeros((), device=x.device)

    @staticmethod
    def backward(ctx, g):
        (saved,) = ctx.saved_tensors
        return saved if torch.equal(g, torch.tensor(1.0, device=g.device)) else g * saved


@case(x="f32[N]")
def with_constants_that_go(x):
    """Numbers as tensors, each freed at once: the next tensor may lie where one lay."""
    x = x.detach().requires_grad_()
    for _ in range(10):
        (g,) = torch.autograd.grad(Doubled.apply(x), x, torch.tensor(3.0))
    return g


with_constants_that_go.reference(lambda x: 6 * x)
