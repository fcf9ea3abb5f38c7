"""Commands on the workers of a Dask cluster that die, differ, or have too little memory; a scheduler that goes away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from .case_texts import HEAD, NAME, case, put
from .commands_under_limit import Running, run, started
from .dask_processes import Machines, copied, killing, machines
from .expectations_of_ends import incomplete, read, refused, rows
from .fault import Ended, Fault, Make

MANY = tuple(f"c{k}" for k in range(6))
KILLS = 5  # of workers, each of which is started again
KILL_SECONDS = 6.0  # between two kills, at most
SLOW = "time.sleep(0.2)"  # at each shape that is tried
MEMORY = "2GiB"
REPORT = "out.json"
Trouble = Callable[[Machines, Running], None]


def many(folder: Path) -> str:
    (folder / NAME).write_text(HEAD + "".join(case(name, SLOW) for name in MANY))
    return NAME


def prove(address: str, name: str) -> tuple[str, ...]:
    return ("prove", name, "--cluster", address, "--format", "json")


def dying(folder: Path, seed: int) -> Ended:
    """Workers are killed while cases run; the verdicts have to be those of this machine."""
    name = many(folder)
    with machines(folder) as made, killing(made, seed, KILLS, KILL_SECONDS) as killed:
        there = run(folder, *prove(made.address, name), "--no-cache")
    here = run(folder, "prove", name, "--format", "json", "--no-cache")
    same = bool(killed) and verdicts(there) == verdicts(here)
    return there if same else replace(there, out="", err=f"killed {killed}\n{there.err}")


def verdicts(ended: Ended) -> list[tuple[object, ...]]:
    return [(name, r["verdict"], r["formula"], r["bound"], r["contract"]) for name, r in read(ended).items()]


def differing(folder: Path, seed: int) -> Ended:
    """The workers have a trilift with another line."""
    other = folder.with_name(f"{folder.name}.other")
    with machines(folder, root=copied(other)) as made:
        return run(folder, *prove(made.address, put(folder)))


def little_memory(folder: Path, seed: int) -> Ended:
    """A case takes more memory than Dask gives to its worker, and less than the machine has."""
    name = put(folder, "bytearray(4 << 30)")
    with machines(folder, memory=MEMORY) as made:
        return run(folder, *prove(made.address, name))


def restart(made: Machines, running: Running) -> None:
    made.stop()
    made.start()


def gone(made: Machines, running: Running) -> None:
    made.stop()


def troubled(trouble: Trouble) -> Make:
    """An audit of many cases; after the first one the cluster has trouble. Its file is its output."""

    def make(folder: Path, seed: int) -> Ended:
        with machines(folder) as made:
            asked = ("audit", many(folder), "--cluster", made.address, "--format", f"json={REPORT}")
            with started(folder, *asked) as running:
                running.until(f"{MANY[0]}: PROVED")
                trouble(made, running)
                ended = running.end()
        report = folder / REPORT
        return replace(ended, out=report.read_text() if report.exists() else "")

    return make


def resumed(folder: Path, seed: int) -> Ended:
    """The cluster goes away for good; the same command goes on with what was kept, here, and has all cases."""
    ended = troubled(gone)(folder, seed)
    if missing := incomplete(2, cases=MANY[:1])(ended):
        return replace(ended, out="", err=f"{missing}\n{ended.err}")
    again = run(folder, "audit", NAME, "--format", f"json={REPORT}")
    report = replace(again, out=(folder / REPORT).read_text())
    return report if '"cached": true' in report.out else replace(report, out="", err="nothing was kept")


CLUSTER = (
    Fault("Dask: workers are killed at random", dying, rows(cases=MANY)),
    Fault("Dask: the workers have another trilift", differing, refused("has trilift", "but this machine has")),
    Fault("Dask: a case needs more memory than its worker has", little_memory, rows("memory")),
    Fault("Dask: the scheduler is restarted, with its workers", troubled(restart), rows(cases=MANY)),
    Fault("Dask: the cluster goes away, and the command runs again", resumed, rows(cases=MANY)),
)
