"""Experiments that compare the audit with other tools on the same kernels."""
