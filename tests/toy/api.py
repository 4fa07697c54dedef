"""The toy in Python: `hf.face("toy")` registers handlers, starts lists of wishes and follows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from holdfast.engine import Engine
from holdfast.handlers.inputs import Want, Wish
from holdfast.handlers.registry import Handler
from holdfast.handlers.signature import Signature
from holdfast.kernel import calls
from holdfast.kernel.arrays import Bigints
from holdfast.kernel.call import Call, Executor
from holdfast.kernel.handle import Handle, Plan
from holdfast.kernel.run_handle import RunHandle
from holdfast.models import ClaimedStep, CompletedInput, Ending
from holdfast.notify import Subscribers
from toy.events import publish


def askers(step_ids: Sequence[int], wishes: Sequence[Wish]) -> Call[CompletedInput]:
    """Ask who asked for each wish; the names of the arguments are the wishes' own."""
    return Call("askers", CompletedInput, {"step_ids": Bigints(step_ids)}, keeps_json=True, schema="toy")


def granted(step_ids: Sequence[int]) -> Call[int]:
    return Call("granted", int, {"step_ids": Bigints(step_ids)}, schema="toy")


class Toys:
    """What `hf.face("toy")` returns."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.watcher = Watcher(engine.subscribers)

    def wish(self, function: Callable[..., Any]) -> None:
        """Serve a kind of wish; the handler takes `asker`, which is in no step's input."""
        self._engine.registry.add(
            Handler(
                kind=function.__name__,
                function=function,
                signature=Signature(function),
                is_async=False,
                uses_cpu=False,
                queue="default",
                retry=None,
                lease=None,
                timeout=None,
                wants=(Want("asker", "asker", ""),),
                completes=askers,
                face="toy",
            )
        )

    def watch(self) -> None:
        self._engine.hooks.watch(self.watcher)

    def start(self, asker: str, kinds: Sequence[str]) -> UUID:
        steps = [{"kind": kind, "name": str(number)} for number, kind in enumerate(kinds)]
        call = calls.start_run("toy.list", "wishes", "toy.wish", steps=steps, input={"asker": asker})
        (run_id,) = self._engine.make(call)
        return UUID(str(run_id))


class Watcher:
    """Counts what it is told, and how many wishes the database says are granted by each settle."""

    face = "toy"

    def __init__(self, subscribers: Subscribers) -> None:
        self._subscribers = subscribers
        self.claimed_kinds: list[str] = []
        self.begun_kinds: list[str] = []
        self.endings: list[tuple[str, str]] = []
        self.answers: list[Any] = []

    def query(self, _worker: str, step_ids: list[int]) -> Call[Any] | None:
        return granted(step_ids)

    def claimed(self, _worker: str, steps: list[ClaimedStep], _count: Any) -> None:
        self.claimed_kinds += [step.kind for step in steps]

    def begun(self, step: ClaimedStep, _count: Any) -> None:
        self.begun_kinds.append(step.kind)

    def ended(self, _worker: str, endings: list[Ending], answers: list[Any] | None, _count: Any) -> None:
        self.endings += [(ending.kind, ending.event) for ending in endings]
        self.answers += answers or []
        publish(self._subscribers, endings)

    def flush(self, _seconds: float) -> None:
        return


class ListHandle(RunHandle[str]):
    """A list of wishes. A retry does not repeat it: it asks for a pony in a new list, as some faces start a new run."""

    _label = "list"

    def __init__(self, list_id: UUID, executor: Executor) -> None:
        self._id = list_id
        self._executor = executor

    @property
    def id(self) -> UUID:
        return self._id

    def _value(self, _stored: Any) -> Plan[str]:
        yield from ()
        return "all granted"

    def _retry(self, reason: str | None) -> Plan[Handle[str]]:
        steps = [{"kind": "pony", "name": "0"}]
        call = calls.start_run(
            "toy.list", "wishes", "toy.wish", steps=steps, input={"asker": reason or "nobody"}, of_run=self.id
        )
        (list_id,) = yield call
        return ListHandle(list_id, self._executor)


def handle(engine: Engine, list_id: str) -> ListHandle:
    return ListHandle(UUID(list_id.removeprefix("list-")), engine)
