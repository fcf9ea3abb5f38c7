"""Acceptance of an emitted kernel: compiled, lifted again, proved, run.

In: an emitted file and its program. Out: a verdict; a kernel that fails is never shown as a result.
"""
