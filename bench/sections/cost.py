"""What guard and journal cost: the hot loop on builds of the database that lack the one, the other, or both.

The bench alters databases of its own and throws them away; the product has no such switch.
"""

from __future__ import annotations

from pathlib import Path

import psycopg

from bench import Bench
from hot_loop import install, load, rate

NAME = "cost"
TITLE = "What guard and journal cost"
FOLDER = Path(__file__).resolve().parents[1] / "builds"
BUILDS = {
    "as shipped": None,
    "without the guard": FOLDER / "no_guard.sql",
    "without the journal": FOLDER / "no_journal.sql",
    "without both": FOLDER / "neither.sql",
}


def measure(bench: Bench) -> None:
    """Drain tasks on each build in turn."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    steps = bench.tasks or bench.size(100_000, 20_000)
    for number, engine in bench.turns():
        with bench.attempt(engine):
            for what, build in BUILDS.items():
                dsn = bench.server.fresh("cost")
                install(dsn, engine.name)
                admin = bench.server.admin(dsn)
                if build is not None:
                    with psycopg.connect(admin, autocommit=True) as connection:
                        connection.execute(build.read_bytes())
                load(admin, engine.name, "tasks", steps)
                bench.server.settle(dsn)
                bench.record(engine, what, number, rate(dsn, engine.name, steps), "steps/s", n=steps)
