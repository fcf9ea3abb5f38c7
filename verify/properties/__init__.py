"""The basis of written tests: laws, sizes, tolerances, calls that are refused.

In: the formulas of a case, and its proof. Out: a suite, which `reports.testgen` writes as tests.
"""
