"""Counterexamples, and the precondition under which there are none.

In: a case whose proof did not go through. Out: an input on which the kernel is wrong, with a script that shows it, or a
contract.
"""
