"""Diamonds: runs of seven no-op steps, one, five beside each other and one; steps a second with one and two processes."""

from __future__ import annotations

from bench import Bench
from engines import FAST, Engine
from hot_loop import load

NAME = "diamonds"
TITLE = "Steps that wait for steps: diamonds of seven"
STEPS = 7
WAIT = 600.0
LABELS = {1: "1 process", 2: "2 processes"}
IN_TURN = "in turn"  # seven steps, one after the other
SHAPES = {"absurd": (IN_TURN,), "dbos": ("diamond", IN_TURN)}  # absurd's steps run in turn inside a task, always
QUICK = ("holdfast", "baseline", "absurd")
NO_STEPS = "it has no steps that wait for steps"
LACKS = {"celery+redis": "its chords need a store of results, and none is set up here"}


def measure(bench: Bench) -> None:
    """Drain the diamonds of each engine; what runs them in turn says so, and where it has both the diamond comes first."""
    for engine in bench.engines():
        if "flow" not in engine.can:
            bench.left_out(engine, LACKS.get(engine.name, NO_STEPS))
    for number, engine in bench.turns("flow", in_quick=QUICK):
        with bench.attempt(engine):
            runs = size(bench, engine)
            for place, shape in enumerate(SHAPES.get(engine.name, ("diamond",))):
                for processes, label in LABELS.items():
                    seconds = drain(bench, engine, runs, processes, shape)
                    what = label if place == 0 else f"{label}, {shape}"
                    bench.record(engine, what, number, runs * STEPS / seconds, "steps/s", n=runs * STEPS, shape=shape)


def size(bench: Bench, engine: Engine) -> int:
    """Tell how many diamonds an engine gets: one that takes milliseconds for a step tells its rate by fewer."""
    if bench.tasks:
        return -(-bench.tasks // STEPS)
    return bench.size(1_000, 100) if engine.lot == FAST else bench.size(200, 50)


def drain(bench: Bench, engine: Engine, runs: int, processes: int, shape: str) -> float:
    """Drain runs that are there before the workers start; tell the seconds from the first handler call."""
    dsn = bench.prepare(engine)
    if engine.name == "baseline":
        load(bench.server.admin(dsn), engine.name, "diamonds", runs * STEPS)
    else:
        bench.command(engine, dsn, "flow", runs, BENCH_SHAPE=shape)
    bench.settle(engine, dsn)
    with bench.workers(engine, dsn, processes, BENCH_SHAPE=shape) as crew:
        return bench.wait_drained(engine, dsn, runs * STEPS, crew, within=WAIT)
