"""Subscribers: what it costs a map that somebody subscribes to events, at 100, 1 000 and 10 000 items."""

from __future__ import annotations

from bench import Bench
from flows import Flows, drain

NAME = "subscribers"
TITLE = "A map with a subscriber to its events, and without"
WIDTHS = (100, 1_000, 10_000)
PATTERNS = {"flow.run.completed": "flow.run.completed", "all events": "*"}


def measure(bench: Bench) -> None:
    """Drain as many steps at each width, without a subscriber and with one, and record the ratio of the two times."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    steps = bench.tasks or bench.size(max(WIDTHS), max(WIDTHS) // 10)
    for number, engine in bench.turns("flow"):
        with bench.attempt(engine):
            for width in WIDTHS:
                flows = Flows("map", max(1, steps // width), min(width, steps))
                label = f"{width:,} items".replace(",", " ")
                alone = flows.steps / drain(bench, engine, flows)
                bench.record(engine, label, number, alone, "s", n=flows.steps)
                for name, pattern in PATTERNS.items():
                    watched = flows.steps / drain(bench, engine, flows, BENCH_SUBSCRIBES=pattern)
                    bench.record(engine, f"{label}, {name}", number, watched, "s", n=flows.steps)
                    bench.record(engine, f"{label}, ratio, {name}", number, watched / alone, "times", n=flows.steps)
