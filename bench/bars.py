"""The bars for holdfast, each with the reading that it is judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from figures import Measured, Span

BarStatus = Literal["held", "not held", "not measured"]


@dataclass(frozen=True)
class Bar:
    """A figure of holdfast's, or with `beside` its ratio to another (engine, what) of the same section."""

    title: str
    section: str
    what: str
    limit: float
    beside: tuple[str, str] | None = None
    at_most: bool = False
    is_goal: bool = False  # wished for, not promised

    def read(self, sections: Mapping[str, Measured]) -> Span | None:
        """Return the figure with its spread, or None if it was not measured."""
        measured = sections.get(self.section)
        if measured is None:
            return None
        if self.beside is None:
            return measured.span("holdfast", self.what)
        return measured.ratio(("holdfast", self.what), self.beside)

    def is_met(self, value: float) -> bool:
        """Return whether the value meets the bar; equal values do."""
        return value <= self.limit if self.at_most else value >= self.limit

    def verdict(self, figure: Span | None) -> BarStatus:
        if figure is None:
            return "not measured"
        return "held" if self.is_met(figure.median) else "not held"

    def reported(self, figure: Span | None) -> str:
        """Return the bar and its figure in one line."""
        value = "" if figure is None else f" {figure.median:.2f} ({figure.least:.2f} to {figure.most:.2f})"
        limit = f"{'goal' if self.is_goal else 'bar'}: at {'most' if self.at_most else 'least'} {self.limit:g}"
        return f"{self.title}:{value} ({limit}) {self.verdict(figure)}"


ONE, TWO = "1 process", "2 processes"
ALONE, MANY = "one chain", "100 chains"
START_WIDE = "start, 10 000 wide"
KEYED, PACED = "1 000 keys", "100/s over 4 workers"
BATCHED = "in batches of 250"

