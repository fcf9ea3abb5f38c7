"""Kept results carry a code that only their user can make, so that one which somebody else put there is no result.

Source: RFC 2104, HMAC, with SHA-256. The key is in the user's folder for data, not in the cache, which may be shared;
TRILIFT_CACHE_KEY takes its place where a cache moves from machine to machine, as in CI.
"""

from __future__ import annotations

import hmac
import os
import secrets
from functools import cache
from hashlib import sha256
from pathlib import Path

VARIABLE = "TRILIFT_CACHE_KEY"
CODE_BYTES = sha256().digest_size


def sealed(name: str, body: bytes, key: bytes) -> bytes:
    """The body of an entry of this name, after its code."""
    return _code(name, body, key) + body


def opened(name: str, text: bytes, key: bytes) -> bytes | None:
    """The body; None where its code is another one."""
    code, body = text[:CODE_BYTES], text[CODE_BYTES:]
    return body if hmac.compare_digest(code, _code(name, body, key)) else None


def _code(name: str, body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, name.encode() + b"\0" + body, "sha256")


def is_given() -> bool:
    """Whether the environment has the key."""
    return bool(os.environ.get(VARIABLE))


def key() -> bytes:
    """The user's key, made when there is none. Raises OSError where it can neither be read nor written."""
    return os.environ[VARIABLE].encode() if is_given() else _of_user(str(path()))


def path() -> Path:
    """The file of the user's key."""
    import platformdirs

    return Path(platformdirs.user_data_dir("trilift")) / "cache.key"


@cache
def _of_user(file: str) -> bytes:
    """The key in a file. Of several processes that make it at once, one does, and the others read that."""
    at = Path(file)
    if not at.exists():
        at.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mine = at.with_name(f"{at.name}.{os.getpid()}")
        with open(os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            f.write(secrets.token_hex(32))
        try:
            os.link(mine, at)
        except FileExistsError:
            pass
        finally:
            mine.unlink()
    return at.read_bytes()
