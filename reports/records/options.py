"""How cases are run, as plain data that crosses between processes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Proving:
    """How to prove: against "reference", "formula" or a formula's text (None: the reference if there is one), seconds
    per proof, folders for SMT-LIB and replay scripts, whether loop invariants are guessed, where certificates go: a
    folder, or a file for one case; and whether the checker replays each proof at once."""

    against: str | None = None
    timeout: float = 300.0
    smt_dir: str = ""
    replay: str = ""
    invariants: bool = True
    certificate: str = ""
    check: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """How to run: seconds per case, processes, the seed, whether records tell the steps; top_down and prune as in
    `lift.synthesis.top_down.synthesise`. With `proving` a case is proved too; with `audit` it is
    audited. `debug`: what failed is told in full. `cache`: the folder of records that were
    made before, "" for none; `cluster`: the address of a Dask scheduler whose workers make them, "" for processes
    here. `memory`: bytes that a case may take, None for this machine's divided by the processes."""

    timeout: float = 300.0
    jobs: int = 1
    seed: int = 0
    explain: bool = False
    top_down: bool = True
    prune: bool = True
    proving: Proving | None = None
    audit: bool = False
    debug: bool = False
    cache: str = ""
    cluster: str = ""
    memory: int | None = None
