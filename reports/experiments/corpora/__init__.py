"""Experiments on corpora of cases: what is lifted, proved and found, as their tables show it."""
