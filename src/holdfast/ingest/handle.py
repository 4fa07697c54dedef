"""The handle of a feed's run, which exists before the run is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from holdfast.durations import Duration
from holdfast.ingest import calls
from holdfast.ingest.calls import RunSummary
from holdfast.ingest.events import IngestExecutor, publish_manual
from holdfast.kernel import calls as kernel
from holdfast.kernel.call import pauses
from holdfast.kernel.handle import Ended, Handle, Plan, afollow, checked_reason, follow
from holdfast.models import Status


class IngestRun(Handle[RunSummary]):
    """A run of a feed. Until its source is counted, its state is `planning`; `result()` waits for that too."""

    _label = "run"
    _shown_by = "holdfast runs show"

    def __init__(self, run_id: UUID, executor: IngestExecutor) -> None:
        self._id = run_id
        self._executor: IngestExecutor = executor

    @property
    def id(self) -> UUID:
        """The run's id."""
        return self._id

    def resume_consolidation(self, reason: str | None = None) -> None:
        """Consolidate a failed run again, after the fix; quarantined records are mapped again."""
        follow(self._executor, self._resume(reason))

    async def aresume_consolidation(self, reason: str | None = None) -> None:
        """Consolidate the run again, as `resume_consolidation` does."""
        await afollow(self._executor, self._resume(reason))

    def force(self, reason: str | None = None, *, advance_watermark: bool = False) -> None:
        """Consolidate what was read by a run with failed partitions; the watermark stays unless `advance_watermark`."""
        follow(self._executor, self._force(reason, advance_watermark))

    async def aforce(self, reason: str | None = None, *, advance_watermark: bool = False) -> None:
        """Consolidate what was read, as `force` does."""
        await afollow(self._executor, self._force(reason, advance_watermark))

    def retry_partitions(self, partitions: Sequence[str] | None = None, reason: str | None = None) -> None:
        """Retry failed partitions, those that are named or all."""
        follow(self._executor, self._retry_partitions(partitions, reason))

    async def aretry_partitions(self, partitions: Sequence[str] | None = None, reason: str | None = None) -> None:
        """Retry failed partitions, as `retry_partitions` does."""
        await afollow(self._executor, self._retry_partitions(partitions, reason))

    def _subject(self) -> Plan[int | UUID]:
        rows: list[int | None] = yield calls.planning_step(self._id)
        return self._id if rows[0] is None else rows[0]

    def _status(self) -> Plan[Status]:
        subject = yield from self._subject()
        if isinstance(subject, UUID):
            return (yield from super()._status())
        rows: list[Status] = yield kernel.step_status([subject])
        status = yield from self._first(rows)
        state = status.state if status.outcome is not None else "planning"
        return replace(status, id=self._id, name=status.name.split(":")[1], state=state)

    def _result(self, timeout: Duration | None) -> Plan[RunSummary]:
        for pause in pauses(timeout, f"{self._label} {self.id}"):
            subject = yield from self._subject()
            is_planned = isinstance(subject, UUID)
            standing = kernel.run_results([subject]) if isinstance(subject, UUID) else kernel.step_results([subject])
            ended: Ended = yield from self._first((yield standing))
            if ended.outcome == "succeeded" and is_planned:
                return (yield from self._value(None))
            if ended.outcome is not None and ended.outcome != "succeeded":
                raise (yield from self._failure(ended))
            yield pause
        raise AssertionError("not reached")

    def _value(self, _stored: object) -> Plan[RunSummary]:
        rows: list[RunSummary] = yield calls.run_summary(self._id)
        return (yield from self._first(rows))

    def _cancel(self, reason: str | None) -> Plan[None]:
        yield calls.cancel_run(self._id, checked_reason(reason))
        publish_manual(self._executor, "cancelled", self._id, reason=reason)

    def _retry(self, reason: str | None) -> Plan[Handle[RunSummary]]:
        yield calls.retry(str(self._id), checked_reason(reason))
        publish_manual(self._executor, "retried", self._id, reason=reason, partitions=None)
        return self

    def _resume(self, reason: str | None) -> Plan[None]:
        yield calls.resume_consolidation(self._id, checked_reason(reason))
        publish_manual(self._executor, "consolidation_resumed", self._id, reason=reason)

    def _force(self, reason: str | None, advance: bool) -> Plan[None]:
        yield calls.force(self._id, checked_reason(reason), advance_watermark=advance)
        publish_manual(self._executor, "forced", self._id, reason=reason, advance_watermark=advance)

    def _retry_partitions(self, partitions: Sequence[str] | None, reason: str | None) -> Plan[None]:
        yield calls.retry_partitions(self._id, partitions, checked_reason(reason))
        named = None if partitions is None else list(partitions)
        publish_manual(self._executor, "retried", self._id, reason=reason, partitions=named)
