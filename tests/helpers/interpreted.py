"""Autotuned kernels in Triton's interpreter."""

from __future__ import annotations

from typing import Any


class Configs:
    """Takes the place of Autotuner.run: the chosen configuration, without timing; counts how many there are."""

    chosen, count = 0, 1

    @classmethod
    def install(cls) -> None:
        from triton.runtime.autotuner import Autotuner

        def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            cls.count = len(tuner.configs)
            tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
            return tuner.fn.run(*args, **kwargs, **tuner.configs[cls.chosen].kwargs)

        Autotuner.run = run
