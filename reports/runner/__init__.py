"""Running cases: in processes here or on workers, with results of before kept.

In: targets and options. Out: the record of every case.
"""
