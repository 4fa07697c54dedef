"""Receives webhooks: an ASGI app without a framework, which verifies, queues the runs of a push, and answers.

GitHub waits ten seconds for an answer and does not repeat a delivery on its own. So the app stores the runs and the
delivery in one transaction before it answers, and a repeated delivery gets the same runs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Protocol

from holdfast import log, masking
from holdfast.connections.caller.types import AsyncDriver
from holdfast.env import Env
from holdfast.errors import DatabaseError, HoldfastError, InputRefused, RefusedError
from holdfast.kernel import db
from holdfast.kernel.call import Call
from holdfast.kernel.finite import jsonb
from holdfast.ops.push import Delivery, Nothing, Notice, Push, is_signed, read_delivery, read_notice

LARGEST = 25 * 2**20  # bytes: what GitHub sends at most
BODY_WITHIN = 10.0  # seconds
STORED_WITHIN = 8.0  # seconds: GitHub waits for ten
PATHS = ("", "/", "/webhook")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class AsyncConnections(Protocol):
    """Lends connections, as an app's engine does."""

    def aconnection(self) -> AbstractAsyncContextManager[AsyncDriver]: ...


@dataclass(frozen=True, slots=True)
class PushedRun:
    """A run of a push; `is_new` is False if the delivery was there before."""

    run_id: str
    status: str
    queued_at: datetime
    project_id: str
    env_id: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """A response; None is an empty body."""

    status: HTTPStatus
    body: dict[str, Any] | None = None


class TooMuch(Exception):
    """The body is larger than allowed."""


class Gone(Exception):
    """The client closed the connection before it had sent its body."""


