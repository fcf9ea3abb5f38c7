"""Texts that are almost right: bytes changed, left out, repeated, cut off; many brackets; numbers out of range."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

SIGNS = b'0123456789-+.xf<>(){}[]%@#,:"=*/ \\\n'
NUMBERS = (b"0", b"-1", b"3", b"1e309", b"99999999999999999999", b"2 ** 64", b"1 << 9999")
DEEP = (10, 3000)


def mutated(texts: Sequence[bytes], seed: int) -> bytes:
    """One of the texts with up to five changes."""
    rng = random.Random(seed)
    found = bytearray(rng.choice(texts))
    for _ in range(rng.choice((1, 1, 2, 5))):
        _change(found, rng)
    return bytes(found)


def _change(b: bytearray, rng: random.Random) -> None:
    i = rng.randrange(len(b) + 1)
    j = min(len(b), i + rng.randrange(1, 40))
    match rng.randrange(7):
        case 0:
            b[i : i + 1] = bytes([rng.randrange(256)])
        case 1:
            del b[i:j]
        case 2:
            b[i:i] = b[j : j + rng.randrange(1, 60)]
        case 3:
            b[i:j] = bytes(rng.choice(SIGNS) for _ in range(j - i))
        case 4:
            del b[i:]
        case 5:
            b[i:i] = rng.choice((b"(", b"[", b"-", b"not ")) * rng.choice(DEEP)
        case _:
            numbers = list(re.finditer(rb"\d+", b))
            if numbers:
                m = rng.choice(numbers)
                b[m.start() : m.end()] = rng.choice(NUMBERS)
