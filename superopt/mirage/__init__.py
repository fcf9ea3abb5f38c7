"""µGraphs as Mirage saves them, read, executed and judged.

In: its JSON. Out: what a saved µGraph computes, and whether that is its program.
"""
