"""Arithmetic of residues on numpy: int64 arrays of numbers 0 <= a < m, for m below 2^50.

a * b mod m = a*b - floor(a*b/m) * m     the quotient in floating point, off by one at most; the rest modulo 2^64
"""

from __future__ import annotations

from typing import Any

import numpy as np

LIMB = 17  # bits: products of limbs sum up exactly in float64, 2^19 of them
CHUNK = 1 << 12  # numbers below 2^50 whose sum fits 63 bits


def multiply(a: Any, b: Any, m: int) -> Any:
    a, b = np.asarray(a, np.int64), np.asarray(b, np.int64)
    quotient = (a.astype(np.float64) * b.astype(np.float64) * (1.0 / m)).astype(np.int64)
    with np.errstate(over="ignore"):
        rest = a * b - quotient * np.int64(m)
    rest = np.where(rest < 0, rest + m, rest)
    return np.where(rest >= m, rest - m, rest)


def power(a: Any, n: int, m: int) -> Any:
    """a^n mod m for one exponent n >= 0."""
    out, square = np.ones_like(a), np.asarray(a, np.int64)
    while n:
        if n & 1:
            out = multiply(out, square, m)
        n >>= 1
        if n:
            square = multiply(square, square, m)
    return out


def inverse(a: Any, m: int) -> Any:
    """1 / a modulo a prime; 0 for 0."""
    return power(a, m - 2, m)


def powers(base: int, count: int, m: int) -> np.ndarray:
    """base^0, base^1, ... base^(count - 1)."""
    out = np.ones(1, np.int64)
    while len(out) < count:
        step = pow(base, len(out), m)
        out = np.concatenate([out, multiply(out, np.int64(step), m)])
    return out[:count]


def total(a: np.ndarray, axis: int, m: int) -> Any:
    """The sum along an axis."""
    rows = np.moveaxis(np.asarray(a, np.int64), axis, 0)
    out = np.zeros(rows.shape[1:], np.int64)
    for start in range(0, len(rows), CHUNK):
        out = (out + rows[start : start + CHUNK].sum(0)) % m
    return out


def matmul(a: np.ndarray, b: np.ndarray, m: int) -> np.ndarray:
    """a @ b, by float64 products of limbs, which are exact."""
    mask, out = (1 << LIMB) - 1, np.zeros((), np.int64)
    count = -(-m.bit_length() // LIMB)
    left, right = ([((x >> LIMB * k) & mask).astype(np.float64) for k in range(count)] for x in (a, b))
    for j in range(2 * count - 1):
        parts = sum(np.matmul(left[k], right[j - k]) for k in range(count) if 0 <= j - k < count)
        part = np.asarray(parts).astype(np.int64) % m
        out = (out + multiply(part, np.int64(pow(2, LIMB * j, m)), m)) % m
    return np.asarray(out)


def mix(x: np.ndarray, key: int) -> np.ndarray:
    """Keyed hashes of 64-bit numbers (splitmix64, twice)."""
    with np.errstate(over="ignore"):
        h = np.asarray(x).astype(np.uint64) + np.uint64(key)
        for _ in range(2):
            h = h + np.uint64(0x9E3779B97F4A7C15)
            h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            h = h ^ (h >> np.uint64(31)) ^ np.uint64(key)
    return h


WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)  # enough below 2^64


def is_prime(n: int) -> bool:
    """Miller and Rabin's test, exact below 2^64."""
    if n < 2:
        return False
    for w in WITNESSES:
        if n % w == 0:
            return n == w
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    return all(_passes(n, w, d, s) for w in WITNESSES)


def _passes(n: int, w: int, d: int, s: int) -> bool:
    x = pow(w, d, n)
    if x in (1, n - 1):
        return True
    for _ in range(s - 1):
        x = x * x % n
        if x == n - 1:
            return True
    return False
