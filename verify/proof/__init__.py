"""The proof of one configuration: every access in bounds, every output element what its formula says.

In: a symbolic configuration, and a formula for each output. Out: what was proved, under which conditions, or the first
condition that was not.
"""
