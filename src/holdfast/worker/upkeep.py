"""Checks a worker's secrets before it begins, registers it when it has connected, and recovers steps of silent workers.

If a secret is missing or the database rejects its definitions, the worker ends. Recovery runs now and then, in
whichever worker comes first.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.metadata import version
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from holdfast import log, masking
from holdfast.connections.worker import WorkerConnection
from holdfast.errors import HoldfastError, PermissionMissing, RefusedError, SecretMissing
from holdfast.handlers.registry import Handler, Registry
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.worker.metrics import MOST_COUNTED, Meters
from holdfast.worker.options import Options, strangers
from holdfast.worker.states import State

SHOWN = 80  # characters of a rejected name
LEAST_CHUNK, MOST_CHUNK = 50, 1000  # steps of a large run that one recovery moves; larger chunks are no faster
CHUNK_SECONDS = 0.03  # what a chunk should take: it locks its steps, and others wait for them


class RegistrationRefused(Exception):
    """The database rejects a definition; `error` names it, and the worker ends with it."""

    def __init__(self, error: HoldfastError) -> None:
        super().__init__(str(error))
        self.error = error


def check_secrets(dsn: str, registry: Registry, queues: Collection[str]) -> None:
    """Raise if a handler of these queues lacks a secret; log if the DSN's password is too short to be masked.

    Handlers of other queues may lack theirs: a worker needs only the secrets of its own queues.
    """
    faults: dict[str, SecretMissing] = {}
    password = str(conninfo_to_dict(dsn).get("password") or "")
    if password and not masking.is_maskable(password):
        why = f"a value of fewer than {masking.LEAST} characters is not masked"
        log.get("worker").warning("secret.too_short", name="the password of the DSN", why=why)
    for handler in _handlers(registry):
        for secret in handler.signature.secrets:
            if (fault := secret.fault()) is not None and handler.queue in queues:
                faults[f"{handler.kind} takes {secret.name}, but {fault.what}"] = fault
    if faults:
        raise _missing(faults)


def _handlers(registry: Registry) -> Iterator[Handler]:
    return (handler for kind in registry.kinds() for handler in registry.versions(kind))


def _missing(faults: dict[str, SecretMissing]) -> SecretMissing:
    (what, first), *others = faults.items()
    error = SecretMissing(what, where=first.where, next=first.next)
    for other, _ in others:
        error.add_note(f"also: {other}")
    return error


async def register(
    connection: WorkerConnection,
    definitions: Iterable[Call[None]],
    options: Options,
    kinds: list[str],
    described: dict[str, Any],
) -> list[str]:
    """Send the definitions and register the worker; return live workers of the same name outside its group."""
    worker, queues, tenants = options.identity, options.queues, options.tenants
    for call in (*definitions, calls.enlist_worker(worker, queues, kinds=kinds, tenants=tenants, about=described)):
        await _send(connection, call)
    return strangers(worker, await _send(connection, calls.namesakes(worker)))


def about(options: Options, state: State, in_flight: int) -> dict[str, Any]:
    """Return the worker's description for its row."""
    return {
        "state": state,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "version": version("holdfast-pg"),
        "concurrency": options.concurrency,
        "in_flight": in_flight,
    }


def chunk_after(chunk: int, seconds: float) -> int:
    """Return the size of the next chunk, if one of that size took so long."""
    wanted = int(chunk * min(2.0, CHUNK_SECONDS / max(seconds, 1e-6)))
    return max(LEAST_CHUNK, min(MOST_CHUNK, wanted))


class Recovery:
    """The recoveries of one worker; each also writes its row, and measures for its metrics."""

    def __init__(
        self, connection: WorkerConnection, options: Options, meters: Meters, hastened: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._hastened = hastened
        self._options = options
        self._meters = meters
        self._done_at: float | None = None  # when it last left nothing to do
        self._kept_at = 0.0  # when it last did everything that upkeep does
        self._moved = 0  # steps of large runs that it is moving, chunk by chunk
        self._hints = 0
        self._chunk = MOST_CHUNK // 4
        self._log = log.get("worker").bind(worker=options.identity)

    @property
    def is_through(self) -> bool:
        """Return whether the last recovery left nothing; each handles a chunk, in its own transaction."""
        return self._done_at is not None

    def hasten(self) -> None:
        """Make the next round recover now: the steps of a run are to be moved, or a schedule changed."""
        self._done_at = None
        self._hints += 1
        self._hastened()

    async def run_if_due(self, about: Callable[[], dict[str, Any]], *, counts_backlog: bool) -> None:
        """Recover if the last recovery is long enough ago, and always after a start."""
        now, hints = time.monotonic(), self._hints
        interval = self._options.recovery_interval.total_seconds()
        if self._done_at is not None and now - self._done_at < interval:
            return
        if self._moved and now - self._kept_at < interval:
            (moved,) = await self._connection.make(calls.move_chunk(self._chunk))
            rescued = 0
        else:
            rescued, moved = await self._keep_up(about(), MOST_COUNTED if counts_backlog else 0)
            self._kept_at = now
        if rescued or moved:
            self._chunk = chunk_after(self._chunk, time.monotonic() - now)
        # More may be left, so recover again after the next poll; so it is if a hint came during the call.
        self._done_at = None if rescued or moved or hints != self._hints else self._kept_at
        self._note(rescued, moved)

    async def _keep_up(self, about: dict[str, Any], most: int) -> tuple[int, int]:
        """Do everything that upkeep does, and return how many steps were rescued and moved."""
        upkeep = calls.measured_upkeep(self._options.identity, about=about, batch=self._chunk, most=most)
        (result,) = await self._connection.make(upkeep)
        self._meters.rescued.inc(result.rescued)
        self._meters.waiting(result.backlog)
        for kind, steps in result.exhausted.items():
            self._meters.exhausted.labels(kind).inc(steps)
        return result.rescued, result.moved

    def _note(self, rescued: int, moved: int) -> None:
        """Log what was rescued, and once per series of chunks what was moved."""
        total = self._moved + moved
        if rescued or (total and not moved):
            self._log.info("worker.recovered", rescued=rescued, moved=total)
            total = 0
        self._moved = total


async def _send(connection: WorkerConnection, call: Call[Any]) -> list[Any]:
    try:
        return await connection.make(call)
    except (RefusedError, PermissionMissing) as error:
        what = f"the database rejected {_named(call)}: {error.what}"
        named = type(error)(what, where=error.where, next=error.next)
        named.__cause__ = error
        raise RegistrationRefused(named) from error


def _named(call: Call[Any]) -> str:
    arguments = call.arguments
    match call.function:
        case "define_kind":
            return f"the definition of {_short(arguments['kind'])}"
        case "define_policy":
            return f"the retry policy {_short(arguments['policy'])}"
        case "define_limit":
            return f"the limit {_short(arguments['name'])}"
        case "define_schedule":
            return f"the schedule {_short(arguments['name'])}"
        case _ if {"name", "version"} <= arguments.keys():
            definition = f"{_short(arguments['name'])}, version {_short(arguments['version'])}"
            return f"the definition of {call.schema} {definition}"
        case _:
            return f"the worker {_short(arguments['worker'])}"


def _short(name: str) -> str:
    return repr(name if len(name) <= SHOWN else f"{name[:SHOWN]}…")
