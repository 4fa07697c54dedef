"""HTTP calls to outside systems, for handlers: a failure becomes an error that says whether the step retries.

    http.call("POST", "https://pay.example/charges", json={"order": 41}, key="charge:41").json()

An error names only the method, host and path of a request: queries, headers and bodies may be secrets.
"""

from __future__ import annotations

import json as text_as_json
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
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
LIMITED = 429
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
            return _judged(place, client.request(method, url, **options))
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
            return _judged(place, await client.request(method, url, **options))
    except (httpx2.InvalidURL, httpx2.RequestError) as error:
        _refuse(place, error)


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


def _judged(place: str, answer: httpx2.Response) -> Response:
    status = answer.status_code
    message = f"{place} answered {status}"
    if answer.is_success or status == NOT_MODIFIED:
        return Response(status, answer.headers, answer.content)
    about: dict[str, Any] = {"status": status, "code": _code(answer), "headers": answer.headers}
    if status in (LIMITED, BUSY):
        # Relative to the server's clock if it sends it, because its date means little by ours.
        now = http_date(answer.headers.get("Date")) or datetime.now(UTC)
        sort = RateLimited if status == LIMITED else Unavailable
        raise sort(message, retry_after=retry_after(answer.headers.get("Retry-After"), now), **about)
    if answer.is_server_error or status in PASSING:
        raise Unavailable(message, **about)
    if answer.is_redirect:
        raise Rejected(f"{message}, a redirect", next="call the address that it redirects to", **about)
    raise Rejected(message, **about)


def _code(answer: httpx2.Response) -> str | None:
    """Read the error code from a JSON body: the field `code`, or `code` inside `error`."""
    try:
        body = text_as_json.loads(answer.content)
    except ValueError:
        return None
    inner = body.get("error") if isinstance(body, dict) else None
    code = inner.get("code") if isinstance(inner, dict) else body.get("code") if isinstance(body, dict) else None
    return str(code) if isinstance(code, (str, int)) else None


def _refuse(place: str, error: httpx2.InvalidURL | httpx2.RequestError) -> NoReturn:
    """Raise our error for a failed request, without the original text if it may quote secrets."""
    sort = type(error).__name__
    match error:
        case httpx2.NetworkError() | httpx2.TimeoutException():
            raise Unavailable(f"{place}: {sort}: {error}") from None
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError():
            raise Rejected(f"{place}: {sort}", next="correct the address or the headers") from None
    raise Unavailable(f"{place}: {sort}") from None


def _place(method: str, url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Rejected(f"{method}: the address is not valid", next="correct the address") from None
    return f"{method} {parts.hostname}{parts.path}"
