"""Tile programs (Trinity): loops over tiles as terms, rewritten by equality saturation.

In: a program. Out: plans as µGraphs. A rule is a row of `rules`, tried on random programs before it is trusted.
"""
