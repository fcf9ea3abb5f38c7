"""Handlers, which execute the operations of Triton IR, by kind of operation.

In: an operation and its operands, in the domain of the run. Out: its results. A handler is registered by `handles`,
with the names of its operations; a row of `lift.terms.ops` needs none.
"""
