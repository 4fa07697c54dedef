"""The task that plans a run: fixes its window, counts the source, and creates the run with its partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.errors import BadDefinition, RateLimited, Rejected
from holdfast.ingest import calls
from holdfast.ingest.context import IngestCtx, busy
from holdfast.ingest.partition import heatmap, replayed
from holdfast.ingest.records import BadPage
from holdfast.ingest.settings import Settings
from holdfast.ingest.source import Part, Reader, Window
from holdfast.ingest.target import Canonical
from holdfast.kernel import db
from holdfast.models import Continue, Fail


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run as it was planned."""

    run_type: str
    window: Window
    parts: list[Part]

    def document(self, watermark: datetime | None) -> dict[str, Any]:
        """Return it as ingest.create_run takes it."""
        sizes = [part.estimated for part in self.parts]
        return {
            "run_type": self.run_type,
            "since": _text(self.window.since),
            "until": self.window.until.isoformat(),
            "watermark": _text(watermark),
            "estimated": None if None in sizes else sum(size or 0 for size in sizes),
            "partitions": [{"min": part.low, "max": part.high, "estimated": part.estimated} for part in self.parts],
        }


@dataclass(frozen=True, slots=True)
class Counting:
    """The progress of a plan: the cursor of its task. Each count of the source is an attempt of its own."""

    watermark: datetime | None
    run_type: str
    window: Window
    span: tuple[int, int]
    counts: list[int]

    @staticmethod
    def of(cursor: Any) -> Counting | None:
        """Read a task's cursor."""
        if cursor is None:
            return None
        window = Window(_time(cursor["since"]), datetime.fromisoformat(cursor["until"]))
        return Counting(_time(cursor["watermark"]), cursor["run_type"], window, tuple(cursor["span"]), cursor["counts"])

    def cursor(self) -> dict[str, Any]:
        """Return it as a task's cursor."""
        return {
            "watermark": _text(self.watermark),
            "run_type": self.run_type,
            "since": _text(self.window.since),
            "until": self.window.until.isoformat(),
            "span": list(self.span),
            "counts": self.counts,
        }


def plan_run(reader: Reader, settings: Settings, start: calls.StartToPlan) -> RunPlan:
    """Plan a run with all its counts at once, for `holdfast ingest plan`."""
    step = next_step(reader, settings, start, None)
    while isinstance(step, Counting):
        step = next_step(reader, settings, start, step)
    return step


def next_step(
    reader: Reader, settings: Settings, start: calls.StartToPlan, so_far: Counting | None
) -> RunPlan | Counting:
    """Fix the window before the first count, or count one more range; return the plan after the last one."""
    if so_far is None or so_far.watermark != start.watermark:
        window, run_type = bounded(reader, settings, start)
        if window.since is not None and window.until <= window.since:
            return RunPlan(run_type, Window(window.since, window.since), [])
        if reader.has("partitions"):
            parts: list[Part] | None = reader.call("partitions", window, settings.workers, settings.least)
            if parts is not None:
                return RunPlan(run_type, window, parts)
        if not (reader.has("count") and reader.has("span")):
            return RunPlan(run_type, window, [Part()])
        span = reader.call("span", window)
        return RunPlan(run_type, window, []) if span is None else Counting(start.watermark, run_type, window, span, [])
    asked = replayed(heatmap(*so_far.span, settings.workers, settings.least), so_far.counts)
    if isinstance(asked, list):
        return RunPlan(so_far.run_type, so_far.window, asked)
    count = int(reader.call("count", so_far.window, Part(*asked)))
    return replace(so_far, counts=[*so_far.counts, count])


def bounded(reader: Reader, settings: Settings, start: calls.StartToPlan) -> tuple[Window, str]:
    """Return the window: after the watermark less the overlap, up to the source's clock, else the database's."""
    now: datetime = reader.call("now") if reader.has("now") else start.clock
    if now.utcoffset() is None:
        raise BadPage(f"now must be a datetime with a time zone, got {now!r}", where="now")
    until = rounded_down(now, reader.precision)
    if start.since is not None and start.until is not None:
        return Window(start.since, min(start.until, until)), "incremental"
    run_type = start.run_type or ("full" if start.watermark is None else "incremental")
    if run_type == "full" or start.watermark is None:
        return Window(None, until), run_type
    return Window(start.watermark - settings.overlap, until), run_type


def rounded_down(at: datetime, precision: timedelta) -> datetime:
    """Round a time down to a source's precision: rounded up, it would be later than rows that may still come."""
    since_midnight = timedelta(hours=at.hour, minutes=at.minute, seconds=at.second, microseconds=at.microsecond)
    return at - since_midnight % precision


class Planner:
    """Serves the planning task of a feed."""

    def __init__(self, reader: Reader, target: Canonical, settings: Settings, limit: str) -> None:
        self.reader = reader
        self.limit = limit
        self.target = target
        self.settings = settings

    def plan(self, ctx: IngestCtx, start: str) -> str:
        """Plan the run of a start and create it, in the transaction that completes this task."""
        (known,) = ctx.make(calls.start_to_plan(ctx.step_id, ctx.lease_id))
        if known.run_id is None:
            return start
        so_far = Counting.of(ctx.cursor)
        try:
            if so_far is None:
                self._check(ctx)
            plan = next_step(self.reader, self.settings, known, so_far)
        except RateLimited as error:
            raise busy(error, self.limit) from error
        except (BadDefinition, Rejected) as error:
            raise Fail(error) from error
        if isinstance(plan, Counting):
            raise Continue(plan.cursor())
        with ctx.transaction() as tx:
            db.run(tx, calls.create_run(ctx.step_id, ctx.lease_id, plan.document(known.watermark)))
        return start

    def _check(self, ctx: IngestCtx) -> None:
        """Raise BadDefinition for a source or a target that cannot be used."""
        if self.reader.has("check"):
            self.reader.call("check")
        with ctx.transaction() as tx:
            self.target.check(tx)
            tx.rollback()  # nothing is held while the source counts


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
