"""The rules of the normal form, one module for each kind of term: sums, products, maxima, indicators.

In: a polynomial with folds as atoms, and facts. Out: an equal one in which less is to be compared.
"""
