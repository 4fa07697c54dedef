"""HTTP calls to outside systems, for handlers: a failure becomes an error that says whether the step retries.

    http.call("POST", "https://pay.example/charges", json={"order": 41}, key="charge:41").json()

An error names only the method, host and path of a request: queries, headers and bodies may be secrets.
"""

from __future__ import annotations

import json as text_as_json
import logging
import ssl
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, NoReturn
from urllib.parse import urlsplit

from holdfast.connectors.retry_after import http_date, retry_after
from holdfast.durations import Duration, duration
from holdfast.errors import RateLimited, Rejected, Unavailable

try:
    import httpx2
except ImportError as error:
    raise ImportError("holdfast.connectors.http needs httpx2; pip install 'holdfast-pg[http]'") from error

TIMEOUT = timedelta(seconds=30)
LONGEST_BODY = 32 * 1024 * 1024  # bytes that a Session reads of an answer
LIMITED = 429
THROTTLED = {"429", "THROTTLED"}  # codes of an error that mean the same as its status 429
BUSY = 503
PASSING = {408, 425}  # request timeout, too early: worth a retry
NOT_MODIFIED = 304
for library in ("httpx2", "httpcore2"):  # at DEBUG and INFO they log headers and addresses
    logging.getLogger(library).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Response:
    """A server's answer; header names are case-insensitive."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def json(self) -> Any:
        """Read the body as JSON."""
        return text_as_json.loads(self.body)


def call(
    method: str,
    url: str,
    *,
    json: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: Duration = TIMEOUT,
    key: str | None = None,
) -> Response:
    """Make a request, and return the answer if it is a success.

    429 raises RateLimited and 503 raises Unavailable, with the server's Retry-After. Other 5xx, 408, 425 and a broken
    connection raise Unavailable. Everything else raises Rejected. Each carries the response's status, code and
    headers. Redirects are not followed. `key` is sent as Idempotency-Key: use one that is the same for each attempt
    of a step.
    """
    place, options = _place(method, url), _options(json, headers, key)
    try:
        # One client per call, so that steps share no cookies and no half-closed connections.
        with httpx2.Client(verify=_certificates(), timeout=_seconds(timeout)) as client:
            answer = client.request(method, url, **options)
            return _judged(place, answer, answer.content)
    except (httpx2.InvalidURL, httpx2.RequestError) as error:
        _refuse(place, error)


async def acall(
    method: str,
    url: str,
    *,
    json: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: Duration = TIMEOUT,
    key: str | None = None,
) -> Response:
    """Make a request, as `call` does."""
    place, options = _place(method, url), _options(json, headers, key)
    try:
        async with httpx2.AsyncClient(verify=_certificates(), timeout=_seconds(timeout)) as client:
            answer = await client.request(method, url, **options)
            return _judged(place, answer, answer.content)
    except (httpx2.InvalidURL, httpx2.RequestError) as error:
        _refuse(place, error)


class Session:
    """Calls to one system over connections that are kept open. It may be used from several threads at once.

    It keeps no cookies. `longest` bounds an answer, and a timeout bounds a call as a whole, with all of its phases.
    """

    def __init__(self, *, longest: int = LONGEST_BODY) -> None:
        refuses_all = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
        self._client = httpx2.Client(verify=_certificates(), cookies=refuses_all)
        self._longest = longest
        weakref.finalize(self, self._client.close)  # a session that nobody closed leaves no connections behind

    def call(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: Duration = TIMEOUT,
        key: str | None = None,
    ) -> Response:
        """Make a request, as the function `call` does."""
        place, options, seconds = _place(method, url), _options(json, headers, key), _seconds(timeout)
        until = time.monotonic() + seconds
        try:
            with self._client.stream(method, url, timeout=seconds, **options) as answer:
                return _judged(place, answer, self._body(place, answer, until))
        except (httpx2.InvalidURL, httpx2.RequestError) as error:
            _refuse(place, error)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _body(self, place: str, answer: httpx2.Response, until: float) -> bytes:
        body = bytearray()
        for part in answer.iter_bytes():
            body += part
            if len(body) > self._longest:
                raise Unavailable(f"{place}: the answer is longer than {self._longest} bytes", code="TOO_LONG",
                                  status=answer.status_code)  # fmt: skip
            if time.monotonic() > until:
                raise Unavailable(f"{place}: the answer took too long", code="TIMEOUT", status=answer.status_code)
        return bytes(body)


@lru_cache
def _certificates() -> ssl.SSLContext:
    """Read the machine's certificates once, because it takes longer than most calls."""
    return httpx2.create_ssl_context()


def _options(json: Any, headers: Mapping[str, str] | None, key: str | None) -> dict[str, Any]:
    sent = dict(headers or {})
    if key is not None:
        sent["Idempotency-Key"] = key
    return {"headers": sent} if json is None else {"headers": sent, "json": json}


def _seconds(timeout: Duration) -> float:
    return duration(timeout, "timeout").total_seconds()


def _judged(place: str, answer: httpx2.Response, body: bytes) -> Response:
    status = answer.status_code
    message = f"{place} answered {status}"
    if answer.is_success or status == NOT_MODIFIED:
        return Response(status, answer.headers, body)
    code, retryable = _said(body)
    about: dict[str, Any] = {"status": status, "code": code, "headers": answer.headers, "retryable": retryable}
    is_limited = status == LIMITED or code in THROTTLED
    if is_limited or status == BUSY:
        # Relative to the server's clock if it sends it, because its date means little by ours.
        now = http_date(answer.headers.get("Date")) or datetime.now(UTC)
        sort = RateLimited if is_limited else Unavailable
        raise sort(message, retry_after=retry_after(answer.headers.get("Retry-After"), now), **about)
    if answer.is_server_error or status in PASSING:
        raise Unavailable(message, **about)
    if answer.is_redirect:
        raise Rejected(f"{message}, a redirect", next="call the address that it redirects to", **about)
    raise Rejected(message, **about)


def _said(body: bytes) -> tuple[str | None, bool | None]:
    """Read an error's code and `retryable` from a JSON body, at its top or inside `error`."""
    try:
        whole = text_as_json.loads(body)
    except ValueError:
        return None, None
    inner = whole.get("error") if isinstance(whole, dict) else None
    fields = inner if isinstance(inner, dict) else whole if isinstance(whole, dict) else {}
    code, retryable = fields.get("code"), fields.get("retryable")
    return str(code) if isinstance(code, (str, int)) else None, retryable if isinstance(retryable, bool) else None


def _refuse(place: str, error: httpx2.InvalidURL | httpx2.RequestError) -> NoReturn:
    """Raise our error for a failed request, without the original text if it may quote secrets."""
    sort = type(error).__name__
    match error:
        case httpx2.NetworkError() | httpx2.TimeoutException():
            code = "TIMEOUT" if isinstance(error, httpx2.TimeoutException) else "NETWORK"
            is_sent = not isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout))
            raise Unavailable(f"{place}: {sort}: {error}", code=code, is_sent=is_sent) from None
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError():
            next_ = "correct the address or the headers"
            raise Rejected(f"{place}: {sort}", next=next_, code="CONFIGURATION", is_sent=False) from None
    raise Unavailable(f"{place}: {sort}", code="NETWORK") from None


def _place(method: str, url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Rejected(f"{method}: the address is not valid", next="correct the address",
                       code="CONFIGURATION", is_sent=False) from None  # fmt: skip
    return f"{method} {parts.hostname}{parts.path}"
