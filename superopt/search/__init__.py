"""The search for µGraphs that compute a program.

In: a program and limits. Out: µGraphs, the cheapest first, each tested to be the program.
"""
