"""Memory under launches: who writes an element, what a buffer holds, and the conditions of safe access.

In: the accesses of a program. Out: the contents of buffers, and the conditions of every access.
"""
