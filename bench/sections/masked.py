"""Drain with masked secrets: what it costs to look for three of them in all that leaves a worker."""

from __future__ import annotations

from bench import Bench
from sections.drain import drain

NAME = "masked"
TITLE = "Drain with masked secrets"
SECRETS = ("not-a-secret-1", "not-a-secret-2", "not-a-secret-3")
WITHOUT, WITH = "no secrets", "three secrets"


def measure(bench: Bench) -> None:
    """Drain the same lot without and with secrets, the one or the other first in turns."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    environments = {WITHOUT: {}, WITH: {"BENCH_SECRETS": " ".join(SECRETS)}}
    for number, engine in bench.turns("drain"):
        with bench.attempt(engine):
            n = bench.lot(engine)
            for what in sorted(environments, reverse=number % 2 == 0):
                seconds = drain(bench, engine, n, 1, **environments[what])
                bench.record(engine, what, number, n / seconds, "tasks/s", n=n)
