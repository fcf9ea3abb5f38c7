"""Findings: what is wrong with a kernel, each with the smallest input on which it can be seen.

In: the proof of a case, and runs of its kernel that were watched. Out: an audit, the findings of all rules. A rule is a
module of `verify.audit.rules`, with its page.
"""
