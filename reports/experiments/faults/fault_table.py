"""All faults, with how often each is made in a report of less than eight minutes, and in a test."""

from __future__ import annotations

from .case_faults import CASES
from .cluster_faults import CLUSTER
from .fault import Fault
from .file_faults import FILES
from .signal_faults import SIGNALS
from .text_faults import TEXTS

Times = tuple[tuple[Fault, int], ...]
TIMES = (*((f, 2) for f in CASES), *((f, 400) for f in TEXTS), *((f, 2) for f in FILES), *((f, 2) for f in SIGNALS),
         *((f, 1) for f in CLUSTER))  # fmt: skip
