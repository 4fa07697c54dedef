"""What a channel is: an outside system whose prices rules change. `hf.rules.channel` registers one.

A channel lists items, reads prices, writes them and says whether it is healthy. It knows nothing of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from inspect import getattr_static
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from psycopg import Connection

from holdfast.durations import Duration, duration
from holdfast.errors import BadDefinition, OutsideError
from holdfast.handlers.registry import Registry
from holdfast.kernel.call import Executor, check_names
from holdfast.rules.language.evaluate import Refusal
from holdfast.rules.language.items import Item
from holdfast.rules.language.money import Price, decimal

Effect = Literal["written", "found", "stale", "not_found", "failed", "unknown"]
ErrorClass = Literal[
    "RATE_LIMIT", "TIMEOUT", "NETWORK", "SERVER_ERROR", "NOT_FOUND", "AUTHORIZATION", "VALIDATION", "UNKNOWN"
]
REQUEST_TIMEOUT = timedelta(seconds=10)
TARGET_TIMEOUT = timedelta(seconds=60)
RATE_LIMIT_POLICY = "rules.429"  # 16, 32 and 64 s
_PARTS = ("kind", "compares", "in_transaction", "about", "items", "read", "write", "health")
LONGEST_SETTLING = timedelta(minutes=4)
MOST = 10_000  # targets of one call
LONGEST_NAME = 100
KeyOf = Callable[[Item], str]  # only targets of one key share a call
_OF_APPS: WeakKeyDictionary[Registry, dict[str, Registered]] = WeakKeyDictionary()


class Write(NamedTuple):
    """A price to write, if the channel still shows `before`. Only what the rule writes is compared and written."""

    item_id: str
    before: Price
    after: Price
    writes_price: bool = True
    writes_compare_at: bool = False

    def shows(self, found: Price, wanted: Price) -> bool:
        """Return whether a price is the wanted one, as far as the rule writes it."""
        return (
            found.currency == wanted.currency
            and (not self.writes_price or found.unit_amount == wanted.unit_amount)
            and (not self.writes_compare_at or found.compare_at == wanted.compare_at)
        )


class Wrote(NamedTuple):
    """The result of one write.

    `written`: the channel showed `before` and shows `after` now. `found`: it showed `after` already. `stale`: it shows
    something else, which is in `found`. `not_found`: it has no such item. `failed`: it refused the write; the channel's
    table of errors says by `code` what that means, or else `error_class` does. `unknown`: it does not say what it did.
    `retryable`, if given, wins over both.
    """

    effect: Effect
    found: Mapping[str, Any] | None = None  # what the channel shows: price, compareAt and currency as text
    error_class: ErrorClass = "UNKNOWN"
    message: str = ""
    retryable: bool | None = None
    code: str | None = None


def _proceed() -> None:
    """Do nothing: no limit is charged."""


@dataclass(frozen=True, slots=True)
class ChannelCall:
    """What a call to a channel needs besides its items."""

    timeout: timedelta = REQUEST_TIMEOUT  # when to give up and raise Unavailable
    correlation_id: str | None = None  # send it along: it finds the call in the run's events and logs
    key: str | None = None  # the same for every automatic try of the same write: send it as Idempotency-Key
    connection: Connection[Any] | None = None  # inside the batch's transaction, for a channel `in_transaction`
    before_page: Callable[[], object] = _proceed  # `items` calls it before every request but its first


class Health(NamedTuple):
    """Whether a channel can be used, and why not."""

    ok: bool
    detail: str


@runtime_checkable
class Channel(Protocol):
    """An outside system that holds prices. Its methods may be called from several threads at once.

    They raise `RateLimited`, `Unavailable` or `Rejected` if a call fails as a whole.
    """

    @property
    def kind(self) -> str:
        """What it writes to, for people: table, http, …."""

    @property
    def compares(self) -> bool:
        """Whether `write` compares with `before` itself. If not, prices are read just before they are written."""

    @property
    def in_transaction(self) -> bool:
        """Whether `write` works in the transaction that stores the outcomes: then the effect is exactly once."""

    def about(self) -> Mapping[str, Any]:
        """Return what people may know of it, without secrets."""

    def items(self, call: ChannelCall) -> Iterator[Item | Refusal]:
        """List all items. One that cannot be read is a refusal."""

    def read(self, ids: Sequence[str], call: ChannelCall) -> Mapping[str, Price | Refusal]:
        """Read the prices of items; those that do not exist are left out."""

    def write(self, writes: Sequence[Write], call: ChannelCall) -> Sequence[Wrote]:
        """Write prices, and return the result of each, in the same order."""

    def health(self) -> Health:
        """Check whether it can be used."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A channel with its name and its settings."""

    name: str
    channel: Channel
    batch: int
    request_timeout: timedelta
    target_timeout: timedelta
    errors: Mapping[Any, Any]  # by status or code, as `treatment.table_of` returns them
    charges_rate_limits: bool = True
    rate_limit_policy: str = RATE_LIMIT_POLICY
    settles_within: timedelta = timedelta(0)
    corrects: bool = False
    by: KeyOf | None = None

    @property
    def place(self) -> str:
        """The name of its queue, its kind of step and its limit."""
        return f"rules:{self.name}"

    def call_weight(self) -> float:
        """Return what a call takes from the limit: 2 if it reads before it writes, or if that cannot be asked now."""
        try:
            return 1.0 if self.channel.compares else 2.0
        except OutsideError:
            return 2.0


