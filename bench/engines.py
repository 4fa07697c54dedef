"""The measured engines: holdfast, hand-written SQL and the peers, each with its settings, guarantees and abilities."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import home

FAST = 100_000
SLOW = 2_000
EVERY = frozenset({"bulk", "drain", "trickle", "steady"})


@dataclass(frozen=True)
class Engine:
    """An engine: how it is run, and its guarantees for the report."""

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
        """Whether it runs with the project's interpreter; if it fails, the whole run fails."""
        return self.name in {"holdfast", "baseline"}


ENGINES = (
    Engine(
        "holdfast",
        "holdfast_adapter.py",
        "python",
        "holdfast",
        "select count(*) from holdfast.steps where finished_at is null",
        settings="`holdfast worker` with its defaults, a plain function as handler",
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
        each_settings="batch 1: completions that arrive while one is written still share the next",
    ),
    Engine(
        "graphile-worker",
        "graphile_worker_adapter.mjs",
        "node",
        "graphile-worker",
        "select count(*) from graphile_worker._private_jobs",
        settings="24 jobs at once, local queue of 500, completions batched, no log line a job",
        promises="deletes finished tasks; no journal; durable for each task",
        # Read when its module loads, so it comes from outside; without it each job writes a line.
        environment={"BENCH_CONCURRENCY": "24", "BENCH_BATCH": "500", "NO_LOG_SUCCESS": "1"},
        each={"BENCH_ACKNOWLEDGE": "each"},
        each_settings="no local queue, completeJobBatchDelay -1: each job is fetched and completed by itself",
    ),
    Engine(
        "pg-boss",
        "pg_boss_adapter.mjs",
        "node",
        "pg-boss",
        "select count(*) from pgboss.job where state < 'completed'",
        settings="4 fetchers with batches of 500, notify, burst; diamonds: waiting jobs are freed once a second, its shortest interval",
        promises="keeps finished tasks; no journal; durable for each task",
        environment={"BENCH_CONCURRENCY": "4", "BENCH_BATCH": "500"},
        each={"BENCH_ACKNOWLEDGE": "each", "BENCH_CONCURRENCY": "10"},
        each_settings="10 loops of fetch and complete; an empty fetch waits for 50 ms",
        can=EVERY | {"flow"},
    ),
    Engine(
        "awa",
        "awa_adapter.py",
        "python",
        "awa-pg",
        # Its view awa.jobs takes a second at 60 000 finished jobs; these are the tables beneath it.
        """select (select count(*) from awa.ready_entries) - (select count(*) from awa.done_entries)
                  - (select coalesce(sum(completed_count), 0) from awa.receipt_completion_batches)""",
        settings="1024 permits, claim batch 512, one completion shard, uvloop",
        promises="keeps finished tasks for a while, in batch rows; no journal; durable for each task",
        environment={
            "BENCH_CONCURRENCY": "1024",
            "BENCH_BATCH": "512",
            "AWA_COMPLETION_SHARDS": "1",
            "AWA_TRACE_CAPTURE": "off",
        },
        each={"BENCH_BATCH": "1", "AWA_COMPLETION_BATCH_SIZE": "1"},
        each_settings="claim batch 1, completion batch 1",
    ),
    Engine(
        "absurd",
        "absurd_adapter.py",
        "python",
        "absurd-sdk",
        "select count(*) from absurd.t_q where state not in ('completed', 'failed', 'cancelled')",
        settings="claim batch 500, poll 50 ms (its default is 250), one task after the other; diamonds: seven steps in turn",
        promises="keeps finished tasks; checkpoints each step; durable for each task",
        environment={"BENCH_BATCH": "500"},
        each={"BENCH_BATCH": "1"},
        each_settings="claim batch 1; it completes each task by itself anyway",
        lot=SLOW,
        can=EVERY | {"flow"},
    ),
    Engine(
        "celery+redis",
        "celery_adapter.py",
        "python",
        "celery",
        None,
        settings="prefork, prefetch 64 a process, results off, redis with its own defaults",
        promises="forgets finished tasks; acknowledged before the handler runs; not durable for each task",
        environment={"BENCH_BATCH": "64"},
        each={"BENCH_ACKNOWLEDGE": "each", "BENCH_BATCH": "1"},
        each_settings="acks_late, prefetch 1; not durable for each task",
        lot=SLOW,
    ),
    Engine(
        "dbos",
        "dbos_adapter.py",
        "python",
        "dbos",
        "select count(*) from dbos.workflow_status where status in ('ENQUEUED', 'PENDING')",
        settings="100 workflows at once, poll 10 ms (its default is 1 s)",
        promises="keeps finished workflows; checkpoints each step; durable for each task",
        environment={"BENCH_CONCURRENCY": "100"},
        each_settings="as in the drain: it completes each workflow by itself; claims stay batched",
        lot=SLOW,
        can=EVERY | {"flow"},
    ),
    Engine(
        "procrastinate",
        "procrastinate_adapter.py",
        "python",
        "procrastinate",
        "select count(*) from procrastinate_jobs where status in ('todo', 'doing')",
        settings="10 jobs at once",
        promises="keeps finished tasks; an event row for each change; durable for each task",
        environment={"BENCH_CONCURRENCY": "10"},
        each_settings="as in the drain: it fetches and completes each job by itself",
        lot=SLOW,
    ),
)


def named(name: str) -> Engine:
    """Find an engine by name."""
    for engine in ENGINES:
        if engine.name == name:
            return engine
    raise ValueError(f"there is no engine {name}; there are {', '.join(e.name for e in ENGINES)}")


def availability() -> dict[str, str | None]:
    """Return for each engine why it cannot run here; None if it can."""
    return {
        engine.name: lack(engine, has_node=home.can_have_node(), has_redis=_redis() is not None) for engine in ENGINES
    }


def lack(engine: Engine, *, has_node: bool, has_redis: bool) -> str | None:
    """Return what an engine needs and lacks; None if it can run."""
    if engine.language == "node" and not has_node:
        return f"node {home.NODE_LEAST} or npm is not there"
    if engine.pending is None and not has_redis:
        return "redis-server is not there"
    return None


def _redis() -> str | None:
    return shutil.which("redis-server")
