"""A simulated shop: an ASGI app that speaks the protocol of the HTTP channel, and fails on request.

docs/reference/channel.openapi.yaml describes the protocol. `/_sim` shows and changes the faults.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate
from socket import SO_LINGER, SOL_SOCKET
from typing import Any
from urllib.parse import parse_qs

from holdfast.errors import BadInput
from holdfast.sim.catalogue import Catalogue, ShopLog
from holdfast.sim.faults import Fault, Faults, fault_of

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
HUGE = 100 * 1024 * 1024
HOUR = 3600
PLACES = {("GET", "/items"): "list", ("POST", "/prices:read"): "read", ("POST", "/prices"): "write",
          ("GET", "/health"): "health"}  # fmt: skip
BEFORE = {"rate_limited": 429, "busy": 503, "error_before": 500, "unauthorized": 401, "rejected": 422, "redirect": 302}


@dataclass
class Call:
    """One request, and what becomes of it."""

    number: int
    place: str
    query: dict[str, str]
    body: dict[str, Any]
    fault: Fault | None

    @property
    def ids(self) -> list[str]:
        """The items that it names."""
        return _ids(self.place, self.body)

    @property
    def trouble(self) -> str:
        """The name of its fault, or nothing."""
        return "" if self.fault is None else self.fault.name


class Shop:
    """The app. `compares=False` ignores `expected`, `rate` bounds the calls per second with 429."""

    def __init__(
        self, items: int, log: ShopLog, *, faults: Faults | None = None, compares: bool = True,
        rate: float | None = None, token: str | None = None,
    ) -> None:  # fmt: skip
        self.faults = faults or Faults()
        self.calls = 0
        self._catalogue = Catalogue(items, log)
        self._log = log
        self._compares = compares
        self._rate = rate
        self._token = token
        self._tokens = rate or 0.0
        self._filled_at = time.monotonic()
        self._answers: dict[str, bytes] = {}  # by Idempotency-Key, of writes without an error
        self._later: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        body = await _body(receive)
        if scope["path"].startswith("/_sim"):
            await self._control(scope, body, send)
            return
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        place = PLACES.get((scope["method"], scope["path"]))
        try:
            document = json.loads(body) if body else {}
        except ValueError:
            document = None
        if place is None or not isinstance(document, dict):
            await _answer(send, 404 if place is None else 400, _error("no_such_call" if place is None else "not_json"))
            return
        query = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode()).items()}
        self.calls += 1
        call = Call(self.calls, place, query, document, self.faults.of_call(place, _ids(place, document)))
        self._log.write({
            "entry": "call", "call": call.number, "place": place, "key": headers.get("idempotency-key"),
            "correlation": headers.get("x-correlation-id"), "fault": call.trouble or None, "ids": call.ids,
        })  # fmt: skip
        await self._judged(call, headers, send)

    async def _judged(self, call: Call, headers: dict[str, str], send: Send) -> None:
        fault = call.fault
        if self._token is not None and headers.get("authorization") != f"Bearer {self._token}":
            await _answer(send, 401, _error("unauthorized"))
        elif not self._has_token():
            self._log.write({"entry": "throttled", "call": call.number, "place": call.place})
            await _answer(send, 429, _error("THROTTLED"), {"retry-after": "1"})
        elif fault is not None and call.trouble in BEFORE:
            await _answer(send, fault.status or BEFORE[call.trouble], _error(call.trouble), _headers(fault))
        elif call.trouble in {"reset", "lost_before", "late"}:
            if fault is not None and call.trouble == "late":
                self._do_later(call, 1.0 if fault.seconds is None else fault.seconds)
            _drop(send, is_reset=call.trouble == "reset")
        else:
            await self._answered(call, headers, send)

    async def _answered(self, call: Call, headers: dict[str, str], send: Send) -> None:
        fault = call.fault
        payload = self._done(call, headers.get("idempotency-key"))
        more: dict[str, str] = {}
        status = 200
        match call.trouble:
            case "slow":
                await asyncio.sleep(1.0 if fault is None or fault.seconds is None else fault.seconds)
            case "lost_after":
                _drop(send, is_reset=False)
                return
            case "error_after":
                status, payload = (fault.status if fault else None) or 500, json.dumps(_error("error_after")).encode()
            case "not_json":
                payload = b"<html>it worked</html>"
            case "huge":
                payload = b" " * HUGE
            case "cut_off":
                await _answer(send, 200, payload[: len(payload) // 2], {"content-length": str(len(payload))})
                return
            case "clock_off":
                shift = HOUR if fault is None or fault.seconds is None else fault.seconds
                more["date"] = formatdate(time.time() + shift, usegmt=True)
        await _answer(send, status, payload, more)

    def _done(self, call: Call, key: str | None) -> bytes:
        """Do what a call asks for, and return the answer."""
        match call.place:
            case "list":
                goods, following = self._catalogue.page(call.query.get("after", ""), int(call.query.get("limit", 1000)))
                answer: dict[str, Any] = {"items": [each.listed() for each in goods], "next": following}
            case "read":
                answer = {"prices": self._catalogue.read(call.ids)}
            case "health":
                answer = {"ok": True, "compares": self._compares, "detail": f"{len(self._catalogue)} items"}
            case _:
                if key is not None and key in self._answers:
                    return self._answers[key]
                answer = {"results": self._written(call)}
                if key is not None and not any("error" in each for each in answer["results"]):
                    self._answers[key] = json.dumps(answer).encode()
        return json.dumps(_distorted(answer, call)).encode()

    def _written(self, call: Call) -> list[dict[str, Any]]:
        changes = call.body["changes"]
        for item_id in call.ids:
            if self.faults.of_item("edited", item_id) is not None:
                self._catalogue.raise_price(item_id)
        refused = {each: fault for each in call.ids if (fault := self.faults.of_item("refused", each)) is not None}
        taken = [change for change in changes if change["id"] not in refused]
        results = self._catalogue.write(taken, call=call.number, compares=self._compares)
        return [*results, *({"id": each, "error": {"code": fault.status or 422}} for each, fault in refused.items())]

    def _do_later(self, call: Call, seconds: float) -> None:
        async def later() -> None:
            await asyncio.sleep(seconds)
            self._done(call, None)

        task = asyncio.get_running_loop().create_task(later())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    def _has_token(self) -> bool:
        if self._rate is None:
            return True
        now = time.monotonic()
        self._tokens = min(max(self._rate, 1.0), self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    async def _control(self, scope: dict[str, Any], body: bytes, send: Send) -> None:
        try:
            document = json.loads(body) if body else {}
            match scope["method"], scope["path"]:
                case "GET", "/_sim":
                    pass
                case "PUT", "/_sim/faults":
                    self.faults = Faults(fault_of(each) for each in document)
                case "POST", "/_sim/edit":
                    if not self._catalogue.edit(document["id"], document):
                        raise BadInput(f"there is no item {document['id']}", next="use an id of the catalogue")
                case _:
                    known = "GET /_sim, PUT /_sim/faults or POST /_sim/edit"
                    raise BadInput(f"there is no {scope['path']:.60}", next=f"use {known}")
        except (BadInput, KeyError, TypeError, ValueError) as error:
            await _answer(send, 400, _error(str(error)))
            return
        shown = {"calls": self.calls, "values": self._catalogue.values, "late": len(self._later),
                 "log": str(self._log.path), "faults": [fault.shown() for fault in self.faults.all]}  # fmt: skip
        await _answer(send, 200, json.dumps(shown).encode())


def _ids(place: str, body: dict[str, Any]) -> list[str]:
    if place == "write":
        return [change["id"] for change in body.get("changes", ())]
    return list(body.get("ids", ()))


def _distorted(answer: dict[str, Any], call: Call) -> dict[str, Any]:
    """Return a wrong answer, if the call's fault is one."""
    results = answer.get("results")
    match call.trouble:
        case "short" if results:
            return {"results": results[:-1]}
        case "foreign" if results:
            return {"results": [*results[:-1], {"id": "nobody's"}]}
        case "other_currency" | "number_price" as name:
            for each in [*answer.get("items", ()), *answer.get("prices", {}).values()]:
                if each is not None:
                    each.update({"currency": "USD"} if name == "other_currency" else {"price": float(each["price"])})
    return answer


