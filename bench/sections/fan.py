"""Fan: one flow of ten thousand no-op parallel steps and one that waits for them all."""

from __future__ import annotations

from bench import Bench
from engines import Engine
from flows import IN_TURN, LABELS, TAKES, TAKING, Flows, able, drain, is_fast

NAME = "fan"
TITLE = "One flow of many steps beside each other, and a join"
SHAPES = {"absurd": (IN_TURN,), "dbos": ("fan", IN_TURN)}  # absurd's steps run in turn inside a task, always
MAPS: dict[str, dict[str, str]] = {f"{LABELS[1]}, a map": {}, f"{LABELS[1]}, a map {TAKING}": TAKES}
QUICK = ("holdfast", "baseline", "absurd")


def measure(bench: Bench) -> None:
    """Drain one flow of each engine; where a flow is one process's, a second has nothing to do and is not measured."""
    able(bench)
    for number, engine in bench.turns("flow", in_quick=QUICK):
        with bench.attempt(engine):
            for place, shape in enumerate(SHAPES.get(engine.name, ("fan",))):
                flows = Flows(shape, 1, width(bench, engine))
                for processes, label in LABELS.items() if is_fast(engine) else [(1, LABELS[1])]:
                    what = label if place == 0 else f"{label}, {shape}"
                    value = drain(bench, engine, flows, processes)
                    bench.record(engine, what, number, value, "steps/s", n=flows.steps, shape=shape)
            if engine.name == "holdfast":
                for what, more in MAPS.items():
                    flows = Flows("map", 1, width(bench, engine))
                    bench.record(
                        engine, what, number, drain(bench, engine, flows, **more), "steps/s", n=flows.steps, shape="map"
                    )


def width(bench: Bench, engine: Engine) -> int:
    """Return how many steps the join waits for."""
    return bench.tasks or (bench.size(10_000, 2_000) if is_fast(engine) else bench.size(2_000, 500))
