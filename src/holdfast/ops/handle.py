"""The handle of a queued run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from holdfast.errors import NotFound
from holdfast.kernel import calls as kernel
from holdfast.kernel.handle import Handle, Plan, afollow, checked_reason, follow
from holdfast.models import Status
from holdfast.ops import calls
from holdfast.ops.events import OpsExecutor, publish_manual


class OpsHandle(Handle[dict[str, Any]]):
    """A queued run; its id is `run-…`. The result of a run that succeeded is the metadata that it ended with."""

    _label = "run"
    _shown_by = "holdfast ops show"

    def __init__(self, run_id: str, executor: OpsExecutor) -> None:
        self._id = run_id
        self._executor: OpsExecutor = executor
        self._step_id: int | None = None

    @property
    def id(self) -> str:
        """The run's id, `run-…`."""
        return self._id

    def rollback(self, reason: str | None = None) -> OpsHandle:
        """Queue a run with the last sha that succeeded before this run, and return its handle."""
        return follow(self._executor, self._rollback(reason))

    async def arollback(self, reason: str | None = None) -> OpsHandle:
        """Queue a rollback, as `rollback` does."""
        return await afollow(self._executor, self._rollback(reason))

    def approve(self, reason: str, *, actor: str | None = None) -> None:
        """Approve a run that waits for it; `actor` is the person that the login acts for."""
        follow(self._executor, self._decide("approved", reason, actor))

    async def aapprove(self, reason: str, *, actor: str | None = None) -> None:
        """Approve the run, as `approve` does."""
        await afollow(self._executor, self._decide("approved", reason, actor))

    def reject(self, reason: str, *, actor: str | None = None) -> None:
        """Reject a run that waits for an approval, which cancels it."""
        follow(self._executor, self._decide("rejected", reason, actor))

    async def areject(self, reason: str, *, actor: str | None = None) -> None:
        """Reject the run, as `reject` does."""
        await afollow(self._executor, self._decide("rejected", reason, actor))

    def _subject(self) -> Plan[int | UUID]:
        if self._step_id is None:
            rows: list[int] = yield calls.step_of_run(self._id)
            if not rows:
                raise NotFound(
                    f"there is no run {self._id}",
                    where=self._id,
                    next="check the id and the tenant; a run that retention removed is forgotten with its journal",
                )
            self._step_id = rows[0]
        return self._step_id

    def _journaled_id(self) -> str:
        return str(self._step_id)

    def _status(self) -> Plan[Status]:
        status = yield from super()._status()
        return replace(status, id=self._id, name=status.name.removeprefix("ops:"))

    def _value(self, stored: Any) -> Plan[dict[str, Any]]:
        yield from ()
        return stored if isinstance(stored, dict) else {}

    def _cancel(self, reason: str | None) -> Plan[None]:
        yield calls.cancel_run(self._id, checked_reason(reason))
        publish_manual(self._executor, "cancelled", self._id, reason=reason)

    def _retry(self, reason: str | None) -> Plan[Handle[dict[str, Any]]]:
        rows: list[calls.QueuedRun] = yield calls.retry_run(self._id, checked_reason(reason))
        publish_manual(self._executor, "retried", self._id, reason=reason, new_run=rows[0].run_id)
        return OpsHandle(rows[0].run_id, self._executor)

    def _resolve(self, reason: str | None, result: Any) -> Plan[None]:
        step_id = yield from self._subject()
        yield kernel.resolve(str(step_id), checked_reason(reason), result)
        publish_manual(self._executor, "resolved", self._id, reason=reason)

    def _rollback(self, reason: str | None) -> Plan[OpsHandle]:
        rows: list[calls.QueuedRun] = yield calls.rollback_run(self._id, checked_reason(reason))
        return OpsHandle(rows[0].run_id, self._executor)

    def _decide(self, decision: str, reason: str, actor: str | None) -> Plan[None]:
        yield calls.decide_approval(self._id, decision, checked_reason(reason) or "", actor)


def by_id(executor: OpsExecutor, run_id: str) -> OpsHandle:
    """Return the handle of a run by its id."""
    return OpsHandle(run_id, executor)
