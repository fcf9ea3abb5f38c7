"""Experiments on the superoptimizer: the programs of the papers, searches, emitted kernels, their times."""
