"""How a µGraph is laid out on the machine: layouts, order of operators, shared memory (Mirage, section 6).

In: a µGraph. Out: an arrangement, from which code is emitted.
"""
