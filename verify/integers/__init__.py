"""The integer side of proofs: which conditions on sizes and indices hold.

In: conditions and facts, as terms over integers. Out: implied, contradicted or unknown. `solver` is the only file that
imports z3.
"""
