"""Identity tests of whole kernels in random finite fields (Mirage, section 5).

In: the IR of a kernel, and a formula or another kernel. Out: whether they agree, and how likely a difference is missed.
"""
