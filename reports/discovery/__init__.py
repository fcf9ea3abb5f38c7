"""Kernels that no case launches, found in files and packages.

In: a file, a folder or a package. Out: kernels with guessed signatures, and what can be said of them.
"""
