"""Files of the user's: what may be opened."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def unreadable(path: Path) -> str:
    """Why a file cannot be read, told before anything waits for it; "" where it can."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "it is a link that leads to itself"
        return "it is a link to nothing" if path.is_symlink() else f"{error.strerror}"
    if not stat.S_ISREG(mode):
        return "it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file"
    return "" if os.access(path, os.R_OK) else "this user may not read it"
