"""The measurements behind the result pages: corpora, ablations, comparisons with other tools.

In: a corpus. Out: a table of what was measured, as text and JSON.
"""
