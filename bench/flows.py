"""Flows of one shape, started before the workers and then drained; shared by all sections that measure flows."""

from __future__ import annotations

from dataclasses import dataclass

from bench import Bench
from engines import FAST, Engine
from hot_loop import load

WAIT = 600.0
LABELS = {1: "1 process", 2: "2 processes"}
IN_TURN = "in turn"  # steps that could run beside each other, one after the other
TAKING = "with context and results"  # steps that take a field of the context and what their parents gave
TAKES = {"BENCH_TAKES": "1"}
NO_STEPS = "it has no steps that wait for steps"
LACKS = {"celery+redis": "its chords need a store of results, and none is set up here"}


@dataclass(frozen=True)
class Flows:
    """So many flows of one shape; `width` is how many steps a fan has before its join, or a chain from end to end."""

    shape: str
    runs: int
    width: int

    @property
    def steps(self) -> int:
        """The number of handler calls."""
        beside = {"chain": 0, "map": 2}.get(self.shape, 1)  # a map has the step before it, and the one after
        return self.runs * (self.width + beside)


def able(bench: Bench) -> None:
    """Record that engines without dependent steps are skipped."""
    for engine in bench.engines():
        if "flow" not in engine.can:
            bench.left_out(engine, LACKS.get(engine.name, NO_STEPS))


def is_fast(engine: Engine) -> bool:
    """Return whether an engine gets the full sizes; slow engines show their rate with fewer steps."""
    return engine.lot == FAST


def start(bench: Bench, engine: Engine, dsn: str, flows: Flows, **more: object) -> float | None:
    """Start the flows, and return the seconds it took if the engine's own call was timed."""
    if engine.name == "baseline":
        work, steps = ("diamonds", flows.steps) if flows.shape == "diamond" else (flows.shape, flows.width)
        load(bench.server.admin(dsn), engine.name, work, steps, flows.runs)
        return None
    said = bench.command(engine, dsn, "flow", flows.runs, **_environment(flows), **more)
    return said.get("seconds")


def drain(bench: Bench, engine: Engine, flows: Flows, processes: int = 1, **more: object) -> float:
    """Drain flows that were started before the workers; return the steps per second from the first handler call."""
    dsn = bench.prepare(engine)
    start(bench, engine, dsn, flows, **more)
    return rate(bench, engine, dsn, flows, processes, **more)


def rate(bench: Bench, engine: Engine, dsn: str, flows: Flows, processes: int = 1, **more: object) -> float:
    """Drain the database with workers, and return the steps per second."""
    bench.settle(engine, dsn)
    with bench.workers(engine, dsn, processes, **_environment(flows), **more) as crew:
        return flows.steps / bench.wait_drained(engine, dsn, flows.steps, crew, within=WAIT)


def _environment(flows: Flows) -> dict[str, object]:
    return {"BENCH_SHAPE": flows.shape, "BENCH_WIDTH": flows.width}
