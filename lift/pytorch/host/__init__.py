"""Host functions read: run once on tensors without contents whose sizes, and on scalars that, remember where they come
from.

In: a case, and numbers for its dims. Out: a `HostRun`: the launches and torch operations as a trace whose numbers carry
terms, every decision that Python made on such a number, and what could not be followed.
"""
