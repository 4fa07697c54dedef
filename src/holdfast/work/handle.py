"""The handle of a started task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from holdfast.kernel.handle import Handle, Plan
from holdfast.work.events import WorkExecutor, publish_manual

R_co = TypeVar("R_co", covariant=True)


class TaskHandle(Handle[R_co], Generic[R_co]):
    """A started task; its id is a number."""

    _label = "task"

    def __init__(self, task_id: int, read_result: Callable[[Any, str], R_co], executor: WorkExecutor) -> None:
        self._id = task_id
        self._read_result = read_result
        self._executor: WorkExecutor = executor

    @property
    def id(self) -> int:
        """The task's number."""
        return self._id

    def _value(self, stored: Any) -> Plan[R_co]:
        yield from ()
        return self._read_result(stored, f"task {self.id}")

    def _cancel(self, reason: str | None) -> Plan[None]:
        yield from super()._cancel(reason)
        publish_manual(self._executor, "cancelled", self.id, reason)

    def _retry(self, reason: str | None) -> Plan[Handle[R_co]]:
        continued = yield from super()._retry(reason)
        publish_manual(self._executor, "reopened", self.id, reason)
        return continued

    def _resolve(self, reason: str | None, result: Any) -> Plan[None]:
        yield from super()._resolve(reason, result)
        publish_manual(self._executor, "resolved", self.id, reason)


def by_id(executor: WorkExecutor, task_id: str) -> TaskHandle[Any]:
    """Return the handle of a task by its number; its result is returned as it is stored."""
    return TaskHandle(int(task_id), lambda stored, _place: stored, executor)
