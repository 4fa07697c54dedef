"""A flow with the options of a start: a key, a tenant, a delay, steps to skip, and notes for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from holdfast import tracing
from holdfast.connections.caller.lend import check_conn, is_committed
from holdfast.errors import BadDefinition
from holdfast.flow import calls, events
from holdfast.flow.context import given_as
from holdfast.flow.events import FlowExecutor
from holdfast.flow.handle import FlowRun
from holdfast.flow.later import Later
from holdfast.kernel import calls as kernel
from holdfast.kernel.call import LONGEST_KEY, Call, check_names, check_tenant
from holdfast.kernel.schedule_calls import Target

if TYPE_CHECKING:
    from holdfast.flow.define import Flow


class Starter:
    """A flow with the options of a start."""

    def __init__(
        self,
        flow: Flow,
        executor: FlowExecutor,
        *,
        key: str | None = None,
        tenant: str = "default",
        skip: Sequence[str] = (),
        about: Mapping[str, Any] | None = None,
        conn: Any = None,
        later: Later = Later(),  # noqa: B008 - it is frozen
        key_for: timedelta | None = None,
    ) -> None:
        check_names([("key", key)], LONGEST_KEY)
        check_tenant(tenant)
        check_conn(conn)
        later.check(key, [name for name in skip if name in flow.nodes and not flow.nodes[name].after])
        self._flow = flow
        self._executor = executor
        self._key = key
        self._key_for = key_for
        self._tenant = tenant
        self._skip = list(skip)
        self._about = {name: value for name, value in (about or {}).items() if value}
        self._conn = conn
        self._later = later

    def start(self, *context: Any, **fields: Any) -> FlowRun:
        """Start a run, with the whole context or with its fields by name."""
        asked_at = self._executor.make(kernel.clock()) if self._needs_time else []
        (run_id,) = self._executor.make(self._call(given_as(context, fields), asked_at), self._conn)
        return self._run(run_id, asked_at)

    async def astart(self, *context: Any, **fields: Any) -> FlowRun:
        """Start a run, as `start` does."""
        asked_at = await self._executor.amake(kernel.clock()) if self._needs_time else []
        (run_id,) = await self._executor.amake(self._call(given_as(context, fields), asked_at), self._conn)
        return self._run(run_id, asked_at)

    def scheduled(self, input: Any) -> Target:  # noqa: A002 - the word is the same in SQL
        """Check the context of a schedule's runs, and return what the schedule is to start."""
        title = self._flow.title
        for option, value in (("key", self._key), ("conn", self._conn), ("delay", self._later.delay)):
            if value is not None:
                raise BadDefinition(
                    f"a schedule of the flow {title.name} has no option {option}", where=option, next="leave it out"
                )
        self._flow.plan  # noqa: B018 - complete from here on: a step that is added later might need more of the context
        options: dict[str, Any] = {"namespace": title.namespace, "skip": self._skip, "about": self._about}
        defaults = {"namespace": "default"}
        given = {name: value for name, value in options.items() if value and value != defaults.get(name)}
        return Target("flow", title.name, self._flow.context.write({} if input is None else input), given, self._tenant)

    def _call(self, context: Any, now: Sequence[datetime]) -> Call[UUID]:
        title = self._flow.title
        return calls.initialize_task(
            title.name,
            self._later.write(self._flow.plan, now) or self._flow.written_plan,
            self._flow.context.write(context),
            namespace=title.namespace,
            version=title.version,
            key=self._key,
            tenant=self._tenant,
            skip=self._skip,
            about=self._about | self._traced(),
            key_for=self._key_for,
        )

    def _traced(self) -> dict[str, Any]:
        """Pass the trace to the handlers, except with a key, whose input must be the same each time."""
        carrier = None if self._key else tracing.carrier()
        return {} if carrier is None else {"trace": carrier}

    @property
    def _needs_time(self) -> bool:
        """Return whether the database's time is needed: for a delay, or because the key may belong to an older run."""
        return self._later.delay is not None or (self._key is not None and self._executor.subscribers.are_there)

    def _run(self, run_id: UUID, asked_at: list[datetime]) -> FlowRun:
        if self._executor.subscribers.are_there and self._is_committed() and events.is_new(run_id, asked_at):
            events.initialized(self._executor, run_id, self._flow.title, len(self._flow.plan))
        return FlowRun(run_id, self._executor, self._flow.read_result)

    def _is_committed(self) -> bool:
        """Return whether the start is already committed; a caller's open transaction may still be rolled back."""
        return self._conn is None or is_committed(self._conn)
