"""NaN and infinity, which JSON cannot hold: pydantic writes them as null, so they are refused before that is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any

from psycopg.types.json import Jsonb
from pydantic import TypeAdapter

from holdfast.errors import BadInput


def complaint(adapter: TypeAdapter[Any], value: Any, text: str, root: str) -> str | None:
    """Say where `value` has a NaN or an infinity that its JSON `text` does not give back; None if it has none.

    A type may keep such numbers as text: ser_json_inf_nan="strings", or a Decimal with allow_inf_nan.
    """
    # One of these is left in the text where such a number was; written out, since every start and result comes by here.
    if not ("null" in text or "NaN" in text or "Infinity" in text or '"None"' in text):
        return None
    plain = adapter.dump_python(value, warnings=False)
    try:
        _ENCODER.encode(plain)  # in C: most text with a null in it has no such number
    except (TypeError, ValueError):
        kept = _kept(adapter, text)
        return next((_message(place, number, root) for place, number in _numbers(plain) if place not in kept), None)
    return None


def complaint_of_json(value: Any, root: str) -> str | None:
    """Say where plain JSON has a NaN or an infinity; None if it has none."""
    return next((_message(place, number, root) for place, number in _numbers(value)), None)


def jsonb(value: Any) -> Jsonb:
    """Pass a value as jsonb; raises BadInput, when it is written, where JSON cannot hold it."""
    return Jsonb(value, dumps=_dumps)


def _dumps(value: Any) -> str:
    try:
        return _STRICT.encode(value)
    except ValueError:
        place, number = next(_numbers(value), (None, None))
        if place is None:
            raise
        raise BadInput(
            _message(place, number, "the value"),
            where=place or None,
            next="JSON has no such number, pass None or text instead",
        ) from None


def _kept(adapter: TypeAdapter[Any], text: str) -> set[str]:
    """List the places of the numbers that come back from the text as they were."""
    try:
        json.loads(text, parse_constant=_refuse)  # a bare NaN: pydantic reads it, PostgreSQL does not
        plain = adapter.dump_python(adapter.validate_json(text), warnings=False)
    except ValueError:
        return set()
    return {place for place, _ in _numbers(plain)}


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _numbers(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Walk to each NaN and infinity."""
    match value:
        case float() if not isfinite(value):
            yield place, value
        case Decimal() if not value.is_finite():
            yield place, value
        case Mapping():
            for key, each in value.items():
                yield from _numbers(key, _below(place, key))
                yield from _numbers(each, _below(place, key))
        case list() | tuple() | AbstractSet():
            for index, each in enumerate(value):
                yield from _numbers(each, _below(place, index))
        case Enum():
            yield from _numbers(value.value, place)


def _below(place: str, key: Any) -> str:
    return f"{place}.{key}" if place else str(key)


def _message(place: str, number: Any, root: str) -> str:
    return f"{place or root} must be finite, got {number}"


def _plain(value: Any) -> Any:
    """Take apart what JSON does not know and may hold a number."""
    match value:
        case Decimal() if not value.is_finite():
            raise ValueError(value)
        case AbstractSet():
            return list(value)
        case Enum():
            return value.value
    return None


_ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False, default=_plain)
_STRICT = json.JSONEncoder(allow_nan=False)
