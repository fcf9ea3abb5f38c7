"""Faster kernels that are proved the same: µGraphs, their search, tile programs, code generation. Nothing here yet."""
