"""Imported last by a fork server: what the first reading of a function imports and sets up is there for every child.

Collected garbage would have children copy the pages that they share, so what is there now is never collected. This pins
no term: a child that drops what it knows (`lift.runtime.session.drop`) frees these too, by their reference counts.
"""

from __future__ import annotations

import atexit
import contextlib
import gc

from ..runtime.session import collect_rarely
from ..terms import term as T
from .read import read

with contextlib.suppress(Exception):  # a child finds out what is wrong, and says so
    read(lambda x: x.exp().sum(-1), {"x": ("f32", (T.size("M"), T.size("N")))})
gc.collect()
gc.freeze()
collect_rarely()
atexit.register(gc.unfreeze)
