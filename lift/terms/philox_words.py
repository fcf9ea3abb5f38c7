"""The Philox generator on numpy arrays: 32-bit words from keys and counters, and numbers in [0, 1) from words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

ROUND_A, ROUND_B = 0xD2511F53, 0xCD9E8D57
KEY_A, KEY_B = 0x9E3779B9, 0xBB67AE85
SCALE = float(np.float32(4.6566127342e-10))  # the f32 below 2^-31


def philox(keys_and_counters: Sequence[Any], rounds: int = 10) -> tuple[np.ndarray, ...]:
    """Four words, int32, of 32-bit keys k0, k1 and counters c0..c3 with broadcasting (Salmon et al. 2011, table 2)."""
    k0, k1, c0, c1, c2, c3 = (
        np.asarray(x).astype(np.int64).astype(np.uint32).astype(np.uint64) for x in keys_and_counters
    )
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(rounds):
        a, b = np.uint64(ROUND_A) * c0, np.uint64(ROUND_B) * c2
        c0, c1, c2, c3 = (b >> half) ^ c1 ^ k0, b & mask, (a >> half) ^ c3 ^ k1, a & mask
        k0, k1 = (k0 + np.uint64(KEY_A)) & mask, (k1 + np.uint64(KEY_B)) & mask
    return tuple(np.asarray(c).astype(np.uint32).view(np.int32) for c in np.broadcast_arrays(c0, c1, c2, c3))


def uniform(words: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1): -w - 1 of a negative word w, else w, times SCALE."""
    words = np.asarray(words).astype(np.int64)
    return np.where(words < 0, -words - 1, words) * SCALE


def random_bits(
    seed: Any, c0: Any, c1: Any = 0, c2: Any = 0, c3: Any = 0, word: Any = 0, rounds: Any = 10
) -> np.ndarray:
    """One word of the generator for a 64-bit seed."""
    seed = np.asarray(seed).astype(np.int64)
    words = philox([seed & 0xFFFFFFFF, seed >> 32, c0, c1, c2, c3], int(np.asarray(rounds).flat[0]))
    return np.choose(np.asarray(word).astype(np.int64), words)


def random(*args: Any) -> np.ndarray:
    """A number in [0, 1) of a seed and an offset."""
    return uniform(random_bits(*args))