def _headers(fault: Fault) -> dict[str, str]:
    if fault.name == "redirect":
        return {"location": "/elsewhere"}
    wait = fault.retry_after
    if wait is None:
        return {}
    if wait.startswith("date"):
        wait = formatdate(time.time() + float(wait.removeprefix("date") or 0), usegmt=True)
    return {"retry-after": wait}


def _error(code: str) -> dict[str, Any]:
    return {"error": {"code": code}}


def _drop(send: Send, *, is_reset: bool) -> None:
    """Close the connection without an answer. ASGI has no message for this, so the server's transport is used."""
    transport = send.__self__.transport  # type: ignore[attr-defined]
    if is_reset:
        transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def _answer(
    send: Send, status: int, payload: bytes | dict[str, Any], headers: dict[str, str] | None = None
) -> None:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    shown = {"content-type": "application/json", "date": formatdate(usegmt=True), "content-length": str(len(body)),
             **(headers or {})}  # fmt: skip
    await send({"type": "http.response.start", "status": status,
                "headers": [(name.encode(), value.encode()) for name, value in shown.items()]})  # fmt: skip
    if shown["content-length"] != str(len(body)):
        await send({"type": "http.response.body", "body": body, "more_body": True})
        _drop(send, is_reset=False)
        return
    await send({"type": "http.response.body", "body": body})


async def _body(receive: Receive) -> bytes:
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body
