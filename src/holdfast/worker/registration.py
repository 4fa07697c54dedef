"""What a worker sends when it has connected: its definitions, and who it is. A refusal ends the worker."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from holdfast.connections.worker import Link
from holdfast.errors import HoldfastError, PermissionMissing, RefusedError
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.worker.options import Options, strangers
from holdfast.worker.states import State

SHOWN = 80  # characters of a name that is refused


class RegistrationRefused(Exception):
    """The database will not have a definition, now or later; `error` says which, and is what the worker ends with."""

    def __init__(self, error: HoldfastError) -> None:
        super().__init__(str(error))
        self.error = error


async def register(
    link: Link, definitions: Iterable[Call[None]], options: Options, kinds: list[str], described: dict[str, Any]
) -> list[str]:
    """Send the definitions and enlist the worker; return live workers of the same name that are not of its crew."""
    worker, queues, tenants = options.identity, options.queues, options.tenants
    for call in (*definitions, calls.enlist_worker(worker, queues, kinds=kinds, tenants=tenants, about=described)):
        await _send(link, call)
    return strangers(worker, await _send(link, calls.namesakes(worker)))


def about(options: Options, state: State, in_flight: int) -> dict[str, Any]:
    """Describe the worker for those who read its row."""
    return {
        "state": state,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "version": version("holdfast"),
        "concurrency": options.concurrency,
        "in_flight": in_flight,
    }


async def _send(link: Link, call: Call[Any]) -> list[Any]:
    try:
        return await link.make(call)
    except (RefusedError, PermissionMissing) as error:
        named = type(error)(f"the database refused {_named(call)}: {error}")
        named.__cause__ = error
        raise RegistrationRefused(named) from error


def _named(call: Call[Any]) -> str:
    given = call.arguments
    match call.function:
        case "define_kind":
            return f"the definition of {_short(given['kind'])}"
        case "define_policy":
            return f"the retry policy {_short(given['policy'])}"
        case "define_flow":
            return f"the definition of flow {_short(given['name'])}, version {_short(given['version'])}"
        case _:
            return f"the worker {_short(given['worker'])}"


def _short(name: str) -> str:
    return repr(name if len(name) <= SHOWN else f"{name[:SHOWN]}…")
