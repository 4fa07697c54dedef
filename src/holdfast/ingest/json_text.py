"""JSON in which decimals keep every digit, and types that JSON lacks are written as text."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import uuid4

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

_MARK = f"decimal:{uuid4().hex}:"  # nobody else knows it, so no text of a record begins with it
_DECIMAL = re.compile(f'"{_MARK}([^"]*)"')


def json_text(value: Any) -> str:
    """Return a value as JSON; raise ValueError for a number that JSON cannot hold, TypeError for another type."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=_plain)
    return _DECIMAL.sub(r"\1", text) if _MARK in text else text


def _plain(value: Any) -> Any:
    match value:
        case Decimal():
            if not value.is_finite():
                raise ValueError(str(value))
            return f"{_MARK}{value}"  # as a float it would lose digits
        case BaseModel():
            return value.model_dump()
        case datetime() | date() | time():
            return value.isoformat()
        case Enum():
            return value.value
        case set() | frozenset():
            return list(value)
    try:
        return to_jsonable_python(value)
    except ValueError:
        raise TypeError(f"it has a value of type {type(value).__name__}") from None