class Receiver:
    """The ASGI app. It reads its secrets for each request, so that a file with a secret can be replaced."""

    def __init__(
        self,
        connections: AsyncConnections,
        secrets: Iterable[Env],
        *,
        tenant: str = "default",
        body_within: float = BODY_WITHIN,
        stored_within: float = STORED_WITHIN,
    ) -> None:
        self._connections = connections
        self._secrets = tuple(secrets)
        self._tenant = tenant
        self._body_within = body_within
        self._stored_within = stored_within
        self._log = log.get("webhook")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the start and end of the server."""
        match scope["type"]:
            case "lifespan":
                await _live(receive, send)
            case "http":
                try:
                    await _respond(send, await self._answer(scope, receive))
                except Gone:
                    self._log.info("webhook.client_gone")
            case _:
                await send({"type": "websocket.close"})

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        path = str(scope["path"]).removeprefix(str(scope.get("root_path") or ""))
        if path == "/healthz":
            return Answer(HTTPStatus.OK, {"status": "alive"})
        if path not in PATHS:
            return Answer(HTTPStatus.NOT_FOUND)
        if scope["method"] != "POST":
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            body = await _body(receive, headers.get("content-length"), self._body_within)
        except TooMuch:
            return Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        except TimeoutError:
            return Answer(HTTPStatus.REQUEST_TIMEOUT)
        return await self._take(headers, body)

    async def _take(self, headers: dict[str, str], body: bytes) -> Answer:
        try:
            secrets = [secret for each in self._secrets if (secret := each.find()) is not None]
            if not is_signed(body, headers.get("x-hub-signature-256"), secrets):
                self._log.warning("webhook.refused", why="its signature is missing or wrong")
                return Answer(HTTPStatus.UNAUTHORIZED)
            delivery = read_delivery(headers)
            notice = read_notice(delivery, headers.get("content-type", ""), body)
            async with asyncio.timeout(self._stored_within):
                runs = await self._store(delivery, notice)
        except (InputRefused, RefusedError) as error:
            self._log.warning("webhook.refused", why=error.what)
            return Answer(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": error.what, "where": error.where})
        except (DatabaseError, TimeoutError) as error:
            self._log.error("webhook.not_stored", error=str(error) or "the database did not answer in time")
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "not stored: redeliver it"})
        except HoldfastError as error:
            self._log.error("webhook.failed", error=str(error))
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "not stored: redeliver it"})
        answer = answer_for(notice, runs)
        self._log.info(
            "webhook.received",
            source=delivery.source,
            event_name=delivery.event,
            delivery=delivery.number,
            status=(answer.body or {}).get("status"),
            runs=[run.run_id for run in runs],
        )
        return answer

    async def _store(self, delivery: Delivery, notice: Notice) -> list[PushedRun]:
        """Queue the runs and record the delivery, both or neither."""
        async with self._connections.aconnection() as connection, connection.transaction():
            runs: list[PushedRun] = []
            if isinstance(notice, Push):
                runs = await db.arun(connection, queue_push(delivery, notice, self._tenant))  # type: ignore[arg-type]
            await db.arun(connection, record_delivery(delivery, notice, runs, self._tenant))  # type: ignore[arg-type]
        return runs


def answer_for(notice: Notice, runs: list[PushedRun]) -> Answer:
    """Return the response: 202 for new runs and for what queues none, 200 for a ping and for a repeated delivery."""
    if isinstance(notice, Nothing):
        status = HTTPStatus.OK if notice.is_ping else HTTPStatus.ACCEPTED
        return Answer(status, {"status": "pong" if notice.is_ping else "ignored", "reason": notice.reason})
    if not runs:
        return Answer(HTTPStatus.ACCEPTED, {"status": "ignored", "reason": "no environment matches"})
    is_new = any(run.is_new for run in runs)
    first = {"run_id": runs[0].run_id, "status": runs[0].status}
    listed = [{"run_id": run.run_id, "status": run.status, "env_id": run.env_id} for run in runs]
    return Answer(HTTPStatus.ACCEPTED if is_new else HTTPStatus.OK, {**first, "runs": listed})


def queue_push(delivery: Delivery, push: Push, tenant: str) -> Call[PushedRun]:
    """Queue a run for each environment whose branch pattern matches."""
    arguments = {
        "p_repository": push.repository,
        "p_git_ref": push.git_ref,
        "p_git_sha": push.git_sha,
        "p_metadata": jsonb(masking.known.value(push.metadata)),
        "p_idempotency_key": delivery.key,
        "p_actor": push.actor,
        "p_tenant": tenant,
    }
    return Call("queue_push", PushedRun, arguments, schema="ops")


def record_delivery(delivery: Delivery, notice: Notice, runs: list[PushedRun], tenant: str) -> Call[None]:
    """Record a delivery and its outcome."""
    reason = notice.reason if isinstance(notice, Nothing) else "queued" if runs else "no environment matches"
    arguments = {
        "p_source": delivery.source,
        "p_delivery": delivery.number,
        "p_event": delivery.event,
        "p_outcome": reason,
        "p_repository": notice.repository,
        "p_git_ref": notice.git_ref,
        "p_git_sha": notice.git_sha if isinstance(notice, Push) else None,
        "p_run_ids": [run.run_id for run in runs],
        "p_tenant": tenant,
    }
    return Call("record_delivery", type(None), arguments, schema="ops")


async def _body(receive: Receive, length: str | None, within: float) -> bytes:
    """Read the body, and stop when it is too large, whatever length its header claims."""
    if length is not None and length.isdigit() and int(length[:20]) > LARGEST:
        raise TooMuch
    body = bytearray()
    async with asyncio.timeout(within):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            body += message.get("body", b"")
            if len(body) > LARGEST:
                raise TooMuch
            if not message.get("more_body", False):
                return bytes(body)


async def _respond(send: Send, answer: Answer) -> None:
    body = b"" if answer.body is None else json.dumps(answer.body).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    if answer.body is not None:
        headers.append((b"content-type", b"application/json"))
    if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append((b"allow", b"POST"))
    if answer.status in {HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.REQUEST_TIMEOUT}:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": int(answer.status), "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
