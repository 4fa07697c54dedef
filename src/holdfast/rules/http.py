"""A shop over HTTP as a channel, by a small JSON protocol, which an adapter can speak for any shop.

docs/reference/channel.openapi.yaml describes the protocol.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit
from uuid import uuid4

from holdfast.connectors import http
from holdfast.env import Env
from holdfast.errors import BadDefinition, OutsideError, Rejected, SecretMissing, Unavailable
from holdfast.rules.channel import ChannelCall, Health, Write, Wrote, price_text
from holdfast.rules.language.evaluate import Refusal
from holdfast.rules.language.items import Item, ItemRefused, amount, check_id, item_from
from holdfast.rules.language.money import Price, decimal

PAGE = 1000  # items per request of the list, and ids per read
STALE, MISSING = "409", "404"
ASK_AGAIN = 60.0  # seconds after which the shop is asked again whether it compares
HEALTH_TIMEOUT = timedelta(seconds=5)


class HttpChannel:
    """A shop at an address: `HttpChannel("https://shop.example", token=Env("SHOP_TOKEN"))`.

    `token` is sent as a bearer token, `headers` with every request; secrets are `Env` values. `page` is how many items
    a list or a read asks for at once. The shop says in `/health` whether its writes compare.
    """

    kind = "http"
    in_transaction = False

    def __init__(
        self,
        url: str,
        *,
        token: Env | None = None,
        headers: Mapping[str, str | Env] | None = None,
        page: int = PAGE,
    ) -> None:
        parts = _address(url)
        if parts.username or parts.password:
            raise BadDefinition("url must have no credentials", where="url", next='use token=Env("SHOP_TOKEN")')
        if token is not None and not isinstance(token, Env):
            raise BadDefinition("token must name an environment variable", where="token", next='Env("SHOP_TOKEN")')
        if type(page) is not int or not 1 <= page <= 10 * PAGE:
            raise BadDefinition(f"page must be 1 to {10 * PAGE}, got {page!r:.40}", where="page", next="use 1000")
        _check_headers(headers)
        self.url = url.rstrip("/")
        self._headers: dict[str, str | Env] = dict(headers or {})
        self._token = token
        self._page = page
        self._session = http.Session()
        self._compares: bool | None = None
        self._asked_at = 0.0

    @property
    def compares(self) -> bool:
        """Whether the shop compares with `expected` itself, as it says in `/health`; asked once a minute."""
        if self._compares is None or time.monotonic() - self._asked_at > ASK_AGAIN:
            try:
                self._ask_health(ChannelCall(HEALTH_TIMEOUT))
            except OutsideError as error:
                if self._compares is None:
                    error.is_sent = False  # nothing was written
                    raise
        return bool(self._compares)

    def about(self) -> Mapping[str, Any]:
        """Return its address and the names of its secrets."""
        secrets = [each.name for each in (self._token, *self._headers.values()) if isinstance(each, Env)]
        return {"url": self.url, "secrets": secrets}

    def items(self, call: ChannelCall) -> Iterator[Item | Refusal]:
        """List all items, page by page."""
        after = ""
        while True:
            more = f"&after={quote(after, safe='')}" if after else ""
            answer = self._call("GET", f"/items?limit={self._page}{more}", call)
            for row in _listed(answer, "items", list):
                yield _item(row)
            following = answer.get("next")
            if not following:
                return
            if not isinstance(following, str) or following == after:
                raise _unreadable(self.url, f"`next` must lead to another page, got {following!r:.60}")
            after = following
            call.before_page()

    def read(self, ids: Sequence[str], call: ChannelCall) -> Mapping[str, Price | Refusal]:
        """Read the prices of items."""
        found: dict[str, Price | Refusal] = {}
        for first in range(0, len(ids), self._page):
            wanted = list(ids[first : first + self._page])
            answer = self._call("POST", "/prices:read", call, {"ids": wanted})
            prices = _listed(answer, "prices", dict)
            missing = next((item_id for item_id in wanted if item_id not in prices), None)
            if missing is not None:
                raise _unreadable(self.url, f"it has no entry for item {missing:.60}")
            found |= {each: _price(each, prices[each]) for each in wanted if prices[each] is not None}
        return found

    def write(self, writes: Sequence[Write], call: ChannelCall) -> Sequence[Wrote]:
        """Write prices with one call. Items that the response omits are unknown; items that it adds are ignored."""
        answer = self._call("POST", "/prices", call, {"changes": [_change(write) for write in writes]})
        results = {each["id"]: each.get("error") for each in _listed(answer, "results", list)
                   if isinstance(each, dict) and isinstance(each.get("id"), str)}  # fmt: skip
        return [
            _wrote(write, results[write.item_id]) if write.item_id in results
            else Wrote("unknown", message="the shop's response does not mention the item")
            for write in writes
        ]  # fmt: skip

    def health(self) -> Health:
        """Ask the shop."""
        try:
            answer = self._ask_health(ChannelCall(HEALTH_TIMEOUT))
        except OutsideError as error:
            return Health(ok=False, detail=str(error))
        return Health(answer.get("ok") is True, str(answer.get("detail", "")))

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    def _ask_health(self, call: ChannelCall) -> dict[str, Any]:
        answer = self._call("GET", "/health", call)
        self._compares, self._asked_at = answer.get("compares") is True, time.monotonic()
        return answer

    def _call(self, method: str, path: str, call: ChannelCall, body: Any = None) -> dict[str, Any]:
        answer = self._session.call(
            method, f"{self.url}{path}", json=body, headers=self._sent(call), timeout=call.timeout,
            key=call.key if path == "/prices" else None,
        )  # fmt: skip
        try:
            whole = json.loads(answer.body, parse_float=Decimal)
        except (ValueError, RecursionError):
            raise _unreadable(self.url, "it is not JSON") from None
        if not isinstance(whole, dict):
            raise _unreadable(self.url, "it is not an object")
        return whole

    def _sent(self, call: ChannelCall) -> dict[str, str]:
        try:
            sent = {name: each.read() if isinstance(each, Env) else each for name, each in self._headers.items()}
            if self._token is not None:
                sent["Authorization"] = f"Bearer {self._token.read()}"
        except SecretMissing as error:
            raise Rejected(error.what, next=error.next, code="CONFIGURATION", is_sent=False) from None
        return {**sent, "X-Correlation-Id": call.correlation_id or str(uuid4())}


def _address(url: Any) -> SplitResult:
    """Split an address; raise BadDefinition for anything that requests cannot be sent to."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        is_fit = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port
        parts, is_fit = SplitResult("", "", "", "", ""), False
    if not is_fit or parts.query or parts.fragment:
        raise BadDefinition(f"url must be an address such as https://shop.example, got {parts.scheme}://…",
                            where="url", next="write http or https, the host, a port if it has one")  # fmt: skip
    return parts


