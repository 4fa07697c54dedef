"""Widths: what a step costs, to start and to drain, in flows of ten to ten thousand parallel steps with a join."""

from __future__ import annotations

from bench import Bench
from flows import Flows, rate, start

NAME = "widths"
TITLE = "A step's cost in narrow and in wide flows"
WIDTHS = (10, 100, 1_000, 10_000)
MICROSECONDS = 1e6


def measure(bench: Bench) -> None:
    """Start and drain as many steps at each width, in one flow or in many."""
    bench.asked = [engine for engine in bench.asked if engine.is_ours]
    steps = bench.tasks or bench.size(20_000, 10_000)
    for number, engine in bench.turns("flow"):
        with bench.attempt(engine):
            for width in WIDTHS:
                flows = Flows("fan", max(1, steps // width), min(width, steps))
                dsn = bench.prepare(engine)
                seconds = start(bench, engine, dsn, flows)
                label = f"{width:,} wide".replace(",", " ")
                bench.record(engine, label, number, rate(bench, engine, dsn, flows), "steps/s", n=flows.steps)
                if seconds is not None:
                    cost = MICROSECONDS * seconds / flows.steps
                    bench.record(engine, f"start, {label}", number, cost, "us/step", n=flows.steps)
