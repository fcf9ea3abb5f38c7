"""A written file on a machine without a GPU, before it is handed out: which cases Triton's interpreter runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping

SECONDS = 120.0
SCRIPT = """
import json, sys, types
path, calls = sys.argv[1], json.loads(sys.argv[2])
module = sys.modules["written"] = types.ModuleType("written")
module.__file__ = path
told = {}
try:
    exec(compile(sys.stdin.read(), path, "exec"), module.__dict__)
except BaseException as error:
    told[""] = f"{type(error).__name__}: {error}"
for name, sizes in () if told else calls.items():
    try:
        kernel = getattr(module, name)
        kernel.function()(**kernel.arguments(module.Call(sizes), module.Memory()))
    except BaseException as error:
        told[name] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(told))
"""


def failing(text: str, path: str, calls: Mapping[str, Mapping[str, int | float]]) -> dict[str, str]:
    """What a call of each of these kernels of the file raises, of those that raise; "" for the file itself. `calls`:
    sizes by kernel."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, os.path.abspath(path), json.dumps(calls)]
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=SECONDS
        )
        told: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return dict.fromkeys(calls, "its process ended")
    return {k: " ".join(v.split())[:200] for k, v in told.items()}
