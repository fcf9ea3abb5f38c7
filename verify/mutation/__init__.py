"""Mutants: kernels with one mistake, and what tests and provers say of them.

In: the IR of a kernel. Out: modules with one change each, and whether running them tells them from the original.
"""
