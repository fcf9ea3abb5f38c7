"""Triton source of a µGraph: kernels, the host function, its contract.

In: a µGraph with its arrangement. Out: the text of one Python file.
"""
