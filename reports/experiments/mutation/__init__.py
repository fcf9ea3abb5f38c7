"""Experiments on mutants: which wrong kernels written tests, usual tests and the prover tell from the right ones."""
