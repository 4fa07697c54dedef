"""Feeds in Python: `hf.ingest("orders", source=…, into=…)` defines one, `feed.start()` runs it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from holdfast.durations import Duration, duration
from holdfast.errors import BadDefinition, PermissionMissing
from holdfast.handlers.limits import KindLimits, limit_definition
from holdfast.handlers.registry import Handler, RetryPolicy, check_name
from holdfast.handlers.schedules import schedule_definition
from holdfast.handlers.signature import Signature
from holdfast.ingest import calls, reads
from holdfast.ingest.consolidate import Consolidator
from holdfast.ingest.context import IngestCtx
from holdfast.ingest.events import IngestExecutor, RunWatcher, publish_manual
from holdfast.ingest.fetch import Fetcher
from holdfast.ingest.handle import IngestRun
from holdfast.ingest.plan import Planner
from holdfast.ingest.pricing import Pricing
from holdfast.ingest.settings import Settings, check_feed_name
from holdfast.ingest.source import Reader, Source
from holdfast.ingest.target import Canonical
from holdfast.kernel.call import Call, check_tenant
from holdfast.kernel.query import Query, query
from holdfast.kernel.schedule_calls import Target
from holdfast.models import Json
from holdfast.spelling import checks_options

__all__ = ["Feed", "Ingest"]  # what annotations of the app name

LEASES = {"plan": "5m", "page": "2m", "consolidate": "5m", "batch": "5m"}
DELIVERIES = RetryPolicy(limit=3, base=1, growth=2, longest=20)
WATERMARK: LiteralString = "select w.last_updated_at from ingest.watermarks w where w.feed = %(feed)s"


class Feed:
    """A feed of an app."""

    def __init__(self, name: str, reader: Reader, target: Canonical, settings: Settings, app: IngestExecutor) -> None:
        self.name = name
        self.reader = reader
        self.target = target
        self.settings = settings
        self._executor = app
        self.definition: Call[None] | None = None

    def __repr__(self) -> str:
        return f"<feed {self.name}>"

    def start(self, *, full: bool = False) -> IngestRun:
        """Start a run: a full one the first time or with `full`, otherwise only of what changed since the watermark."""
        return self._start(calls.start(self.name, "full" if full else None))

    async def astart(self, *, full: bool = False) -> IngestRun:
        """Start a run, as `start` does."""
        return await self._astart(calls.start(self.name, "full" if full else None))

    def backfill(self, since: datetime, until: datetime) -> IngestRun:
        """Start a run over a chosen window; the watermark stays."""
        return self._start(calls.start(self.name, None, since, until))

    async def abackfill(self, since: datetime, until: datetime) -> IngestRun:
        """Start a run over a window, as `backfill` does."""
        return await self._astart(calls.start(self.name, None, since, until))

    @property
    def watermark(self) -> datetime | None:
        """Up to when all changes of the source are in the table; None before the first run."""
        with self._executor.connection() as connection:
            rows: list[datetime] = query(connection, Query(WATERMARK, datetime, {"feed": self.name}))
        return rows[0] if rows else None

    def quarantine(self) -> list[reads.Quarantined]:
        """List the records that could not be stored or mapped, newest first."""
        with self._executor.connection() as connection:
            return reads.quarantined(connection, self.name)

    def scheduled(self, input: Any) -> Target:  # noqa: A002 - the word is the same in SQL
        """Return what a schedule of the feed starts: `{"run_type": "full"}`, or nothing."""
        given = dict(input or {})
        if given.keys() - {"run_type"} or given.get("run_type") not in (None, "full", "incremental"):
            raise BadDefinition(
                f"the input of a schedule of {self.name} must be a run_type, got {input!r}",
                where="input",
                next='leave it out, or use {"run_type": "full"}',
            )
        tenant = "default" if self.definition is None else self.definition.arguments["tenant"]
        return Target("ingest", self.name, Json(json.dumps(given)), {}, tenant)

    def _start(self, call: Call[UUID]) -> IngestRun:
        self._define()
        (run_id,) = self._executor.make(call)
        return self._requested(run_id)

    async def _astart(self, call: Call[UUID]) -> IngestRun:
        try:
            if self.definition is not None:
                await self._executor.amake(self.definition)
        except PermissionMissing:
            pass
        (run_id,) = await self._executor.amake(call)
        return self._requested(run_id)

    def _requested(self, run_id: UUID) -> IngestRun:
        publish_manual(self._executor, "requested", run_id, feed=self.name)
        return IngestRun(run_id, self._executor)

    def _define(self) -> None:
        """Define the feed, as a worker does; a login without that right uses the feed as a worker defined it."""
        try:
            if self.definition is not None:
                self._executor.make(self.definition)
        except PermissionMissing:
            pass


class Ingest:
    """The feeds of an app."""

    def __init__(self, engine: IngestExecutor) -> None:
        self._engine = engine
        self.watcher = RunWatcher(engine.subscribers, engine)
        self._feeds: dict[str, Feed] = {}

    @checks_options(BadDefinition)
    def __call__(
        self,
        name: str,
        *,
        source: Source,
        into: Canonical,
        map: Callable[[Any], Any] | None = None,  # noqa: A002 - the word that users know
        price: Pricing | None = None,
        cron: str | None = None,
        timezone: str = "UTC",
        workers: int = 30,
        page_size: int | None = None,
        overlap: Duration = "15m",
        max_rejects: int = 0,
        max_delete_ratio: float = 0.5,
        batch: int = 2000,
        upsert: int = 100,
        parallel: int = 5,
        least: int = 1000,
        rate: float | None = None,
        per: Duration = 1,
        breaker_after: int | None = 6,
        breaker_for: Duration = 30,
        raw: str | None = None,
        queue: str = "default",
        tenant: str = "default",
    ) -> Feed:
        """Define a feed: every record of `source` ends up in `into` once, and each run asks only for what changed.

        `map` turns a record into the target's model; without it the model reads the record itself. Each run reads the
        last `overlap` again, because a row may commit late. `max_rejects` is how many records of a run may be
        quarantined, `max_delete_ratio` the share that a full run may delete. `workers` is the most partitions of a run.
        `rate` and `per` limit the calls to the source, and after `breaker_after` failures in a row none is made for
        `breaker_for`. `raw` names the view of its records.
        """
        check_feed_name(name)
        check_name("queue", queue)
        check_tenant(tenant)
        if name in self._feeds:
            raise BadDefinition(f"feed {name} is defined twice", where="name", next="give one of them another name")
        if not isinstance(into, Canonical):
            raise BadDefinition(
                f"into must be a Canonical, got {into!r}", where="into", next='use Canonical("t", Model)'
            )
        if map is not None and not callable(map):
            raise BadDefinition(f"map must be a function, got {map!r:.60}", where="map", next="pass it without ()")
        if price is not None and not isinstance(price, Pricing):
            raise BadDefinition(f"price must be a Pricing, got {price!r:.60}", where="price", next="see Pricing")
        if price is not None and price.column not in into.model.model_fields:
            raise BadDefinition(
                f"{into.model.__name__} has no field {price.column}", where="price", next="name the field of the price"
            )
        reader = Reader(source, name)
        settings = Settings(
            workers=workers,
            page_size=reader.page_size if page_size is None else page_size,
            least=least,
            batch=batch,
            upsert=upsert,
            parallel=parallel,
            max_rejects=max_rejects,
            max_delete_ratio=max_delete_ratio,
            overlap=_overlap(overlap),
        )
        feed = Feed(name, reader, into, settings, self._engine)
        document = {
            **settings.document(),
            "source": type(source).__name__,
            "into": into.table,
            "paging": reader.paging,
            "queue": queue,
        }
        feed.definition = calls.define_feed(name, document, raw, tenant)
        self._feeds[name] = feed
        self._register(feed, Consolidator(reader, into, settings, map, price), queue)
        no_breaker = {"breaker_after": None, "breaker_for": None}
        breaker = no_breaker if breaker_after is None else {"breaker_after": breaker_after, "breaker_for": breaker_for}
        of_source = {"concurrency": None, "rate": rate, "per": None if rate is None else per, **breaker}
        self._limit(f"source:{reader.name}", of_source)
        self._limit(f"feed:{name}", {"concurrency": workers, "rate": None, "per": None, **no_breaker})
        self._limit(f"consolidate:{name}", {"concurrency": parallel, "rate": None, "per": None, **no_breaker})
        if cron is not None:
            schedule = schedule_definition(
                f"ingest-{name}", feed, None, cron=cron, timezone=timezone, every=None, at=None, starts_at=None,
                ends_at=None, spread=0, missed="one", missed_window=None, overlap="skip", tenant=tenant,
            )  # fmt: skip
            self._engine.registry.add_definition(lambda: schedule)
        return feed

    def __iter__(self) -> Iterator[Feed]:
        """Iterate over the feeds of the app."""
        return iter(self._feeds.values())

    def find(self, name: str) -> Feed | None:
        """Return a feed by its name."""
        return self._feeds.get(name)

    def _register(self, feed: Feed, consolidator: Consolidator, queue: str) -> None:
        source = f"source:{feed.reader.name}"
        functions: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
            "plan": (Planner(feed.reader, feed.target, feed.settings, source).plan, (source,)),
            "page": (Fetcher(feed.reader, source).fetch, (source, f"feed:{feed.name}")),
            "consolidate": (consolidator.consolidate, ()),
            "batch": (consolidator.consolidate_batch, (f"consolidate:{feed.name}",)),
        }
        for part, (function, limits) in functions.items():
            self._engine.registry.add(
                Handler(
                    kind=f"ingest:{feed.name}:{part}",
                    function=function,
                    signature=Signature(function),
                    is_async=False,
                    uses_cpu=False,
                    queue=queue,
                    retry=DELIVERIES,
                    lease=duration(LEASES[part], "lease"),
                    timeout=None,
                    face="ingest",
                    context=IngestCtx,
                    limited=KindLimits(limits or None),
                )
            )
        definition = feed.definition
        if definition is not None:
            self._engine.registry.add_definition(lambda: definition)

    def _limit(self, name: str, rule: dict[str, Any]) -> None:
        """Define a limit that the feed's steps name; one that would limit nothing is not defined."""
        if any(value is not None for value in rule.values()):
            definition = limit_definition(name, **rule, burst=None, breaker_counts=None, tenant=None)
            self._engine.registry.add_definition(lambda: definition)


def _overlap(given: Duration) -> Any:
    return duration(given, "overlap", error=BadDefinition)


def by_id(executor: IngestExecutor, run_id: str) -> IngestRun:
    """Return the handle of a run by its id."""
    return IngestRun(UUID(run_id), executor)
