"""Host code that asks which object a truth is: `(n == 4) is True`. Python has one True, and a stand-in is another."""

from __future__ import annotations

import dis
from types import CodeType

from ...runtime.session import table

_ASKS: dict[CodeType, bool] = table("host.identity", {})
OPERANDS = 2  # of the operator `is`: the instructions before it that may load True or False


def asks_for_identity(code: CodeType) -> bool:
    """Whether a function compares something with True or False by `is`; some that do not are taken for such."""
    if code not in _ASKS:
        _ASKS[code] = _asks(code)
    return _ASKS[code]


def _asks(code: CodeType) -> bool:
    if not any(isinstance(c, bool) for c in code.co_consts):
        return False
    steps = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
    tests = (k for k, i in enumerate(steps) if i.opname == "IS_OP")
    return any(isinstance(i.argval, bool) for k in tests for i in steps[max(k - OPERANDS, 0) : k])


__all__ = ["asks_for_identity"]
