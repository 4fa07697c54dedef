"""The tools of a section: engines in turn, fresh databases, enqueued tasks, workers, and the readings."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import engines as known
import processes
from engines import Engine
from processes import Crew, Probes
from readings import Noise, Reading, Section
from server import Server

DRAIN_WAIT = 300.0
LOAD_WAIT = 3.0  # seconds in which producers that begin together have loaded
QUICK_SHARE = 5  # a quick run drains a fifth


@dataclass
class Bench:
    """One section's run over the requested engines."""

    server: Server
    asked: list[Engine]
    section: Section
    tasks: int | None = None  # in place of each engine's own lot
    begun: float = field(default_factory=time.monotonic)
    noise: Noise = field(default_factory=Noise)
    failed: set[str] = field(default_factory=set)

    @property
    def rounds(self) -> int:
        return self.section.rounds

    @property
    def quick(self) -> bool:
        return self.section.quick

    def size(self, full: int, quick: int) -> int:
        """Choose a size for a quick or a full run."""
        return quick if self.quick else full

    def lot(self, engine: Engine) -> int:
        """Return the number of tasks in a drain of this engine."""
        return self.tasks or (engine.lot // QUICK_SHARE if self.quick else engine.lot)

    def engines(self, *abilities: str, in_quick: Collection[str] | None = None) -> list[Engine]:
        """Return the engines that can be measured now (fewer in a quick run), and record why others are skipped."""
        lacks = known.availability()
        for engine in self.asked:
            missing = [ability for ability in abilities if ability not in engine.can]
            if lacks[engine.name]:
                self.left_out(engine, str(lacks[engine.name]))
            elif missing:
                self.left_out(engine, engine.cannot.get(missing[0], f"it has no {missing[0]}"))
            elif self.quick and in_quick is not None and engine.name not in in_quick:
                self.left_out(engine, "left to a full run")
        return [engine for engine in self.asked if engine.name not in self.section.left_out]

    def turns(self, *abilities: str, in_quick: Collection[str] | None = None) -> Iterator[tuple[int, Engine]]:
        """Yield each engine in each round; skip engines that have failed."""
        able = self.engines(*abilities, in_quick=in_quick)
        for number in range(1, self.rounds + 1):
            for engine in able:
                if engine.name not in self.failed:
                    self.say(f"{engine.name}, round {number} of {self.rounds}")
                    yield number, engine

    def record(self, engine: Engine, what: str, round: int, value: float, unit: str, **extra: Any) -> None:  # noqa: A002 - as the file calls it
        """Record a figure with the current noise."""
        spin_ms, steal_pct = self.noise.take()
        self.section.readings.append(
            Reading(engine.name, what, round, round_off(value), unit, spin_ms, steal_pct, extra)
        )
        self.say(f"{engine.name}, round {round} of {self.rounds}: {what} {round_off(value):,} {unit}")

    def left_out(self, engine: Engine, reason: str) -> None:
        """Record why an engine has no figure here."""
        if engine.name not in self.section.left_out:
            self.section.left_out[engine.name] = reason
            self.say(f"{engine.name} left out: {reason}")

    @contextmanager
    def attempt(self, engine: Engine) -> Iterator[None]:
        """Record an engine's failure as a skipped figure, and continue."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever a peer does wrong must not end the run
            self.failed.add(engine.name)
            self.left_out(engine, f"failed: {error}")

    def prepare(self, engine: Engine) -> str:
        """Return the DSN of a fresh database with the engine's schema, copied from the first that was set up."""
        if engine.pending is None:
            dsn = self.server.redis()
            self.command(engine, dsn, "setup")
            return dsn
        template = f"{engine.name} as set up"
        if not self.server.has(template):
            self.command(engine, self.server.fresh(template), "setup")
        return self.server.fresh(engine.name, template)

    def enqueue(self, engine: Engine, dsn: str, n: int, **more: object) -> float:
        """Enqueue n tasks by the engine's best bulk call, and return the seconds it took."""
        return float(self.command(engine, dsn, "enqueue", n, **more)["seconds"])

    def command(self, engine: Engine, dsn: str, *arguments: object, **more: object) -> dict[str, Any]:
        """Run a command of the adapter, and return its answer."""
        env = processes.environment(engine, dsn, **more)
        return processes.run(processes.command_of(engine, *arguments), env, self.log(engine))

    def produce(self, engine: Engine, dsn: str, rate: float, seconds: float, *, count: int = 1, **more: object) -> None:
        """Enqueue single tasks at a rate, with one or more processes at once."""
        if count > 1:
            more["BENCH_BEGIN_AT"] = time.time() + LOAD_WAIT
        env = processes.environment(engine, dsn, **more)
        processes.run(
            processes.command_of(engine, "trickle", rate / count, seconds), env, self.log(engine), count=count
        )

    def settle(self, engine: Engine, dsn: str) -> None:
        """Vacuum, analyze and checkpoint, if the engine uses PostgreSQL."""
        if engine.pending:
            self.server.settle(dsn)

    def workers(self, engine: Engine, dsn: str, count: int = 1, **more: object) -> AbstractContextManager[Crew]:
        """Run worker processes while the block runs."""
        probes = Probes(self.server.folder / "probes" / engine.name)
        env = processes.environment(engine, dsn, BENCH_PROBES=probes.folder, BENCH_PROCESSES=count, **more)
        started = 1 if engine.pending is None else count  # celery forks its processes itself
        return processes.crew(processes.command_of(engine, "worker"), started, env, probes, self.log(engine))

    def wait_drained(
        self, engine: Engine, dsn: str, n: int, crew: Crew, *, left: int = 0, within: float = DRAIN_WAIT
    ) -> float:
        """Wait until n handlers were called and the store has at most `left` unfinished; return the seconds since the first call."""
        probes, pending = crew.probes, engine.pending
        processes.wait_until(lambda: probes.calls() >= n, within, crew, f"to call {n} handlers")
        if pending is None:
            return probes.last() - probes.first()
        processes.wait_until(lambda: self.server.ask(dsn, pending) <= left, within, crew, "to finish")
        return time.time() - probes.first()

    def log(self, engine: Engine) -> Any:
        """Return the path of the file that the engine's processes write to."""
        folder = self.server.folder / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{engine.name}.log"

    def say(self, line: str) -> None:
        """Report progress on stderr."""
        print(f"{time.monotonic() - self.begun:6.0f} s  {self.section.name}: {line}", file=sys.stderr, flush=True)


def round_off(value: float) -> float:
    """Round to the significant digits."""
    return round(value) if value >= 1000 else round(value, 2)
