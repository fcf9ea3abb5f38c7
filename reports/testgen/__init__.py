"""The writer of property tests.

In: the suite of a case (`verify.properties`). Out: the source of a pytest file, which runs without a GPU.
"""
