"""Records: what was found out about a case, as plain data.

In: what lift, verify and audit return. Out: the entries of the JSON's "cases", and their text.
"""
