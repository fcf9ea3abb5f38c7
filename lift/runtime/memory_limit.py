"""The memory of a process: how much there is for it, and a bound on what it takes.

Source: setrlimit(2); Linux's "Control Group v2", memory.max.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

GROUP = Path("/sys/fs/cgroup/memory.max")  # bytes that the processes of this container may take, or "max"


def machine_bytes() -> int:
    """Bytes of memory of this machine, or of its container if that may take less."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):
        return min(physical, int(GROUP.read_text()))
    return physical


def limit(size_bytes: int) -> None:
    """From now on this process and each that it starts has at most so many bytes of its own: what asks for more raises
    MemoryError, or aborts where no Python asks. No process can have more than it was allowed before."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = size_bytes if hard == resource.RLIM_INFINITY else min(size_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
