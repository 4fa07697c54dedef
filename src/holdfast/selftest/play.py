"""Plays a self-test: creates a schema, injects one fault after the other, judges each, and removes everything."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from holdfast.connections.deadline import connect
from holdfast.errors import HoldfastError, Unreachable
from holdfast.kernel import migrate, self_test_schema
from holdfast.kernel import self_test_place as place
from holdfast.selftest import faults, rounds
from holdfast.selftest.faults import LEASE
from holdfast.selftest.history import judge, taken_early
from holdfast.selftest.reaper import reaped
from holdfast.selftest.stage import QUEUE, Made, Sizes, Stage
from holdfast.selftest.tasks import FOLDER_VARIABLE
from holdfast.worker_processes import GroupOptions, worker_group

APP = "holdfast.selftest.tasks:hf"
CONCURRENCY = 4
SETTINGS = {"LEASE": f"{LEASE.total_seconds()}s", "RECOVERY_INTERVAL": "300ms", "ERROR_WAIT": "300ms"}
Show = Callable[[str, str], None]  # the fault, and its progress


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, what must hold under it, and the function that injects it."""

    name: str
    holds: str
    make: Callable[[Stage, Sizes], Made]


@dataclass(frozen=True, slots=True)
class Row:
    """The result of a fault; `broken` lists broken invariants and other violations."""

    fault: str
    holds: str
    rounds: int
    kills: int
    lost: int
    twice: int
    seconds: float
    broken: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Return whether everything held."""
        return not (self.lost or self.twice or self.broken)


FAULTS = (
    Fault("one key from many callers at once", "one task, the same id for all; another input is rejected", faults.keys),
    Fault("killed at chosen points of their work", "each task ends, with one effect", faults.points),
    Fault(
        "a worker frozen past its leases", "others finish its tasks, and its own attempts do not count", faults.freezes
    ),
    Fault("outcomes under leases that others hold now", "outcome, note and renewal are rejected", faults.latecomers),
    Fault("workers killed with -9 under load", "each task ends, with one success and one effect", faults.kills),
    Fault("connections cut under load", "nothing acknowledged is lost, nothing counts twice", faults.cuts),
)


def run(dsn: str, sizes: Sizes, seed: int, show: Show) -> list[Row]:
    """Run a self-test, and leave nothing behind."""
    name = place.new_name()
    with reaped(dsn, name), place.locked(dsn):
        show("setting up", f"schema {name}")
        with connect(dsn) as connection:
            place.sweep(connection)
            place.make(connection, name)
        with self_test_schema.renamed(name):
            migrate.run(dsn)
            with staged(dsn, name, sizes, seed) as stage:
                return list(_rows(stage, sizes, show))


@contextmanager
def staged(dsn: str, name: str, sizes: Sizes, seed: int) -> Iterator[Stage]:
    """Create the stage: a folder and a group of workers."""
    folder = place.folder_of(name)
    folder.mkdir(mode=0o700)
    settings = {**SETTINGS, self_test_schema.VARIABLE.removeprefix("HOLDFAST_"): name}
    settings[FOLDER_VARIABLE.removeprefix("HOLDFAST_")] = str(folder)
    terms = GroupOptions(dsn, APP, CONCURRENCY, "holdfast doctor --self-test", settings)
    with connect(dsn) as connection, worker_group(terms) as group:
        for _ in range(sizes.workers):
            group.start(QUEUE)
        yield Stage(dsn, connection, group, folder, random.Random(seed))  # noqa: S311 - seeded, so that it can be repeated


def _rows(stage: Stage, sizes: Sizes, show: Show) -> Iterator[Row]:
    """Inject one fault after the other, up to the first under which something did not hold."""
    for fault in FAULTS:
        row = _row(stage, fault, sizes, show)
        yield row
        if not row.is_sound:
            return


def _row(stage: Stage, fault: Fault, sizes: Sizes, show: Show) -> Row:
    began_at = time.monotonic()
    stage.report = lambda how: show(fault.name, how)
    stage.report("begins")
    try:
        made = fault.make(stage, sizes)
        found = rounds.gather(stage.connection, made.load, stage.folder)
    except (psycopg.Error, HoldfastError) as error:
        if stage.connection.closed:
            raise Unreachable(
                f"the connection to the database was lost: {error}", next="check that the server runs, then retry"
            ) from error
        reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return Row(fault.name, fault.holds, 0, 0, 0, 0, _since(began_at), (reason,))
    verdict = judge(found, started=made.load.started)
    early = len(taken_early(found.story, LEASE))
    amiss = {
        f"{verdict.strangers} tasks that nobody started": verdict.strangers > 0,
        f"{early} leases taken long before they ran out": early > 0,
        "the fault could not be injected": made.rounds == 0,
    }
    return Row(
        fault=fault.name,
        holds=fault.holds,
        rounds=made.rounds,
        kills=made.kills,
        lost=verdict.lost,
        twice=verdict.twice + made.twice,
        seconds=_since(began_at),
        broken=(*verdict.broken, *(what for what, is_so in amiss.items() if is_so)),
    )


def _since(moment: float) -> float:
    return round(time.monotonic() - moment, 1)
