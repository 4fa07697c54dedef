"""What schedules do with rules: one task previews a rule at a tick, another undoes a run at its `revert_at`.

Both may be killed at any point and are repeated. The database knows what an earlier try has planned, by the number of
the task, so nothing is planned twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.errors import BadDefinition, OutsideError, RateLimited
from holdfast.failpoints import failpoint
from holdfast.handlers.limits import KindLimits
from holdfast.handlers.registry import Handler, RetryPolicy, check_name
from holdfast.handlers.signature import Signature
from holdfast.kernel.schedule_calls import Target
from holdfast.models import Fail, Json, Retry, Snooze
from holdfast.rules import clock_calls as calls
from holdfast.rules.channel import ChannelCall, Registered
from holdfast.rules.language.read_json import from_json
from holdfast.rules.language.rule import Rule
from holdfast.rules.language.write_json import to_json
from holdfast.rules.preview import Request, evaluated, stored
from holdfast.rules.reconcile import PassCtx
from holdfast.rules.sources import items_of

Connections = Callable[[], AbstractContextManager[Connection[Any]]]
LONGEST = timedelta(hours=1)  # for a preview of a large shop
BUSY_FOR = timedelta(seconds=16)  # where the channel does not say how long
LOOK_EACH = timedelta(seconds=5)  # while a run that is to be undone is in the way
READS = RetryPolicy(limit=6, base=2, growth=4, longest="1h", jitter=0.2)
UNKNOWN = RetryPolicy(limit=8, base=60, growth=3, longest="6h", jitter=0.2)


@dataclass(frozen=True, slots=True)
class ScheduledRule:
    """A scheduled rule: the rule itself, or the name of a defined rule."""

    rule: Rule | str
    channel: str
    schedule: str
    apply: bool

    def scheduled(self, _input: Any) -> Target:
        """Check it, and return what the schedule is to start."""
        check_name("channel", self.channel)
        if not isinstance(self.rule, Rule):
            check_name("rule", self.rule)
        if not isinstance(self.apply, bool):
            raise BadDefinition(f"apply must be True or False, got {self.apply!r}", where="apply", next="use True")
        name = self.rule.name if isinstance(self.rule, Rule) else self.rule
        rule = to_json(self.rule) if isinstance(self.rule, Rule) else self.rule
        document = {"rule": rule, "channel": self.channel, "apply": self.apply, "schedule": self.schedule}
        return Target("rules", name, Json(json.dumps(document)), {}, "default")


def previewer_of(registered: Registered, connections: Connections) -> Handler:
    """Return the handler that previews rules on a channel at the ticks of their schedules."""

    def scheduled(ctx: PassCtx, rule: Any, channel: str, apply: bool = True, schedule: str = "") -> dict[str, Any]:
        del rule, channel, apply  # the database reads them from the task
        return _previewed(ctx, registered, connections, schedule)

    scheduled.__name__ = scheduled.__qualname__ = f"schedule {registered.name}"
    return _handler(registered, f"schedule:{registered.name}", scheduled, retry=READS, timeout=LONGEST,
                    limits=(registered.place,))  # fmt: skip


def reverter_of(registered: Registered) -> Handler:
    """Return the handler that undoes the runs of a channel at their `revert_at`."""

    def revert(ctx: PassCtx, run_id: UUID, reason: str | None = None) -> dict[str, Any]:
        del run_id, reason  # the database reads them from the task
        return _reverted(ctx)

    revert.__name__ = revert.__qualname__ = f"revert {registered.name}"
    return _handler(registered, f"revert:{registered.name}", revert, retry=UNKNOWN, timeout=timedelta(minutes=10))


def _handler(
    registered: Registered,
    kind: str,
    function: Callable[..., Any],
    *,
    retry: RetryPolicy,
    timeout: timedelta,
    limits: tuple[str, ...] = (),
) -> Handler:
    return Handler(
        kind=kind,
        function=function,
        signature=Signature(function),
        is_async=False,
        uses_cpu=False,
        queue=registered.place,
        retry=retry,
        lease=timedelta(seconds=300),
        timeout=timeout,
        face="rules",
        context=PassCtx,
        limited=KindLimits(limits=limits),
    )


def _previewed(ctx: PassCtx, registered: Registered, connections: Connections, schedule: str) -> dict[str, Any]:
    (task,) = ctx.make(calls.scheduled_task(ctx.step_id, ctx.lease_id))
    run_id = task.made
    if run_id is None:
        if task.open_run is not None:
            return {"skipped": f"run {task.open_run} of the rule is open"}
        if task.definition is None:
            raise Fail({"message": "there is no such rule: define it, or remove the schedule", "class": "NOT_FOUND"})
        run_id = _planned(ctx, registered, connections, task.definition, schedule=schedule, tenant=task.tenant)
    failpoint("scheduled_previewed")
    (waits,) = ctx.make(calls.apply_scheduled(ctx.step_id, ctx.lease_id, run_id))
    failpoint("scheduled_applied")
    return {"run": str(run_id), "waits": waits}


def _planned(
    ctx: PassCtx,
    registered: Registered,
    connections: Connections,
    definition: Mapping[str, Any],
    *,
    schedule: str,
    tenant: str,
) -> UUID:
    """Preview the rule. The cap of its guard does not refuse a plan here: a plan that is too large waits."""
    rule = from_json(definition)
    request = Request(rule, registered.name, "schedule", {"schedule": schedule}, key=f"schedule:{ctx.step_id}",
                      actor="scheduler", tenant=tenant)  # fmt: skip
    # The claim paid for the first page.
    call = ChannelCall(registered.request_timeout, str(ctx.step_id), before_page=lambda: ctx.charge(registered.place))
    try:
        items = items_of(None, registered.channel, call)
        with evaluated(_uncapped(rule), items, registered.by) as verdicts, connections() as connection:
            return stored(connection, verdicts, request).run_id
    except RateLimited as error:
        raise Snooze(error.retry_after or BUSY_FOR, pause=registered.place) from error
    except OutsideError as error:
        raise Retry({"message": error.what, "class": error.code or "SERVER_ERROR"}, error.retry_after) from error


def _uncapped(rule: Rule) -> Rule:
    return rule if rule.guard.most_targets is None else replace(rule, guard=replace(rule.guard, most_targets=None))


def _reverted(ctx: PassCtx) -> dict[str, Any]:
    (answer,) = ctx.make(calls.revert(ctx.step_id, ctx.lease_id))
    failpoint("revert_planned")
    if answer.get("unknown"):
        raise Retry({"message": f"the outcome of {answer['unknown']} targets is unknown; they are read first"})
    if "waits" in answer:
        raise Snooze(LOOK_EACH)
    return dict(answer)


def known_rule(definition: Rule | Mapping[str, Any] | str) -> Rule | str:
    """Return what a schedule takes: a rule, or the name of one that is defined."""
    if isinstance(definition, Rule | str):
        return definition
    if isinstance(definition, Mapping):
        return from_json(definition)
    raise BadDefinition(
        f"a rule must be a Rule, its JSON or a name, got {definition!r:.60}", where="rule", next="write Rule(…)"
    )
