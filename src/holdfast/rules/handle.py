"""The handle of a rule run: its plan, and what can be done with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from holdfast.durations import Duration
from holdfast.errors import HoldfastError, RunFailed, RunPartial, WrongState
from holdfast.kernel.call import Executor
from holdfast.kernel.handle import Ended, Handle, Plan, checked_reason
from holdfast.kernel.run_handle import RunHandle
from holdfast.rules import calls, clock_calls, reads, reconcile_calls, rollback
from holdfast.rules.calls import RetriedTarget
from holdfast.rules.channel import AppExecutor, Registered, channels_of
from holdfast.rules.chosen import Chosen, check_apply, check_retry, check_status, checked_run_id, numbers
from holdfast.rules.language.explain import Explanation
from holdfast.rules.pass_handle import MismatchRow, PassHandle, ReconciliationRow, mismatches, passes_of
from holdfast.rules.plan import explained
from holdfast.rules.rollback import Standpoint
from holdfast.rules.rows import RefusalRow, RuleRunRow, TargetRow

PAGE = 1000


class RuleRun(RunHandle[RuleRunRow]):
    """A rule run, from its preview on. Its result is the run as it ended."""

    _label = "run"
    _shown_by = "holdfast rules show"

    def __init__(self, run_id: UUID, executor: Executor, channels: Mapping[str, Registered] | None = None) -> None:
        self._id = run_id
        self._executor: Executor = executor
        self._channels = {} if channels is None else channels

    @property
    def id(self) -> UUID:
        """The run's id."""
        return self._id

    @property
    def summary(self) -> RuleRunRow:
        """The run as it is now: its status, its plan and its counts."""
        with self._executor.connection() as connection:
            return reads.run_of(connection, self._id)

    async def asummary(self) -> RuleRunRow:
        """Read the run, as `summary` does."""
        return await asyncio.to_thread(lambda: self.summary)

    def targets(self, status: str | None = None) -> Iterator[TargetRow]:
        """Read the targets, page by page; `status` chooses, as in `FAILED`."""
        after = 0
        while True:
            with self._executor.connection() as connection:
                if after == 0:
                    reads.run_of(connection, self._id)
                    check_status(connection, "rules.target", status)
                page = reads.targets_page(connection, self._id, after=after, most=PAGE, status=status)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].id

    async def atargets(self, status: str | None = None) -> list[TargetRow]:
        """Read all targets, as `targets` does."""
        return await asyncio.to_thread(lambda: list(self.targets(status)))

    def refusals(self) -> Iterator[RefusalRow]:
        """Read the items that were refused, page by page."""
        after = 0
        while True:
            with self._executor.connection() as connection:
                if after == 0:
                    reads.run_of(connection, self._id)
                page = reads.refusals_page(connection, self._id, after=after, most=PAGE)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].id

    async def arefusals(self) -> list[RefusalRow]:
        """Read all refusals, as `refusals` does."""
        return await asyncio.to_thread(lambda: list(self.refusals()))

    def explain(self, target: int | str) -> Explanation:
        """Show every step of the calculation of one target, by its item or its number."""
        with self._executor.connection() as connection:
            run = reads.run_of(connection, self._id)
            found = reads.target_of(connection, self._id, str(target))
        return explained(run, found)

    async def aexplain(self, target: int | str) -> Explanation:
        """Explain a target, as `explain` does."""
        return await asyncio.to_thread(self.explain, target)

    def apply(
        self,
        *,
        plan: str | None = None,
        only: Chosen | None = None,
        without: Chosen | None = None,
        first: int | None = None,
        leave_out_shared: bool = False,
        at: datetime | None = None,
        revert_at: datetime | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> RuleRun:
        """Apply the plan: workers send it and nothing else. Applying twice is the same as applying once.

        `plan`: 8 or more digits of its hash, which must be those of the plan. `only` and `without` choose targets by
        number or item. `first=50` applies 50 targets and pauses. A run that has items in common with another open run
        is refused; `leave_out_shared=True` applies the rest.

        `at` applies it later, before the plan expires, and `revert_at` undoes it at a time: what was there before is
        written back, except where somebody changed it since. Both are schedules, `rules:apply:<run>` and
        `rules:revert:<run>`, which can be removed or given another time.
        """
        check_apply(plan, first, actor)
        chosen = self._numbers(only), self._numbers(without, "without")
        times = clock_calls.times(at, revert_at)
        self._executor.make(
            clock_calls.apply(self._id, times, plan=plan, only=chosen[0], without=chosen[1], first=first,
                              leave_out_shared=leave_out_shared, reason=checked_reason(reason), actor=actor)
        )  # fmt: skip
        return self

    async def aapply(
        self,
        *,
        plan: str | None = None,
        only: Chosen | None = None,
        without: Chosen | None = None,
        first: int | None = None,
        leave_out_shared: bool = False,
        at: datetime | None = None,
        revert_at: datetime | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> RuleRun:
        """Apply the plan, as `apply` does."""
        check_apply(plan, first, actor)
        times = clock_calls.times(at, revert_at)
        chosen = await asyncio.to_thread(lambda: (self._numbers(only), self._numbers(without, "without")))
        await self._executor.amake(
            clock_calls.apply(self._id, times, plan=plan, only=chosen[0], without=chosen[1], first=first,
                              leave_out_shared=leave_out_shared, reason=checked_reason(reason), actor=actor)
        )  # fmt: skip
        return self

    def rollback(
        self,
        *,
        only: Chosen | None = None,
        without: Chosen | None = None,
        force: Chosen | None = None,
        apply: bool = False,
        expires_in: Duration = "24h",
        key: str | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> RuleRun:
        """Plan a rollback, a run that restores the prices from before, and return it; `apply=True` queues it.

        It never overwrites what somebody has changed since: such a target fails with the reason `conflict`, unless
        `force` names it. `only` and `without` choose targets of a run that is PARTIAL. Targets whose outcome is unknown
        are read first, which needs a worker.
        """
        check_apply(None, None, actor)
        request = rollback.Request(self._numbers(only), self._numbers(without, "without"),
                                   self._numbers(force, "force"), apply, expires_in, key, checked_reason(reason),
                                   actor)  # fmt: skip
        made = rollback.planned(self._executor, self._id, self._channels, request)
        if isinstance(made, int):
            with suppress(RunFailed, RunPartial):
                self.result(rollback.PATIENCE)
            made = rollback.planned(self._executor, self._id, self._channels, request)
        if isinstance(made, int):
            raise rollback.still_unknown(self._id, made)
        return RuleRun(made, self._executor, self._channels)

    async def arollback(self, **options: Any) -> RuleRun:
        """Plan a rollback, as `rollback` does."""
        return await asyncio.to_thread(lambda: self.rollback(**options))

    def standpoints(self) -> Iterator[Standpoint]:
        """Read what the channel shows for each target of this rollback, page by page; nothing is written."""
        run = self.summary
        if run.source != "rollback":
            raise WrongState(f"run {self._id} is not a rollback", where=str(self._id), next="plan one: run.rollback()")
        return rollback.standpoints(self._executor, run, rollback.known_channel(run, self._channels))

    def reconcile(self, *, correct: bool = False, reason: str | None = None) -> PassHandle:
        """Check now whether the channel still shows the prices that this run wrote; `correct` plans a correction."""
        (planned,) = self._executor.make(reconcile_calls.reconcile(self._id, correct=correct, reason=reason))
        return PassHandle(planned.pass_id, self._executor)

    async def areconcile(self, *, correct: bool = False, reason: str | None = None) -> PassHandle:
        """Check the run, as `reconcile` does."""
        (planned,) = await self._executor.amake(reconcile_calls.reconcile(self._id, correct=correct, reason=reason))
        return PassHandle(planned.pass_id, self._executor)

    def passes(self) -> list[ReconciliationRow]:
        """Read the passes over this run, including those that are due later."""
        with self._executor.connection() as connection:
            reads.run_of(connection, self._id)
            return passes_of(connection, self._id)

    def mismatches(self) -> list[MismatchRow]:
        """Read the prices that differ from what this run wrote, as the last pass found them."""
        with self._executor.connection() as connection:
            reads.run_of(connection, self._id)
            return mismatches(connection, self._id)

    def retry_failed(
        self,
        *,
        only: Chosen | None = None,
        without: Chosen | None = None,
        classes: Sequence[str] | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> list[RetriedTarget]:
        """Retry failed targets with a fresh budget; return for each whether it was queued or skipped, and why.

        A stale target is skipped: it needs a new preview. `classes` chooses by the class of the error.
        """
        check_retry(classes, actor)
        call = calls.retry_failed(self._id, only=self._numbers(only), without=self._numbers(without, "without"),
                                  classes=classes, reason=checked_reason(reason), actor=actor)  # fmt: skip
        return self._executor.make(call)

    async def aretry_failed(
        self,
        *,
        only: Chosen | None = None,
        without: Chosen | None = None,
        classes: Sequence[str] | None = None,
        reason: str | None = None,
        actor: str | None = None,
    ) -> list[RetriedTarget]:
        """Retry failed targets, as `retry_failed` does."""
        return await asyncio.to_thread(
            lambda: self.retry_failed(only=only, without=without, classes=classes, reason=reason, actor=actor)
        )

    def retry_all(self, reason: str | None = None, *, actor: str | None = None) -> list[RetriedTarget]:
        """Retry everything that was not applied, including targets that were never tried."""
        check_retry(None, actor)
        return self._executor.make(calls.retry_all(self._id, checked_reason(reason), actor))

    async def aretry_all(self, reason: str | None = None, *, actor: str | None = None) -> list[RetriedTarget]:
        """Retry everything, as `retry_all` does."""
        return await asyncio.to_thread(self.retry_all, reason, actor=actor)

    def _numbers(self, chosen: Chosen | None, where: str = "only") -> list[int] | None:
        """Return targets by their numbers; texts are ids of items."""
        return numbers(self._executor, self._id, chosen, where)

    def _result(self, timeout: Duration | None) -> Plan[RuleRunRow]:
        reads.check_applied(self._id, (yield reads.is_idle(self._id)))
        return (yield from super()._result(timeout))

    def _value(self, stored: Any) -> Plan[RuleRunRow]:  # noqa: ARG002 - the run itself is the result
        rows: list[RuleRunRow] = yield reads.run_query(self._id)
        return (yield from self._first(rows))

    def _cancel(self, reason: str | None) -> Plan[None]:  # noqa: ARG002
        yield from ()
        raise WrongState(f"rule run {self._id} cannot be cancelled", where=str(self._id),
                         next="end it with stop(), or pause() it")  # fmt: skip

    def _resolve(self, reason: str | None, result: Any) -> Plan[None]:  # noqa: ARG002 - targets have no result
        targets = [0]
        while True:
            page = yield reads.targets_query(self._id, after=targets[-1], most=PAGE, status="FAILED")
            targets += [each.id for each in page]
            if len(page) < PAGE:
                break
        yield calls.resolve(self._id, targets[1:], checked_reason(reason))

    def _retry(self, reason: str | None) -> Plan[Handle[RuleRunRow]]:
        yield calls.retry_failed(self._id, reason=checked_reason(reason))
        return self

    def _failure(self, ended: Ended) -> Plan[HoldfastError]:
        error = yield from super()._failure(ended)
        error.next = f"see the failed targets: holdfast rules targets {self._id} --status FAILED"
        return error


def by_id(executor: AppExecutor, run_id: UUID | str) -> RuleRun:
    """Return the handle of a run by its id."""
    return RuleRun(checked_run_id(run_id), executor, channels_of(executor.registry))