class AppExecutor(Executor, Protocol):
    """An executor that knows the app's channels."""

    registry: Registry


def channels_of(registry: Registry) -> dict[str, Registered]:
    """Return the channels of an app by name, which its handles share."""
    return _OF_APPS.setdefault(registry, {})


def registered(
    name: str,
    channel: Channel,
    *,
    batch: int,
    request_timeout: Duration | None,
    target_timeout: Duration | None,
    errors: Mapping[Any, Any] | None = None,
    charges_rate_limits: bool = True,
    has_own_policy: bool = False,
    settles_within: Duration | None = None,
    corrects: bool = False,
    by: KeyOf | None = None,
) -> Registered:
    """Check a channel and its settings."""
    check_names([("channel", name)], LONGEST_NAME)
    if not all(_has(channel, part) for part in _PARTS):
        raise BadDefinition(
            f"channel {name} must have the methods items, read, write and health, got {channel!r:.60}",
            where="channel",
            next='use Table("products", key="sku", price="price", currency="EUR")',
        )
    if type(batch) is not int or not 1 <= batch <= MOST:
        raise BadDefinition(f"batch must be 1 to {MOST}, got {batch!r:.40}", where="batch", next="use 250")
    request = _timeout(request_timeout, "request_timeout", REQUEST_TIMEOUT)
    target = _timeout(target_timeout, "target_timeout", TARGET_TIMEOUT)
    if not timedelta(0) < request <= target:
        raise BadDefinition(
            f"request_timeout must be above 0 and at most target_timeout, got {request} and {target}",
            where="request_timeout",
            next="use 10 and 60 seconds",
        )
    settles = _timeout(settles_within, "settles_within", timedelta(0))
    if not timedelta(0) <= settles <= LONGEST_SETTLING:
        raise BadDefinition(
            f"settles_within must be 0 to 4 minutes, got {settles}",
            where="settles_within",
            next="a pass checks a run within 5 minutes of its end",
        )
    for option, given in (("corrects", corrects), ("charge_rate_limits", charges_rate_limits)):
        if not isinstance(given, bool):
            raise BadDefinition(f"{option} must be True or False, got {given!r:.40}", where=option, next="use True")
    if by is not None and not callable(by):
        raise BadDefinition(f"by must be a function of an item, got {by!r:.40}", where="by",
                            next='use by=lambda item: item.fields["product"]')  # fmt: skip
    policy = f"{RATE_LIMIT_POLICY}:{name}" if has_own_policy else RATE_LIMIT_POLICY
    return Registered(name, channel, batch, request, target, errors or {}, charges_rate_limits, policy, settles,
                      corrects, by)  # fmt: skip


def _has(channel: Channel, part: str) -> bool:
    """Check whether a channel has a part, without reading its value: that may call the channel."""
    return getattr_static(channel, part, None) is not None


def price_text(price: Price) -> dict[str, str | None]:
    """Return a price as people read it, for `found`."""
    return {
        "price": None if price.unit_amount is None else format(decimal(price.unit_amount, price.currency), "f"),
        "compareAt": None if price.compare_at is None else format(decimal(price.compare_at, price.currency), "f"),
        "currency": price.currency,
    }


def _timeout(given: Duration | None, where: str, usual: timedelta) -> timedelta:
    return usual if given is None else duration(given, where, error=BadDefinition)
