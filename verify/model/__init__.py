"""The records that the stages of a proof hand to one another.

No logic but one rule: `verdict` is the only file that constructs PROVED.
"""
