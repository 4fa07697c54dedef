"""Rejects NaN and infinity, which JSON cannot hold and which pydantic would silently write as null."""

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
    """Return where `value` has a NaN or an infinity that its JSON `text` does not preserve, or None.

    A type may keep such numbers as text: ser_json_inf_nan="strings", or a Decimal with allow_inf_nan.
    """
    # Such a number leaves one of these in the text. Unrolled, because every start and result passes here.
    if not ("null" in text or "NaN" in text or "Infinity" in text or '"None"' in text):
        return None
    plain = adapter.dump_python(value, warnings=False)
    try:
        _ENCODER.encode(plain)  # in C: most texts with a null hold no such number
    except (TypeError, ValueError):
        kept = _kept(adapter, text)
        return next((_message(place, number, root) for place, number in _numbers(plain) if place not in kept), None)
    return None


def complaint_of_json(value: Any, root: str) -> str | None:
    """Return where plain JSON has a NaN or an infinity, or None."""
    return next((_message(place, number, root) for place, number in _numbers(value)), None)


def jsonb(value: Any) -> Jsonb:
    """Wrap a value as jsonb; dumping it raises BadInput if JSON cannot hold it."""
    return Jsonb(value, dumps=json_text)


def json_text(value: Any) -> str:
    """Write a value as JSON; raise BadInput if JSON cannot hold it."""
    try:
        return _STRICT.encode(value)
    except ValueError:
        place, number = next(_numbers(value), (None, None))
        if place is None:
            raise
        raise BadInput(
            _message(place, number, "the value"),
            where=place or None,
            next="JSON cannot hold it, so pass None or text",
        ) from None


def _kept(adapter: TypeAdapter[Any], text: str) -> set[str]:
    """List the places of the numbers that the text preserves."""
    try:
        json.loads(text, parse_constant=_refuse)  # a bare NaN: pydantic accepts it, PostgreSQL does not
        plain = adapter.dump_python(adapter.validate_json(text), warnings=False)
    except ValueError:
        return set()
    return {place for place, _ in _numbers(plain)}


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _numbers(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the place of each NaN and infinity."""
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
    """Return the parts of a value that is not plain JSON and may hold a number."""
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
