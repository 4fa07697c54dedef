"""Diamonds: runs of seven no-op steps, one, five in parallel and one; steps per second with one and two processes."""

from __future__ import annotations

from bench import Bench
from engines import Engine
from flows import IN_TURN, LABELS, TAKES, TAKING, Flows, able, drain, is_fast

NAME = "diamonds"
TITLE = "Steps that wait for steps: diamonds of seven"
STEPS = 7
SHAPES = {"absurd": (IN_TURN,), "dbos": ("diamond", IN_TURN)}  # absurd's steps run in turn inside a task, always
QUICK = ("holdfast", "baseline", "absurd")


def measure(bench: Bench) -> None:
    """Drain the diamonds of each engine; what runs them in turn says so, and where it has both the diamond comes first."""
    able(bench)
    for number, engine in bench.turns("flow", in_quick=QUICK):
        with bench.attempt(engine):
            for place, shape in enumerate(SHAPES.get(engine.name, ("diamond",))):
                flows = Flows(shape, size(bench, engine), STEPS - 1)
                for processes, label in LABELS.items():
                    what = label if place == 0 else f"{label}, {shape}"
                    value = drain(bench, engine, flows, processes)
                    bench.record(engine, what, number, value, "steps/s", n=flows.steps, shape=shape)
            if engine.name == "holdfast":
                value = drain(bench, engine, flows, **TAKES)
                bench.record(engine, f"{LABELS[1]}, {TAKING}", number, value, "steps/s", n=flows.steps)


def size(bench: Bench, engine: Engine) -> int:
    """Return how many diamonds an engine gets."""
    if bench.tasks:
        return -(-bench.tasks // STEPS)
    return bench.size(1_000, 100) if is_fast(engine) else bench.size(200, 50)
