"""Tensor programs over named axes: what the search starts from.

In: formulas, lifted from kernels or read from PyTorch. Out: a program, its abstract expressions, its values at a shape.
"""
