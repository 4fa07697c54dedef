"""`hf.rules`: registers channels, defines rules, and previews them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from typing import Any, Protocol, Unpack
from uuid import UUID

from psycopg import Connection

from holdfast.durations import Duration, duration
from holdfast.errors import BadDefinition, BadInput, NotFound, PermissionMissing
from holdfast.handlers.limits import limit_definition
from holdfast.handlers.registry import Handler, Registry, RetryPolicy
from holdfast.handlers.schedules import Times, schedule_definition
from holdfast.kernel.call import Call, Executor, check_names, check_tenant
from holdfast.kernel.schedule_calls import Missed
from holdfast.rules import calls, clock, reconcile
from holdfast.rules.apply import RETRIES, handler_of
from holdfast.rules.channel import Channel, ChannelCall, KeyOf, Registered, channels_of, registered
from holdfast.rules.chosen import LONGEST_ITEM, check_metadata, check_most
from holdfast.rules.handle import RuleRun, by_id
from holdfast.rules.language.read_json import from_json
from holdfast.rules.language.rule import Rule
from holdfast.rules.language.write_json import to_json
from holdfast.rules.pass_handle import PriceChangeRow, history
from holdfast.rules.preview import Request, evaluated, stored
from holdfast.rules.sources import ITEMS_FROM, Source, items_of, origin_of
from holdfast.rules.table import Table
from holdfast.rules.treatment import Treatment, table_of
from holdfast.spelling import checks_options, did_you_mean

__all__ = ["PriceChangeRow", "RuleRun", "Rules", "Table"]  # what annotations of the app name

BATCH = 250
BREAKER_AFTER = 6  # more than five in a row
BREAKER_FOR = 60
LONGEST = timedelta(days=30)


class RulesExecutor(Executor, Protocol):
    """What rules use of an app."""

    registry: Registry


class Rules:
    """The channels of an app, and the ways to preview rules on them."""

    def __init__(self, engine: RulesExecutor) -> None:
        self._engine = engine
        self._channels = channels_of(engine.registry)
        self._handlers: dict[str, Handler] = {}

    @checks_options(BadDefinition)
    def channel(
        self,
        name: str,
        channel: Channel,
        *,
        batch: int = BATCH,
        by: KeyOf | None = None,
        request_timeout: Duration | None = None,
        target_timeout: Duration | None = None,
        retry: RetryPolicy | None = None,
        rate_limit_retry: RetryPolicy | None = None,
        charge_rate_limits: bool = True,
        errors: Mapping[int | str, Treatment] | None = None,
        concurrency: int | None = None,
        rate: float | None = None,
        per: Duration | None = None,
        burst: float | None = None,
        breaker_after: int = BREAKER_AFTER,
        breaker_for: Duration = BREAKER_FOR,
        settles_within: Duration | None = None,
        corrects: bool = False,
    ) -> None:
        """Register a channel: `hf.rules.channel("shop", Table("products", key="sku", …))`.

        It gets the queue `rules:shop`, which its workers serve, and the limit of the same name (`concurrency`, `rate`,
        `per` and `burst`, as in `hf.limit`). `batch`: the most targets that one call sends. `by`: only
        targets of one key share a call, as in `by=lambda item: item.fields["product"]`. `request_timeout`: when a
        call is given up and retried, by default 10 s. `target_timeout`: when a target that is called alone fails, by
        default 60 s. `retry`: by default three retries, after 2, 4 and 8 s. `rate_limit_retry`: the delays after rate
        limits without Retry-After, by default 16, 32 and 64 s; with `charge_rate_limits=False` they use no tries. The
        breaker opens after `breaker_after` rate limits in a row, for `breaker_for`. `errors`: how errors are treated,
        by status or code, where it differs from the standard. `settles_within`: how long the channel may take to show
        what was written, at most 4 minutes. `corrects`: whether passes of reconciliation plan a correction.
        """
        for option, given in (("retry", retry), ("rate_limit_retry", rate_limit_retry)):
            if given is not None and not isinstance(given, RetryPolicy):
                raise BadDefinition(f"{option} must be a RetryPolicy, got {given!r:.40}", where=option,
                                    next="use RetryPolicy(limit=4, base=2)")  # fmt: skip
        known = registered(
            name, channel, batch=batch, request_timeout=request_timeout, target_timeout=target_timeout,
            errors=table_of(errors), charges_rate_limits=charge_rate_limits, has_own_policy=bool(rate_limit_retry),
            settles_within=settles_within, corrects=corrects, by=by,
        )  # fmt: skip
        if name in self._channels:
            raise BadDefinition(f"channel {name} is registered twice", where="name", next="give it another name")
        if isinstance(channel, Table):
            channel.use(self._engine)
        self._channels[name] = known
        handler = self._handlers[name] = handler_of(known, retry=retry or RETRIES)
        self._engine.registry.add(handler)
        self._engine.registry.add(reconcile.handler_of(known))
        self._engine.registry.add(clock.reverter_of(known))
        self._engine.registry.add(clock.previewer_of(known, self._engine.connection))
        self._engine.registry.add_definition(lambda: _definition(known))
        if rate_limit_retry is not None:
            policy = rate_limit_retry.definition(known.rate_limit_policy)
            self._engine.registry.add_definition(lambda: policy)
        breaks = not channel.in_transaction  # a table in Holdfast's own database has no rate limits
        if breaks or any(option is not None for option in (concurrency, rate, per, burst)):
            limit = limit_definition(known.place, concurrency=concurrency, rate=rate, per=per, burst=burst, tenant=None,
                                     breaker_after=breaker_after if breaks else None,
                                     breaker_for=breaker_for if breaks else None,
                                     breaker_counts=["RATE_LIMIT"] if breaks else None)  # fmt: skip
            self._engine.registry.add_definition(lambda: limit)

    @property
    def channels(self) -> Mapping[str, Channel]:
        """The channels that this app registered, by name."""
        return {name: known.channel for name, known in self._channels.items()}

    def define(self, rule: Rule | Mapping[str, Any], *, actor: str | None = None, tenant: str = "default") -> int:
        """Store a rule under its name, and return its version; a rule that did not change keeps its version."""
        (version,) = self._engine.make(calls.define_rule(to_json(_read(rule)), actor, tenant))
        return int(version)

    async def adefine(
        self, rule: Rule | Mapping[str, Any], *, actor: str | None = None, tenant: str = "default"
    ) -> int:
        """Store a rule, as `define` does."""
        (version,) = await self._engine.amake(calls.define_rule(to_json(_read(rule)), actor, tenant))
        return int(version)

    @checks_options(BadInput)
    def preview(
        self,
        rule: Rule | Mapping[str, Any],
        *,
        channel: str,
        items: Source = None,
        apply: bool = False,
        expires_in: Duration = "24h",
        source: str = "api",
        metadata: Mapping[str, Any] | None = None,
        project_id: str | None = None,
        parent: RuleRun | UUID | None = None,
        key: str | None = None,
        actor: str | None = None,
        tenant: str = "default",
    ) -> RuleRun:
        """Evaluate a rule on a channel's items, and freeze the result as a plan; nothing is written outside.

        `items`: other items than the channel's own list: a Path to a CSV file, a Table or an iterable of ids, mappings
        or Items. Only their prices are read from the channel then. `apply=True` queues the run in the same transaction.
        The plan expires after `expires_in`, at most 30 days. `metadata` may have a correlationId, which events, logs
        and calls of the channel carry. `key`: reusing it for the same rule, channel, source and project returns the
        existing run, whatever the items are by now.
        """
        known = self._known(channel)
        check_metadata(metadata)
        if items is not None:  # whoever plans the run again must not take the channel's whole list instead
            metadata = {**(metadata or {}), ITEMS_FROM: origin_of(items)}
        request = _request(rule, known, source=source, metadata=metadata, project_id=project_id, expires_in=expires_in,
                           parent=parent, key=key, actor=actor, tenant=tenant)  # fmt: skip
        call = ChannelCall(known.request_timeout, (metadata or {}).get("correlationId"))
        with evaluated(request.rule, items_of(items, known.channel, call), known.by) as verdicts:
            with suppress(PermissionMissing):  # a producer may not: then a worker has to have registered it
                for definition in (*self._handlers[channel].definitions(), _definition(known)):
                    self._engine.make(definition)
            with self._engine.connection() as connection:
                preview = stored(connection, verdicts, request, apply=apply)
        return RuleRun(preview.run_id, self._engine, self._channels)

    async def apreview(self, rule: Rule | Mapping[str, Any], *, channel: str, **options: Any) -> RuleRun:
        """Preview a rule, as `preview` does."""
        return await asyncio.to_thread(lambda: self.preview(rule, channel=channel, **options))

    @checks_options(BadDefinition, more=Times.__annotations__)
    def schedule(
        self,
        rule: Rule | Mapping[str, Any] | str,
        *,
        channel: str,
        apply: bool = True,
        name: str | None = None,
        missed: Missed = "one",
        missed_window: Duration | None = None,
        tenant: str | None = None,
        **times: Unpack[Times],
    ) -> None:
        """Preview and apply a rule on a schedule: `hf.rules.schedule(summer, channel="shop", cron="0 6 * * 1")`.

        Each tick is a task that previews the rule. It applies the plan, unless the plan has more than `most_targets`
        targets or more than 5 % of the selected items were refused: then the plan waits for a person, as it does with
        `apply=False`, and the event `automation.run.waiting` says why. A tick is skipped while a run of the rule is
        open. `rule` may be the name of a defined rule; each tick takes its latest version. `name` is the
        schedule's, by default `rules:<rule>:<channel>`. When it fires and `missed` are as in `hf.schedule`.
        """
        wanted = clock.known_rule(rule)
        self._known(channel)
        own = name or f"rules:{wanted if isinstance(wanted, str) else wanted.name}:{channel}"
        definition = schedule_definition(
            own, clock.ScheduledRule(wanted, channel, own, apply), None, missed=missed, missed_window=missed_window,
            overlap="skip", tenant=tenant, **times,
        )  # fmt: skip
        self._engine.registry.add_definition(lambda: definition)

    def connection(self) -> AbstractContextManager[Connection[Any]]:
        """Lend one of the app's connections, for reads."""
        return self._engine.connection()

    def run(self, run_id: UUID | str) -> RuleRun:
        """Return the handle of a run by its id."""
        return by_id(self._engine, run_id)

    def history(self, item: str, *, channel: str | None = None, most: int = 100) -> list[PriceChangeRow]:
        """Read the changes of an item's price by runs, newest first."""
        check_names([("item", item), ("channel", channel)], LONGEST_ITEM)
        check_most(most)
        with self._engine.connection() as connection:
            return history(connection, item, channel=channel, most=most)

    async def ahistory(self, item: str, *, channel: str | None = None, most: int = 100) -> list[PriceChangeRow]:
        """Read the changes of an item's price, as `history` does."""
        return await asyncio.to_thread(lambda: self.history(item, channel=channel, most=most))

    def _known(self, name: str) -> Registered:
        check_names([("channel", name)])
        if name not in self._channels:
            raise NotFound(
                f"this app has no channel {name}",
                where="channel",
                next=did_you_mean(name, self._channels) if self._channels else "register it: hf.rules.channel",
            )
        return self._channels[name]


