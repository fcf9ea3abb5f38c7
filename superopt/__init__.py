"""Faster kernels that are proved the same: µGraphs, their search, code generation, acceptance."""
