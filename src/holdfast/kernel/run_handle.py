"""The handle of a run, which can be paused, resumed and stopped beside what every handle can do."""

from __future__ import annotations

from typing import Generic, TypeVar

from holdfast.kernel import calls
from holdfast.kernel.call import check_names
from holdfast.kernel.handle import Handle, Plan, afollow, checked_reason, follow

R_co = TypeVar("R_co", covariant=True)


class RunHandle(Handle[R_co], Generic[R_co]):
    """A run: a handle that can also be paused, resumed and stopped. `actor` names whom the login acts for."""

    def pause(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """Pause it: workers begin none of its steps until `resume`, and running handlers finish."""
        follow(self._executor, self._pause(reason, actor))

    async def apause(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """Pause it, as `pause` does."""
        await afollow(self._executor, self._pause(reason, actor))

    def resume(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """Resume it: workers begin its steps again."""
        follow(self._executor, self._resume(reason, actor))

    async def aresume(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """Resume it, as `resume` does."""
        await afollow(self._executor, self._resume(reason, actor))

    def stop(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """End it early, once running handlers have finished; `retry` continues with the steps that were not tried."""
        follow(self._executor, self._stop(reason, actor))

    async def astop(self, reason: str | None = None, *, actor: str | None = None) -> None:
        """End it early, as `stop` does."""
        await afollow(self._executor, self._stop(reason, actor))

    def _pause(self, reason: str | None, actor: str | None) -> Plan[None]:
        check_names([("actor", actor)])
        yield calls.pause_run(str(self.id), checked_reason(reason), actor)

    def _resume(self, reason: str | None, actor: str | None) -> Plan[None]:
        check_names([("actor", actor)])
        yield calls.resume_run(str(self.id), checked_reason(reason), actor)

    def _stop(self, reason: str | None, actor: str | None) -> Plan[None]:
        check_names([("actor", actor)])
        yield calls.stop_run(str(self.id), checked_reason(reason), actor)
