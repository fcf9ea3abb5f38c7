"""Which findings count: rules asked for, comments in the source, a baseline of known ones.

In: the findings of an audit. Out: those that are shown, and those that a comment or baseline accepts.
"""
