"""Parametric execution of a kernel: every program, lane and iteration at once.

In: a module, with symbols for its operands. Out: a `verify.model.program.Program`, whose cost does not depend on sizes.
"""
