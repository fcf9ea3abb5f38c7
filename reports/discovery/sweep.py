"""The sweep: every kernel in the modules of installed packages, lowered with a guessed signature, parsed, and started.

    python -m trilift.reports.discovery.sweep [PACKAGE...] [--jobs N] [--sample N --seed S] [--out FILE]

Results are lines of JSON, one a kernel; a run with the same file continues where the last one stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .examine import pool
from .modules import STAGES, Result, discover

PACKAGES = ("liger_kernel", "flag_gems", "fla", "torchao", "attn_gym", "gemlite", "xformers")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="reports.discovery.sweep", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("packages", nargs="*", default=list(PACKAGES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, default=0, help="only this many kernels, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--out", type=Path, default=None, help="lines of JSON; kernels that are there already are not repeated"
    )
    parser.add_argument("--match", default="", help="only kernels whose name or place contains this")
    options = parser.parse_args(arguments)
    results = sweep(options.packages, options.jobs, options.sample, options.seed, options.out, options.match)
    print(table(results))
    return 0


def sweep(
    packages: Sequence[str], jobs: int = 2, sample: int = 0, seed: int = 0, out: Path | None = None, match: str = ""
) -> list[Result]:
    """Results for every kernel of the packages, or a sample drawn with `seed`. The packages see a pretended device."""
    from trilift.lift.capture.fake_cuda import pretend

    os.environ.setdefault("GEMS_VENDOR", "nvidia")
    done = {(r.package, r.place): r for r in _read(out)}
    results: list[Result] = []
    with pretend(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lenient_autotune()
        for package in packages:
            found, apart = discover(package)
            results += apart
            found = [f for f in found if match in f.name or match in f.place]
            if sample:
                found = sorted(random.Random(seed).sample(found, min(sample, len(found))), key=lambda f: f.place)
            results += [done[f.package, f.place] for f in found if (f.package, f.place) in done]
            todo = [f for f in found if (f.package, f.place) not in done]
            results += pool(todo, jobs, lambda r: _write(out, r))
    return results


def lenient_autotune() -> None:
    """Autotune keys that are not arguments, an error in triton 3.9, are dropped: older packages then import."""
    from triton.runtime.autotuner import Autotuner

    init = Autotuner.__init__

    def lenient(self: Any, fn: Any, arg_names: Any, configs: Any, key: Any, *rest: Any, **named: Any) -> None:
        init(self, fn, arg_names, configs, [k for k in key if k in arg_names], *rest, **named)

    Autotuner.__init__ = lenient


def table(results: list[Result]) -> str:
    """Kernels by package, then what is missing by cause."""
    kernels = [r for r in results if r.stage in STAGES]
    lines = [f"{'package':14} {'kernels':>8} {'parsed':>8} {'startable':>10} {'executed':>9}   apart"]
    for package in [*dict.fromkeys(r.package for r in results), "all"]:
        mine = [r for r in kernels if package in ("all", r.package)]
        apart = Counter(r.stage for r in results if r not in kernels and package in ("all", r.package))
        parsed, startable = [r for r in mine if r.stage in ("start", "done")], [r for r in mine if r.stage == "done"]
        ran = sum(r.ran == "ran" for r in startable)
        note = ", ".join(f"{n} {'modules not imported' if k == 'import' else k}" for k, n in sorted(apart.items()))
        lines.append(
            f"{package:14} {len(mine):8} {_share(parsed, mine)} {_share(startable, mine):>10} {ran:9}   {note}"
        )
    causes = Counter((r.stage, _cause(r.cause)) for r in kernels if r.stage != "done")
    lines += ["", "what is missing"] + [f"{n:5}  {stage}: {cause}" for (stage, cause), n in causes.most_common()]
    runs = Counter(_cause(r.ran) for r in kernels if r.stage == "done" and r.ran != "ran")
    lines += ["", "startable, but one program on zeros did not end"] + [
        f"{n:5}  {cause}" for cause, n in runs.most_common()
    ]
    return "\n".join(lines)


def _share(part: list[Result], whole: list[Result]) -> str:
    return f"{100 * len(part) / len(whole):7.1f}%" if whole else f"{'-':>8}"


def _cause(text: str) -> str:
    """A cause without what differs from kernel to kernel."""
    return re.sub(r"0x[0-9a-f]+|\b\d+\b", "#", text)[:140]


def _read(out: Path | None) -> Iterator[Result]:
    if out is not None and out.exists():
        for line in out.read_text().splitlines():
            yield Result(**json.loads(line))


def _write(out: Path | None, result: Result) -> None:
    if out is not None:
        with out.open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    sys.exit(main())