def _read(rule: Rule | Mapping[str, Any]) -> Rule:
    return rule if isinstance(rule, Rule) else from_json(rule)


def _definition(known: Registered) -> Call[None]:
    return calls.define_channel(
        known.name,
        known.channel.kind,
        about=known.channel.about(),
        batch=known.batch,
        request_timeout=known.request_timeout,
        target_timeout=known.target_timeout,
        settles_within=known.settles_within,
        corrects=known.corrects,
    )


def _request(
    rule: Rule | Mapping[str, Any],
    known: Registered,
    *,
    source: str,
    metadata: Mapping[str, Any] | None,
    project_id: str | None,
    expires_in: Duration,
    parent: RuleRun | UUID | None,
    key: str | None,
    actor: str | None,
    tenant: str,
) -> Request:
    check_tenant(tenant)
    check_names([("project_id", project_id), ("actor", actor)])
    if parent is not None and not isinstance(parent, RuleRun | UUID):
        raise BadInput(f"parent must be a run or its UUID, got {parent!r:.60}", where="parent", next="use run.id")
    span = duration(expires_in, "expires_in")
    parent_id = parent.id if isinstance(parent, RuleRun) else parent
    return Request(_read(rule), known.name, source, metadata, project_id, span, parent_id, key, actor, tenant)