def _check_headers(headers: Any) -> None:
    if headers is not None and not isinstance(headers, Mapping):
        raise BadDefinition(f"headers must be a mapping, got a {type(headers).__name__}", where="headers",
                            next='use {"X-Shop": "eu"}')  # fmt: skip
    for name, value in (headers or {}).items():
        if not isinstance(name, str) or not isinstance(value, str | Env):
            raise BadDefinition(f"header {name!r:.40} must be text or an Env, got a {type(value).__name__}",
                                where="headers", next=f'use {{"{name!s:.40}": Env("SHOP_KEY")}}')  # fmt: skip


def _unreadable(url: str, reason: str) -> Unavailable:
    return Unavailable(f"the response of {urlsplit(url).hostname} cannot be used: {reason}", code="UNREADABLE",
                       next="check the adapter in front of the shop")  # fmt: skip


def _listed(answer: Mapping[str, Any], name: str, sort: type) -> Any:
    value = answer.get(name)
    if not isinstance(value, sort):
        raise Unavailable(f"the shop's response must have {name}, got {str(answer)[:60]!r}", code="UNREADABLE")
    return value


def _item(row: Any) -> Item | Refusal:
    try:
        if not isinstance(row, dict):
            raise ItemRefused(f"an item must be an object, got {row!r:.60}", reason="item_invalid", item_id="?")
        name = check_id(row.get("id"))
        for field in ("price", "compareAt", "cost"):
            _check_text(row.get(field), field, name)
        return item_from(row)
    except ItemRefused as error:
        return Refusal(error.item_id, error.reason, error.what)


def _price(item_id: str, shown: Any) -> Price | Refusal:
    try:
        currency = shown["currency"]
        for field in ("price", "compareAt"):
            _check_text(shown.get(field), field, item_id)
        units, compare_at = shown["price"], shown.get("compareAt")
        return Price(
            None if units is None else amount(units, currency, "price", item_id),
            None if compare_at is None else amount(compare_at, currency, "compareAt", item_id),
            currency,
        )
    except ItemRefused as error:
        return Refusal(item_id, error.reason, error.what)
    except (KeyError, TypeError, AttributeError):
        return Refusal(item_id, "item_invalid", f"a price must have price and currency, got {shown!r:.80}")


def _check_text(value: Any, field: str, item_id: str) -> None:
    """Refuse a number: a shop that computes with floats sends prices that are not exact."""
    if value is not None and not isinstance(value, str):
        raise ItemRefused(f"{field} must be text such as \"1.99\", got {value!r:.40}", reason="not_text",
                          item_id=item_id, where=field)  # fmt: skip


def _change(write: Write) -> dict[str, Any]:
    return {"id": write.item_id, **_fields(write, write.after),
            "expected": {**_fields(write, write.before), "currency": write.before.currency}}  # fmt: skip


def _fields(write: Write, price: Price) -> dict[str, Any]:
    """Return the parts of a price that the rule writes."""
    parts: dict[str, Any] = {}
    if write.writes_price:
        parts["price"] = _text(price.unit_amount, price.currency)
    if write.writes_compare_at:
        parts["compareAt"] = _text(price.compare_at, price.currency)
    return parts


def _text(units: int | None, currency: str) -> str | None:
    return None if units is None else format(decimal(units, currency), "f")


def _wrote(write: Write, error: Any) -> Wrote:
    if error is None:
        return Wrote("written")
    fields = error if isinstance(error, dict) else {"code": error}
    code, retryable = str(fields.get("code")), fields.get("retryable")
    message = str(fields.get("message") or f"the shop refused item {write.item_id} with code {code:.60}")[:400]
    if code == MISSING:
        return Wrote("not_found", error_class="NOT_FOUND", message=message)
    if code != STALE:
        return Wrote("failed", message=message, code=code, retryable=retryable if isinstance(retryable, bool) else None)
    price = _price(write.item_id, fields.get("found"))
    if isinstance(price, Refusal):
        return Wrote("stale", {"message": price.message}, "VALIDATION", message)
    if write.shows(price, write.after):
        return Wrote("found")
    return Wrote("stale", price_text(price), "VALIDATION", message)
