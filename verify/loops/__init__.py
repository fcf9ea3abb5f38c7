"""Closed forms of loop variables, as functions of the iteration number.

In: one symbolic iteration of a loop. Out: an invariant, guessed and then proved by induction.
"""
