"""The script that `triton-sanitizer` executes: it runs the host function of one corpus file at given shapes.

    triton-sanitizer reports/experiments/tool_comparison/sanitizer_script.py FILE SHAPES LOG SEED

SHAPES is a JSON list of dims. LOG gets one JSON line for the versions and one per shape: it returned, it raised, or the
sanitizer ended the process.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from importlib import metadata
from typing import Any

VERSIONED = ("triton-viz", "triton", "torch", "z3-solver")


def main(file: str, shapes: str, log: str, seed: str) -> None:
    """Runs every shape, whatever became of the ones before it."""
    import numpy as np

    with open(log, "a", buffering=1) as out:
        print(json.dumps({"versions": {p: metadata.version(p) for p in VERSIONED}}), file=out)
        case = loaded(file)
        for dims in json.loads(shapes):
            args = case.sample(dims, np.random.default_rng(int(seed)))
            start = time.perf_counter()
            state, why = "stopped", ""
            try:
                case.fn(**args)
                state = "returned"
            except Exception as e:
                state, why = "raised", f"{type(e).__name__}: {e}"
            finally:  # the sanitizer exits where it has something to report
                seconds = time.perf_counter() - start
                print(json.dumps({"dims": dims, "state": state, "why": why, "seconds": seconds}), file=out)


def loaded(file: str) -> Any:
    """The only case of a file."""
    from trilift.lift.cases.declaration import Case

    spec = importlib.util.spec_from_file_location("sanitized_case", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return next(v for v in vars(module).values() if isinstance(v, Case))


if __name__ == "__main__":
    main(*sys.argv[1:])
