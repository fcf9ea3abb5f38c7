"""What launches do to memory: who writes an element, what a buffer holds, and what must hold for that to be safe.

In: the accesses of a program. Out: the contents of buffers, and the conditions of every access.
"""
