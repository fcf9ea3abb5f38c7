"""The writer of property tests.

In: the suite of a case (`verify.properties`). Out: the source of a pytest file, which runs without a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .case_section import check_names as check_names
    from .facts import Facts as Facts
    from .file import Printed as Printed
    from .file import complete as complete
    from .file import printed as printed
    from .file import skipped as skipped

__all__, __getattr__ = face(
    __name__,
    {
        "case_section": "check_names",
        "facts": "Facts",
        "file": "Printed complete printed skipped",
    },
)
