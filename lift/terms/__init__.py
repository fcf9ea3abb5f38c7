"""Terms, the one language of the project, and the table of elementwise operations."""

from . import ops  # terms are made by the rows of the table, wherever there are any

__all__ = ["ops"]