BARS = (
    Bar("drain, one process, to pgqueuer", "drain", ONE, 1.5, ("pgqueuer", ONE)),
    Bar("drain, one process, to graphile-worker", "drain", ONE, 0.6, ("graphile-worker", ONE)),
    Bar("drain, one process, to the baseline", "drain", ONE, 0.7, ("baseline", ONE)),
    Bar("drain, two processes, to one", "drain", TWO, 1.0, ("holdfast", ONE)),
    Bar("drain, two processes, to pgqueuer's two", "drain", TWO, 1.2, ("pgqueuer", TWO)),
    Bar("drain, one process, ahead of graphile-worker", "drain", ONE, 1.0, ("graphile-worker", ONE), is_goal=True),
    Bar("drain, two processes, ahead of its two", "drain", TWO, 1.0, ("graphile-worker", TWO), is_goal=True),
    Bar("diamonds, to absurd", "diamonds", ONE, 10.0, ("absurd", ONE)),
    Bar("diamonds, to dbos", "diamonds", ONE, 30.0, ("dbos", ONE)),
    Bar("diamonds, to dbos's steps in turn", "diamonds", ONE, 30.0, ("dbos", f"{ONE}, in turn")),
    Bar("diamonds, to the baseline", "diamonds", ONE, 0.6, ("baseline", ONE)),
    Bar("fan, to absurd", "fan", ONE, 10.0, ("absurd", ONE)),
    Bar("fan, to dbos", "fan", ONE, 30.0, ("dbos", ONE)),
    Bar("fan, to dbos's steps in turn", "fan", ONE, 30.0, ("dbos", f"{ONE}, in turn")),
    Bar("fan, to the baseline", "fan", ONE, 0.6, ("baseline", ONE)),
    Bar("fan, two processes, to one", "fan", TWO, 1.0, ("holdfast", ONE)),
    Bar("a hundred chains, to absurd", "chain", MANY, 10.0, ("absurd", MANY)),
    Bar("a hundred chains, to dbos", "chain", MANY, 30.0, ("dbos", MANY)),
    Bar("a hundred chains, to the baseline", "chain", MANY, 0.6, ("baseline", MANY)),
    Bar("one chain, to the baseline", "chain", ALONE, 0.6, ("baseline", ALONE)),
    Bar("one chain, ahead of absurd's loop", "chain", ALONE, 1.0, ("absurd", ALONE), is_goal=True),
    Bar("one chain, ahead of dbos's loop", "chain", ALONE, 1.0, ("dbos", ALONE), is_goal=True),
    Bar("steps 10 000 wide, to 10 wide", "widths", "10 000 wide", 0.8, ("holdfast", "10 wide")),
    Bar(
        "start of a step 10 000 wide, to 10 wide",
        "widths",
        START_WIDE,
        1.0,
        ("holdfast", "start, 10 wide"),
        at_most=True,
    ),
    Bar(
        "start of a step 10 000 wide, to 1 000",
        "widths",
        START_WIDE,
        1.25,
        ("holdfast", "start, 1 000 wide"),
        at_most=True,
    ),
    *(
        Bar(
            f"time of a map of {items} items with a subscriber, to without",
            "subscribers",
            f"{items} items, ratio, flow.run.completed",
            1.5,
            at_most=True,
        )
        for items in ("100", "1 000", "10 000")
    ),
    Bar("a million lines through ctx.shell, to cat", "shell", "time", 4.0, ("baseline", "time"), at_most=True),
    Bar("memory for a million lines, in MiB", "shell", "memory", 20.0, at_most=True),
    Bar("preview of a table, to bare COPYs", "rules", "preview", 0.35, ("baseline", "preview")),
    Bar("apply to a table, to its two parts", "rules", "apply", 0.7, ("baseline", "apply")),
    Bar("apply of a million targets, seconds until it answers", "rules", "apply answers", 2.0, at_most=True),
    *(
        Bar(f"last target after a {action} of a rule run, in ms", "rules", f"after a {action}", 1000.0, at_most=True)
        for action in ("pause", "stop")
    ),
    Bar(
        "a run of 100 beside a large one, to alone", "rules", "100 beside", 3.0, ("holdfast", "100 alone"), at_most=True
    ),
    *(
        Bar(
            f"memory of a {who}, all targets to a tenth",
            "rules",
            f"{who}, all",
            1.1,
            ("holdfast", f"{who}, a tenth"),
            at_most=True,
        )
        for who in ("previewer", "worker")
    ),
    Bar(
        "apply to a simulated shop, to its two parts", "rules", "apply to a shop", 0.7, ("baseline", "apply to a shop")
    ),
    Bar("rollback, to the apply beside it", "rules", "rollback", 0.75, ("holdfast", "apply to a shop")),
    Bar("a pass, to its reads by hand", "rules", "pass", 0.7, ("baseline", "pass")),
    Bar("50 calls a second over 4 workers, begun a second", "rules", "50 calls/s over 4 workers", 48.5),
    Bar("429 from a shop whose limit is kept, after a second", "rules", "429 after a second", 0.0, at_most=True),
    Bar(
        "newest change of each item beside 100 times as many changes, to as many",
        "rules",
        "newest, many changes",
        3.0,
        ("holdfast", "newest, few changes"),
        at_most=True,
    ),
    Bar("start of one run of many targets, to a bare COPY", "targets", "start", 0.5, ("baseline", "start")),
    Bar(
        "starts by 32 producers with hints, to without",
        "producers",
        "beside a worker",
        0.8,
        ("holdfast", "beside it, hints made impossible"),
    ),
    *(
        Bar(
            f"start() through {library}, to a bare call",
            "own",
            f"{library}, start()",
            1.3,
            ("holdfast", f"{library}, bare"),
            at_most=True,
        )
        for library in ("SQLAlchemy", "SQLAlchemy over asyncpg", "asyncpg")
    ),
    Bar("drain with three masked secrets, to none", "masked", "three secrets", 0.95, ("holdfast", "no secrets")),
    Bar("a new line in logs -f, seconds", "ops", "logs -f", 1.0, at_most=True),
    Bar("queue_run, to document 002's own", "ops", "queue_run", 0.4, ("baseline", "queue_run")),
    Bar("append_event, to document 002's own", "ops", "append_event", 0.5, ("baseline", "append_event")),
    Bar("claim_next_run, to document 002's own", "ops", "claim_next_run", 0.3, ("baseline", "claim_next_run")),
    Bar(
        "claim_next_run, to half of document 002's own",
        "ops",
        "claim_next_run",
        0.5,
        ("baseline", "claim_next_run"),
        is_goal=True,
    ),
    Bar("pages of 1 000, to COPY by hand", "ingest", "pages of 1000", 0.6, ("baseline", "pages of 1000")),
    Bar("pages of 30, to arrays by hand", "ingest", "pages of 30", 0.4, ("baseline", "pages of 30")),
    Bar("consolidation, to a loop by hand", "ingest", f"batches, {ONE}", 0.7, ("baseline", f"batches, {ONE}")),
    Bar("consolidation, two processes, to one", "ingest", f"batches, {TWO}", 1.2, ("holdfast", f"batches, {ONE}")),
    Bar(
        "consolidation, eight processes, to two", "ingest", "batches, 8 processes", 0.9, ("holdfast", f"batches, {TWO}")
    ),
    Bar(
        "log of a run over unchanged rows, to the first",
        "ingest",
        "log of an unchanged run",
        0.3,
        ("holdfast", "log of a first run"),
        at_most=True,
    ),
    Bar("a table pulled, to dlt at its fastest", "pulls", "pull", 1.2, ("dlt", "pull")),
    Bar("a table pulled, to half of dlt's time", "pulls", "pull", 2.0, ("dlt", "pull"), is_goal=True),
    Bar(
        "a record of 5 000 000, to one of 50 000",
        "feeds",
        "a record of many",
        1.25,
        ("holdfast", "a record of few"),
        at_most=True,
    ),
    Bar(
        "memory for 5 000 000 records, to 50 000",
        "feeds",
        "memory, many",
        1.2,
        ("holdfast", "memory, few"),
        at_most=True,
    ),
    Bar(
        "tables after five runs, to one",
        "feeds",
        "tables after five runs",
        1.5,
        ("holdfast", "tables after one run"),
        at_most=True,
    ),
    Bar("the document's example of 500 000 records, minutes", "feeds", "the document's example", 15.0, at_most=True),
    Bar("the query of the last 24 hours, ms", "ingest", "24-hour query", 100.0, at_most=True),
    Bar("claim in a crowd, p99, to alone", "ops", "p99 in a crowd", 2.0, ("holdfast", "p99 alone"), at_most=True),
    Bar("8 claimers, to document 002's own", "ops", "8 claimers", 0.35, ("baseline", "8 claimers")),
    Bar(
        "8 claimers, to half of document 002's own", "ops", "8 claimers", 0.5, ("baseline", "8 claimers"), is_goal=True
    ),
    Bar("beside 3 000 000 finished, to beside 1 000", "growth", "beside 3 000 000", 0.8, ("holdfast", "beside 1 000")),
    Bar("beside a sweep of a million, to alone", "retention", "beside a sweep", 0.8, ("holdfast", "alone")),
    Bar("under a snapshot held open, to without", "snapshot", "held", 0.5, ("holdfast", "without")),
    *(
        Bar(
            f"a concurrency and a bucket that never bind, {label}, to no limit",
            "limits",
            f"limits that never bind, {label}",
            0.85,
            ("holdfast", f"no limit, {label}"),
        )
        for label in (ONE, TWO)
    ),
    Bar("1 000 keys of concurrency 1, to no limit", "limits", KEYED, 0.5, ("holdfast", "no limit, 200 at once")),
    Bar("1 000 keys, to graphile-worker's named queues", "limits", KEYED, 0.7, ("graphile-worker", KEYED)),
    Bar("1 000 keys, to procrastinate's locks", "limits", KEYED, 5.0, ("procrastinate", KEYED)),
    Bar(
        "free tasks behind ten times as many parked, to alone",
        "limits",
        "free tasks behind parked ones",
        0.9,
        ("holdfast", "free tasks alone"),
    ),
    Bar("100 a second over 4 workers, begun a second", "limits", PACED, 99.0),
    Bar("100 a second over 4 workers, begun a second", "limits", PACED, 101.0, at_most=True),
    Bar("no-op tasks in batches of 250, to one by one", "batches", BATCHED, 1.0, ("holdfast", "one by one")),
    Bar(
        "no-op tasks in batches of 250, 1.3 times one by one",
        "batches",
        BATCHED,
        1.3,
        ("holdfast", "one by one"),
        is_goal=True,
    ),
    Bar(
        "no-op tasks with a key each, half as fast as one by one",
        "batches",
        "a key per task",
        0.5,
        ("holdfast", "one by one"),
        is_goal=True,
    ),
    Bar("rows written in batch.transaction(), to a loop by hand", "batches", "rows", 0.6, ("baseline", "rows")),
    *(
        bar
        for call in ("queue", "pause", "resume", "stop")
        for bar in (
            Bar(f"{call} of a run of a million, in ms", "pause", f"{call}, large", 2000.0, at_most=True),
            Bar(
                f"{call} of a run of a million, to one of 10 000",
                "pause",
                f"{call}, large",
                1.5,
                ("holdfast", f"{call}, small"),
                at_most=True,
            ),
        )
    ),
    *(
        Bar(f"last call after a {call}, in s", "pause", f"last call after {call}", 1.0, at_most=True)
        for call in ("pause", "stop")
    ),
    Bar("a run of 100 beside a million, to alone", "pause", "100 beside", 3.0, ("holdfast", "100 alone"), at_most=True),
    Bar(
        "memory at the end of a million steps, to a tenth",
        "pause",
        "memory at 100 %",
        1.1,
        ("holdfast", "memory at 10 %"),
        at_most=True,
    ),
    *(
        bar
        for call in ("cancel", "retry")
        for bar in (
            Bar(f"{call} of a million, steps a second", "cancel", call, 20_000.0),
            Bar(f"{call} of a million, longest wait in ms", "cancel", f"{call}, longest wait", 100.0, at_most=True),
        )
    ),
    Bar("start_many, to the baseline", "bulk", "bulk start", 0.5, ("baseline", "bulk start")),
    Bar("idle, statements a minute", "idle", "idle", 12.0, at_most=True),
    Bar("1 000 ticks due at once, seconds until all are queued", "ticks", "all queued", 2.0, at_most=True),
    Bar("trickle, p50 in ms", "trickle", "p50", 5.0, at_most=True),
    Bar("trickle, p99 in ms", "trickle", "p99", 15.0, at_most=True),
)
