"""All faults, with how often each is made in a report of less than eight minutes, and in a test."""

from __future__ import annotations

from .case_faults import CASES
from .cluster_faults import CLUSTER
from .fault import Fault
from .file_faults import FILES
from .signal_faults import SIGNALS
from .text_faults import TEXTS

Times = tuple[tuple[Fault, int], ...]
GROUPS = ((1, CLUSTER), (1, FILES), (2, SIGNALS), (2, CASES), (200, TEXTS))  # how often, which
TIMES: Times = tuple((fault, count) for count, faults in GROUPS for fault in faults)
