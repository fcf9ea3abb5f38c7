"""The side of the command line: asks a daemon that runs, starts one, ends it. Imports nothing that takes long."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

OFF = "TRILIFT_DAEMON"  # a variable; with the value 0 no command asks a daemon
STARTING_SECONDS = 120.0
ENDING_SECONDS = 10.0
POLL_SECONDS = 0.05


def place() -> Path:
    """The socket, in a folder of the user's for what ends with the machine."""
    folder = os.environ.get("XDG_RUNTIME_DIR")
    return (Path(folder) / "trilift" if folder else Path(f"/tmp/trilift-{os.geteuid()}")) / "daemon.sock"


def is_safe(path: Path) -> bool:
    """Whether a socket is there that no other user can have made."""
    try:
        folder, found = path.parent.stat(), path.lstat()
    except OSError:
        return False
    mine = folder.st_uid == found.st_uid == os.geteuid()
    return mine and stat.S_ISSOCK(found.st_mode) and not folder.st_mode & 0o022


def ask(args: Sequence[str]) -> int | None:
    """The exit code of a command that a daemon has run; None where none did, and nothing was done."""
    if os.environ.get(OFF) == "0" or not is_safe(place()):
        return None
    from . import daemon

    with socket.socket(socket.AF_UNIX) as server:
        request: daemon.Request = {
            "args": [*args],
            "folder": os.getcwd(),
            "environment": dict(os.environ),
            "path": sys.path,
            "executable": sys.executable,
        }
        try:
            server.connect(str(place()))
            daemon.send(server, request, (0, 1, 2))
            first = daemon.answer(server)
        except OSError:
            return None
        if "unfit" in first:
            print(f"the daemon is not used: {first['unfit']}; `trilift start` starts it anew", file=sys.stderr)
            return None
        with forwarded(int(str(first["pid"]))):
            try:
                return int(str(daemon.answer(server)["code"]))
            except OSError:
                print("error: the daemon has ended; the same command without it works", file=sys.stderr)
                return 2


@contextmanager
def forwarded(pid: int) -> Iterator[None]:
    """Context manager: signals that would end this process go to the one that runs the command."""

    def send(number: int, _: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    before = {s: signal.signal(s, send) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)


def pid() -> int | None:
    """The process of the daemon that answers, None for none."""
    path = place()
    if not is_safe(path):
        return None
    with suppress(OSError), socket.socket(socket.AF_UNIX) as server:
        server.connect(str(path))
        found = server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int.from_bytes(found[:4], sys.byteorder)
    return None


def start(serve: str) -> int:
    """Starts a daemon in place of the one that runs, and waits until it answers; returns the exit code. `serve`:
    module:function, which is called there with the path of the socket."""
    stop(quiet=True)
    path = place()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.chmod(path.parent, 0o700)
    log = path.with_suffix(".log")
    module, _, function = serve.partition(":")
    code = f"import sys; sys.path[:] = {sys.path!r}; from {module} import {function} as serve; serve({str(path)!r})"
    command = [sys.executable, "-P", "-c", code]
    with log.open("w") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/", start_new_session=True
        )
    end = time.monotonic() + STARTING_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if pid() is not None:
            print(f"started, process {process.pid}; it ends after 8 hours without a command, or by `trilift stop`")
            return 0
        time.sleep(POLL_SECONDS)
    said = log.read_text(errors="replace").strip().splitlines()[-3:]
    print("error: the daemon did not start: " + (" ".join(said) or "it gave no reason"), file=sys.stderr)
    return 2


def stop(quiet: bool = False) -> int:
    """Ends the daemon, not the commands that it is running; returns the exit code."""
    found = pid()
    if found is None:
        if not quiet:
            print("no daemon is running")
        return 0
    os.kill(found, signal.SIGTERM)
    end = time.monotonic() + ENDING_SECONDS
    while pid() is not None and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    with suppress(OSError):
        place().unlink()
    if not quiet:
        print("stopped")
    return 0


def status() -> int:
    """Says whether a daemon runs: 0 where one does, else 3."""
    found = pid()
    print(f"running, process {found}, at {place()}" if found is not None else "no daemon is running")
    return 0 if found is not None else 3


__all__ = ["ask", "is_safe", "place", "start", "status", "stop"]
