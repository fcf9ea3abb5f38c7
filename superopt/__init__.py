"""Faster kernels that are proved to be the same: µGraphs, their search, tile programs and code generation. Nothing is here yet."""
