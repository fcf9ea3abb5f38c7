"""The terms of a proof in the user's names.

In: programs, conditions, buffers. Out: texts, as messages and contracts show them.
"""
