"""What an error of a channel means: its class, whether it is retried, whether it stops the run. A table per channel."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, get_args

from holdfast.errors import BadDefinition, OutsideError, RateLimited, Unavailable
from holdfast.rules.channel import ErrorClass, Wrote

Code = int | str


class Treatment(NamedTuple):
    """How an error is treated. One that is neither retried nor stops the run fails its target only.

    `stops`: the target fails, and nothing more of the run is sent. `splits`: a call that is refused as a whole is split
    in half until the bad item is alone.
    """

    error_class: ErrorClass
    retries: bool = False
    stops: bool = False
    splits: bool = False


_RATE = Treatment("RATE_LIMIT", retries=True)
_LOGIN = Treatment("AUTHORIZATION", stops=True)
_SETTING = Treatment("VALIDATION", stops=True)
_WHOLE = Treatment("VALIDATION", splits=True)
_SERVER = Treatment("SERVER_ERROR", retries=True)
_UNKNOWN = Treatment("UNKNOWN", retries=True)
# By HTTP status, by code, and for a table in PostgreSQL by SQLSTATE (A-125, C-87).
STANDARD: Mapping[Code, Treatment] = MappingProxyType({
    429: _RATE, "429": _RATE, "THROTTLED": _RATE, "RATE_LIMIT": _RATE,
    408: Treatment("TIMEOUT", retries=True), 425: _SERVER,
    400: _WHOLE, 413: _WHOLE, 422: _WHOLE, "VALIDATION": Treatment("VALIDATION"),
    401: _LOGIN, 403: _LOGIN, 407: _LOGIN, "AUTHORIZATION": _LOGIN, "42501": _LOGIN, "28000": _LOGIN, "28P01": _LOGIN,
    404: Treatment("NOT_FOUND"), 410: Treatment("NOT_FOUND"), "NOT_FOUND": Treatment("NOT_FOUND"),
    "CONFIGURATION": _SETTING, "42P01": _SETTING, "42703": _SETTING, "3D000": _SETTING, "3F000": _SETTING,
    "TIMEOUT": Treatment("TIMEOUT", retries=True), "NETWORK": Treatment("NETWORK", retries=True),
    "SERVER_ERROR": _SERVER, "UNKNOWN": _UNKNOWN, "UNREADABLE": _UNKNOWN, "TOO_LONG": _UNKNOWN,
})  # fmt: skip


def table_of(given: Mapping[Code, Treatment] | None) -> Mapping[Code, Treatment]:
    """Check a channel's own entries, and return them on top of the standard ones."""
    if given is not None and not isinstance(given, Mapping):
        raise BadDefinition(f"errors must be a mapping, got {given!r:.40}", where="errors",
                            next='use {423: Treatment("SERVER_ERROR", retries=True)}')  # fmt: skip
    for code, treatment in (given or {}).items():
        if type(code) not in {int, str}:
            raise BadDefinition(f"errors must be keyed by a status or a code, got {code!r:.40}", where="errors",
                                next='use 423 or "LOCKED"')  # fmt: skip
        if type(treatment) is not Treatment or treatment.error_class not in get_args(ErrorClass):
            raise BadDefinition(f"errors[{code!r:.40}] must be a Treatment with one of the eight classes",
                                where="errors", next='use Treatment("SERVER_ERROR", retries=True)')  # fmt: skip
        if treatment.retries and (treatment.stops or treatment.splits):
            raise BadDefinition(f"errors[{code!r:.40}] is retried and also stops or splits", where="errors",
                                next="choose one")  # fmt: skip
    return {**STANDARD, **(given or {})}


def of_error(table: Mapping[Code, Treatment], error: OutsideError) -> Treatment:
    """Return how a call that failed as a whole is treated."""
    match error:
        case RateLimited():
            usual = _RATE
        case Unavailable():
            usual = _SERVER
        case _:
            usual = Treatment("VALIDATION")
    return _flagged(_found(table, error.status, error.code, usual), error.retryable)


def of_item(table: Mapping[Code, Treatment], wrote: Wrote) -> Treatment:
    """Return how the refusal of one item is treated; it stops no run and splits no call unless its code is listed."""
    if wrote.code is None:
        known = table.get(wrote.error_class, Treatment(wrote.error_class))
        return _flagged(known._replace(stops=False), wrote.retryable)
    status = int(wrote.code) if wrote.code.isdigit() and len(wrote.code) <= 3 else None
    return _flagged(_found(table, status, wrote.code, Treatment("UNKNOWN")), wrote.retryable)


def _found(table: Mapping[Code, Treatment], status: int | None, code: str | None, usual: Treatment) -> Treatment:
    """Look up the code, then the status; of the others a redirect is a wrong setting and a 5xx passes."""
    if code is not None and code in table:
        return table[code]
    if status is None:
        return usual
    if status in table:
        return table[status]
    match status // 100:
        case 3:
            return _SETTING
        case 5:
            return _SERVER
        case 4:
            return Treatment("VALIDATION")
    return usual


def _flagged(treatment: Treatment, retryable: bool | None) -> Treatment:
    """Let the error's own `retryable` take precedence."""
    if retryable is None or retryable == treatment.retries:
        return treatment
    return treatment._replace(retries=retryable, stops=treatment.stops and not retryable, splits=False)
