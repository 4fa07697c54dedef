"""The handle of a run, which can be paused, resumed and stopped beside what every handle can do."""

from __future__ import annotations

from typing import Generic, TypeVar

from holdfast.kernel import calls
from holdfast.kernel.handle import Handle, Plan, afollow, checked_reason, follow

R_co = TypeVar("R_co", covariant=True)


class RunHandle(Handle[R_co], Generic[R_co]):
    """A run: a handle that can also be paused, resumed and stopped."""

    def pause(self, reason: str | None = None) -> None:
        """Pause it: workers begin none of its steps until `resume`, and running handlers finish."""
        follow(self._executor, self._pause(reason))

    async def apause(self, reason: str | None = None) -> None:
        """Pause it, as `pause` does."""
        await afollow(self._executor, self._pause(reason))

    def resume(self, reason: str | None = None) -> None:
        """Resume it: workers begin its steps again."""
        follow(self._executor, self._resume(reason))

    async def aresume(self, reason: str | None = None) -> None:
        """Resume it, as `resume` does."""
        await afollow(self._executor, self._resume(reason))

    def stop(self, reason: str | None = None) -> None:
        """End it early, once running handlers have finished; `retry` continues with the steps that were not tried."""
        follow(self._executor, self._stop(reason))

    async def astop(self, reason: str | None = None) -> None:
        """End it early, as `stop` does."""
        await afollow(self._executor, self._stop(reason))

    def _pause(self, reason: str | None) -> Plan[None]:
        yield calls.pause_run(str(self.id), checked_reason(reason))

    def _resume(self, reason: str | None) -> Plan[None]:
        yield calls.resume_run(str(self.id), checked_reason(reason))

    def _stop(self, reason: str | None) -> Plan[None]:
        yield calls.stop_run(str(self.id), checked_reason(reason))
