"""Running cases: in processes here or on workers, with results of before kept.

In: targets and options. Out: the record of every case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trilift.lazy import face

if TYPE_CHECKING:
    from .answers import Answers as Answers
    from .cache import Cache as Cache
    from .cache import Entry as Entry
    from .local import GRACE_SECONDS as GRACE_SECONDS
    from .local import PROVER as PROVER
    from .store import Store as Store
    from .workers import Workers as Workers

__all__, __getattr__ = face(
    __name__,
    {
        "answers": "Answers",
        "cache": "Cache Entry",
        "local": "GRACE_SECONDS PROVER",
        "store": "Store",
        "workers": "Workers",
    },
)
