"""The foundation of reports: the configuration, targets, fingerprints, progress, the version.

Nothing of lift, verify or superopt is imported here at start-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .configuration import Configuration as Configuration
    from .configuration import Configured as Configured
    from .fingerprint import ROOT as ROOT
    from .fingerprint import loaded as loaded
    from .fingerprint import of_text as of_text
    from .progress import Progress as Progress
    from .targets import Named as Named
    from .targets import Target as Target
    from .targets import resolve as resolve
    from .version import VERSION as VERSION

__all__, __getattr__ = face(
    __name__,
    {
        "configuration": "Configuration Configured",
        "fingerprint": "ROOT loaded of_text",
        "progress": "Progress",
        "targets": "Named Target resolve",
        "version": "VERSION",
    },
)
