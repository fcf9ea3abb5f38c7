"""What executes the operations of Triton IR, by kind of operation.

In: an operation and its operands, in the domain of the run. Out: its results. A handler is registered by `handles`,
with the names of its operations; what is simply a row of `lift.terms.ops` needs none.
"""
