"""A process that has PyTorch and Triton imported, and runs commands in forks of it: `trilift start`.

    client: args, folder, environment, its stdin, stdout and stderr -> daemon -> fork -> the command -> exit code

The fork is the command in all but its imports. It ends when the client does. A daemon of other sources or settings than
the client's runs nothing for it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypedDict

from ..base.fingerprint import OURS, ROOT

IDLE_SECONDS = 8 * 3600.0  # after which the daemon ends
AT_IMPORT = ("TRITON_", "TORCH", "PYTORCH", "PYTHON", "CUDA", "LD_", "OMP_", "MKL_", "OPENBLAS_")  # variables read then
Run = Callable[[list[str]], object]  # a command with these arguments; exits as a command does
LENGTH = struct.Struct("!Q")


class Request(TypedDict):
    """One command: its arguments, where it was given, and the Python of the client."""

    args: list[str]
    folder: str
    environment: dict[str, str]
    path: list[str]
    executable: str


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that PyTorch, Triton and Python read when they are imported; that of Triton's interpreter is never
    set here."""
    from trilift.lift.runtime.isolate import INTERPRETED

    return {k: v for k, v in environment.items() if k.startswith(AT_IMPORT) and k != INTERPRETED}


def sources() -> list[tuple[str, int, int]]:
    """Our files with their times and sizes."""
    found = ((str(p), p.stat()) for name in OURS for p in (ROOT / name).rglob("*.py"))
    return sorted((path, s.st_mtime_ns, s.st_size) for path, s in found)


def serve(path: str, run: Run) -> None:
    """Imports what commands need, then runs those that come to a socket of this path, until it is idle for long."""
    from trilift.lift.runtime import isolate

    from .local import PROVER

    asked = settings(os.environ)
    isolate.settle()
    os.environ.pop(isolate.INTERPRETED, None)
    for module in (*isolate.PRELOAD, *PROVER):
        importlib.import_module(module)
    os.environ[isolate.PRELOADED] = "1"
    known = sources()
    gc.freeze()  # what is here is in use until the end, and forks share it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(socket.AF_UNIX) as server:
        Path(path).unlink(missing_ok=True)
        server.bind(path)
        server.listen()
        server.settimeout(IDLE_SECONDS)
        while True:
            try:
                client, _ = server.accept()
            except TimeoutError:
                break
            if os.fork() == 0:
                server.close()
                _answer(client, asked, known, run)
            client.close()
    Path(path).unlink(missing_ok=True)


def _answer(client: socket.socket, asked: Mapping[str, str], known: list[tuple[str, int, int]], run: Run) -> None:
    """In the fork: runs one command and tells its exit code. Does not return."""
    code = 2
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        client.settimeout(None)
        request, files = received(client)
        if why := _unfit(request, asked, known):
            send(client, {"unfit": why})
            os._exit(0)
        send(client, {"pid": os.getpid()})
        os.setsid()
        _become(request, files)
        threading.Thread(target=_end_with, args=(client,), daemon=True).start()
        code = _run(run, request["args"])
        send(client, {"code": code})
    finally:
        os._exit(code)


def _unfit(request: Request, asked: Mapping[str, str], known: list[tuple[str, int, int]]) -> str:
    """Why this daemon is not the one to run a command; "" where it is."""
    theirs = settings(request["environment"])
    if other := sorted(k for k in theirs.keys() | asked.keys() if theirs.get(k) != asked.get(k)):
        return f"it was started with another {', '.join(other)}"
    if request["executable"] != sys.executable:
        return f"it runs {sys.executable}"
    return "" if sources() == known else "trilift's own files have changed since it started"


def _become(request: Request, files: list[int]) -> None:
    """Takes the place of the client: its files, folder, environment and import path."""
    from trilift.lift.runtime import isolate

    for k, file in enumerate(files):
        os.dup2(file, k)
        os.close(file)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"], **{isolate.PRELOADED: "1"})
    os.environ.pop(isolate.INTERPRETED, None)
    sys.path[:], sys.argv[:] = request["path"], ["trilift", *request["args"]]


def _run(run: Run, args: list[str]) -> int:
    """The exit code of a command."""
    try:
        run(args)
        code: object = 0
    except SystemExit as e:
        code = e.code
    except BaseException as e:
        print(f"error: {type(e).__name__}: {e}", file=sys.stderr)
        code = 2
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # nobody reads any more
            code = 1
    return code if isinstance(code, int) else int(code is not None)


def _end_with(client: socket.socket) -> None:
    """Ends this process, and with it its children, once the client is gone."""
    try:
        gone = not client.recv(1)
    except OSError:
        gone = True
    if gone:
        os.killpg(0, signal.SIGTERM)
        time.sleep(5)
        os.killpg(0, signal.SIGKILL)


# ---- messages --------------------------------------------------------------------------------------------------------


def send(to: socket.socket, message: Mapping[str, object], files: tuple[int, ...] = ()) -> None:
    """One message as JSON, after its length, with open files."""
    body = json.dumps(message).encode()
    socket.send_fds(to, [LENGTH.pack(len(body))], files)
    to.sendall(body)


def received(client: socket.socket) -> tuple[Request, list[int]]:
    """A request, and the files that came with it."""
    head, files, _, _ = socket.recv_fds(client, LENGTH.size, 3)
    body: Request = json.loads(exactly(client, LENGTH.unpack(head)[0]))
    return body, files


def answer(server: socket.socket) -> dict[str, object]:
    """An answer of the daemon. Raises OSError where it is gone."""
    found: dict[str, object] = json.loads(exactly(server, LENGTH.unpack(exactly(server, LENGTH.size))[0]))
    return found


def exactly(source: socket.socket, count: int) -> bytes:
    """So many bytes. Raises ConnectionError where there are fewer."""
    out = b""
    while len(out) < count:
        part = source.recv(count - len(out))
        if not part:
            raise ConnectionError("the other side has ended")
        out += part
    return out
