"""Runs of a kernel on numbers: what it is compared with, at which inputs, and what was watched.

In: a case. Out: goals of a proof, and observations of executions. They show mistakes, and prove nothing.
"""
