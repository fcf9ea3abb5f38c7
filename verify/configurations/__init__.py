"""From a case to its configurations: the launches of its host function, with symbols for its numbers.

In: a case, and traces at several shapes. Out: a symbolic configuration for each path of the host function.
"""
