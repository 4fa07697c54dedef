"""Chain: flows of no-op steps each of which waits for the one before; one flow alone, and many at the same time."""

from __future__ import annotations

from bench import Bench
from engines import Engine
from flows import TAKES, TAKING, Flows, able, drain, is_fast

NAME = "chain"
TITLE = "Steps one after the other: chains"
QUICK = ("holdfast", "baseline", "absurd")
MANY = 100  # chains at the same time
ALONE, BESIDE = "one chain", f"{MANY} chains"


def measure(bench: Bench) -> None:
    """Drain one long chain, then many shorter ones, by one process."""
    able(bench)
    for engine in bench.engines("flow"):
        if engine.name == "pg-boss":
            bench.left_out(
                engine, "a job that waits is freed once a second: a chain takes as many seconds as it has steps"
            )
    for number, engine in bench.turns("flow", in_quick=QUICK):
        with bench.attempt(engine):
            for what, flows in sizes(bench, engine).items():
                bench.record(engine, what, number, drain(bench, engine, flows), "steps/s", n=flows.steps)
                if engine.name == "holdfast":
                    value = drain(bench, engine, flows, **TAKES)
                    bench.record(engine, f"{what}, {TAKING}", number, value, "steps/s", n=flows.steps)


def sizes(bench: Bench, engine: Engine) -> dict[str, Flows]:
    """Return what is drained: a chain's rate does not depend on its length, so a slow engine's are shorter."""
    long = bench.tasks // 10 if bench.tasks else bench.size(1_000, 200)
    short = max(2, bench.tasks // MANY if bench.tasks else bench.size(100 if is_fast(engine) else 20, 10))
    return {ALONE: Flows("chain", 1, long), BESIDE: Flows("chain", MANY, short)}
