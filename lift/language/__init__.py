"""The language of formulas: known names and what they mean, reading and evaluating a text."""

from . import unfolding  # known names can be unfolded wherever there are any

__all__ = ["unfolding"]
