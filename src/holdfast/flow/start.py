"""The start of a flow's task, with options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from holdfast import tracing
from holdfast.flow import calls, manual_events
from holdfast.flow.context import Context, given_as
from holdfast.flow.executor import FlowExecutor
from holdfast.flow.handle import FlowRun
from holdfast.flow.options import Title
from holdfast.kernel import calls as kernel
from holdfast.kernel.call import LONGEST_KEY, Call, check_names, check_tenant
from holdfast.models import Json


class Startable(Protocol):
    """A flow, as its start sees it."""

    title: Title

    @property
    def plan(self) -> list[dict[str, Any]]:
        """Its steps."""

    @property
    def context(self) -> Context:
        """The check of what a start is given."""

    @property
    def written_plan(self) -> Json:
        """Its steps, as JSON."""

    def read_result(self, step: str, stored: Any, place: str) -> Any:
        """Give what a step gave its type; `place` names it in an error."""


class Starter:
    """A flow with options for its start."""

    def __init__(
        self,
        flow: Startable,
        executor: FlowExecutor,
        *,
        key: str | None = None,
        tenant: str = "default",
        skip: Sequence[str] = (),
        about: Mapping[str, Any] | None = None,
        conn: Any = None,
    ) -> None:
        check_names([("key", key)], LONGEST_KEY)
        check_tenant(tenant)
        self._flow = flow
        self._executor = executor
        self._key = key
        self._tenant = tenant
        self._skip = list(skip)
        self._about = {name: value for name, value in (about or {}).items() if value}
        self._conn = conn

    def start(self, *context: Any, **fields: Any) -> FlowRun:
        """Start a task, with the whole context or with its fields by name."""
        asked_at = self._executor.make(kernel.clock()) if self._may_be_old else []
        (task_id,) = self._executor.make(self._call(given_as(context, fields)), self._conn)
        return self._run(task_id, asked_at)

    async def astart(self, *context: Any, **fields: Any) -> FlowRun:
        """Start a task, as `start` does."""
        asked_at = await self._executor.amake(kernel.clock()) if self._may_be_old else []
        (task_id,) = await self._executor.amake(self._call(given_as(context, fields)), self._conn)
        return self._run(task_id, asked_at)

    def _call(self, given: Any) -> Call[UUID]:
        title = self._flow.title
        return calls.initialize_task(
            title.name,
            self._flow.written_plan,
            self._flow.context.write(given),
            namespace=title.namespace,
            version=title.version,
            key=self._key,
            tenant=self._tenant,
            skip=self._skip,
            about=self._about | self._traced(),
        )

    def _traced(self) -> dict[str, Any]:
        """Let the trace go on in the handlers; not under a key, whose input has to be the same each time."""
        carrier = None if self._key else tracing.carrier()
        return {} if carrier is None else {"trace": carrier}

    @property
    def _may_be_old(self) -> bool:
        """Whether the task may have been there before, and somebody wants to be told of new ones."""
        return self._key is not None and self._executor.subscribers.are_there

    def _run(self, task_id: UUID, asked_at: list[datetime]) -> FlowRun:
        if (
            self._executor.subscribers.are_there
            and manual_events.is_committed(self._conn)
            and manual_events.is_new(task_id, asked_at)
        ):
            manual_events.initialized(self._executor, task_id, self._flow.title, len(self._flow.plan))
        return FlowRun(task_id, self._executor, self._flow.read_result)
