"""A written file on a machine without a GPU, before it is handed out: which cases Triton's interpreter runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

FILE_SECONDS = 120.0
SCRIPT = """
import json, linecache, sys, types
path, calls, tests = sys.argv[1], *map(json.loads, sys.argv[2:])
text = sys.stdin.read()
linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path  # what is drawn depends on the source
module = sys.modules["written"] = types.ModuleType("written")
module.__file__ = path
told = {}
try:
    exec(compile(text, path, "exec"), module.__dict__)
except BaseException as error:
    told[""] = f"{type(error).__name__}: {error}"
for name, sizes in () if told else calls.items():
    try:
        kernel = getattr(module, name)
        kernel.function()(**kernel.arguments(module.Call(sizes), module.Memory()))
    except BaseException as error:
        told[name] = f"{type(error).__name__}: {error}"
for name in () if told else tests:
    try:
        getattr(module, name)()
    except BaseException as error:
        told[name] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(told))
"""


def failing(
    text: str, path: str, calls: Mapping[str, Mapping[str, int | float]], tests: Sequence[str] = ()
) -> dict[str, str]:
    """The exception of a call of each of these kernels of the file, and each of these tests of it, of those that raise;
    "" for the file itself. `calls`: sizes by kernel."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, os.path.abspath(path), *map(json.dumps, (calls, tests))]
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=FILE_SECONDS
        )
        told: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return dict.fromkeys([*calls, *tests], "its process ended")
    return {k: " ".join(v.split())[:200] for k, v in told.items()}
