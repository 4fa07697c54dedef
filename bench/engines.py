"""What is measured: holdfast, SQL written by hand, and the peers, each with its settings, its promises and what it can do."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import home

FAST = 100_000
SLOW = 5_000
EVERY = frozenset({"bulk", "drain", "trickle", "steady"})


@dataclass(frozen=True)
class Engine:
    """An engine, how it is run, and what stands beside its numbers."""

    name: str
    adapter: str
    language: Literal["python", "node"]
    package: str
    pending: str | None  # SQL that counts unfinished tasks; None where the store is redis
    settings: str
    promises: str
    environment: Mapping[str, str] = field(default_factory=dict)
    each: Mapping[str, str] = field(default_factory=dict)  # what changes so that each task is acknowledged by itself
    each_settings: str = ""
    lot: int = FAST  # tasks of a drain
    can: frozenset[str] = EVERY
    cannot: Mapping[str, str] = field(default_factory=dict)  # why it lacks an ability, where there is more to say

    @property
    def is_ours(self) -> bool:
        """It runs with the project's interpreter, and the whole run has failed when it fails."""
        return self.name in {"holdfast", "baseline"}


ENGINES = (
    Engine(
        "holdfast",
        "holdfast_adapter.py",
        "python",
        "holdfast",
        "select count(*) from holdfast.steps where finished_at is null",
        settings="`holdfast worker` with its defaults, async handler",
        promises="keeps finished tasks; checks and journals every move; fences by lease; durable for each task",
        each={"BENCH_ACKNOWLEDGE": "each"},
        each_settings="handler opens `ctx.transaction()`: each outcome is a commit of its own; claims stay batched",
        can=EVERY | {"flow"},
    ),
    Engine(
        "baseline",
        "baseline_adapter.py",
        "python",
        "",
        "select count(*) from baseline.steps where finished_at is null",
        settings="bare SQL by hand, batches of 500, the next claim overlaps the last settle",
        promises="keeps finished tasks; checks and journals every move; no policies, retries, tenants or recovery",
        each={"BENCH_BATCH": "1"},
        each_settings="batches of 1",
        can=EVERY | {"flow"},
    ),
    Engine(
        "pgqueuer",
        "pgqueuer_adapter.py",
        "python",
        "pgqueuer",
        "select count(*) from pgqueuer",
        settings="batch 1000, asyncpg, uvloop",
        promises="deletes finished tasks, leaves a log row for each; durable for each task",
        environment={"BENCH_BATCH": "1000"},
        each={"BENCH_BATCH": "1"},
        each_settings="batch 1; its log of completions is still written in batches, it has no switch for that",
    ),
)


def named(name: str) -> Engine:
    """Find an engine by its name."""
    for engine in ENGINES:
        if engine.name == name:
            return engine
    raise ValueError(f"there is no engine {name}; there are {', '.join(e.name for e in ENGINES)}")


def availability() -> dict[str, str | None]:
    """Say of each engine why it cannot run here; None when it can."""
    return {
        engine.name: _lack(engine, has_node=home.can_have_node(), has_redis=_redis() is not None) for engine in ENGINES
    }


def _lack(engine: Engine, *, has_node: bool, has_redis: bool) -> str | None:
    if engine.language == "node" and not has_node:
        return f"node {home.NODE_LEAST} or npm is not there"
    if engine.pending is None and not has_redis:
        return "redis-server is not there"
    return None


def _redis() -> str | None:
    return shutil.which("redis-server")
