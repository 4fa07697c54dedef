"""Checks the records of a page one by one: only a record that cannot be stored is rejected, with its reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.errors import Rejected
from holdfast.ingest.json_text import json_text
from holdfast.ingest.source import Page, Reader

LONGEST_KEY = 1024  # bytes
LARGEST = 1 << 20  # bytes of a record
SHOWN = 2000  # characters of a rejected record
NUL = re.compile(r"\x00|(?<!\\)(?:\\\\)*\\u0000")  # itself, or as JSON escapes it: after an odd number of backslashes


class BadPage(Rejected):
    """The source returned something that is not a page; a retry would not help."""


@dataclass(slots=True)
class Stored:
    """The records of a page as they are sent, and those that were rejected."""

    keys: list[str] = field(default_factory=list)
    payloads: list[str] = field(default_factory=list)
    updated_at: list[datetime | None] = field(default_factory=list)
    deleted: list[bool] = field(default_factory=list)
    rejected: list[tuple[str | None, str, str]] = field(default_factory=list)  # key, record, reason

    def reject(self, place: int, reason: str) -> None:
        """Take out a record, and reject it."""
        shown = _storable(self.payloads[place])[:SHOWN]
        self.rejected.append((self.keys[place], shown, reason))
        for column in (self.keys, self.payloads, self.updated_at, self.deleted):
            del column[place]


def read_page(answer: Any) -> Page:
    """Return the source's response as a page; raise BadPage if it is not one."""
    page = answer if isinstance(answer, Page) else Page(answer)
    if isinstance(page.records, (str, bytes)) or not isinstance(page.records, Sequence):
        raise BadPage(f"a page must be a list of records, got {type(page.records).__name__}", where="page")
    return page


def read_records(reader: Reader, records: Sequence[Any]) -> Stored:
    """Check each record; raise BadPage for a time without a zone, which is a fault of the source and not of one row."""
    stored = Stored()
    key_of, render = reader.method("key", _none), reader.method("render", _rendered)
    time_of, is_tombstone = reader.method("updated_at", _none), reader.method("deleted", _none)
    needs_time = getattr(reader.source, "needs_updated_at", False)
    for record in records:
        try:
            key = _key(key_of(record))
            payload = _payload(render(record))
            at = _time(time_of(record), needs_time)
            is_deleted = bool(is_tombstone(record))
        except BadPage:
            raise
        except Exception as error:  # noqa: BLE001 - the functions are the user's, and one record must not stop a page
            stored.rejected.append((_shown_key(reader, record), _shown(record), str(error) or type(error).__name__))
            continue
        stored.keys.append(key)
        stored.payloads.append(payload)
        stored.updated_at.append(at)
        stored.deleted.append(is_deleted)
    return stored


def _none(record: Any) -> None:  # noqa: ARG001 - a source without the method says nothing of its records
    return None


def _key(key: Any) -> str:
    if key is None or key == "":
        raise ValueError("the record has no key")
    text = key if isinstance(key, str) else str(key)
    size = _check_text(text)
    if size > LONGEST_KEY:
        raise ValueError(f"its key has {size} bytes, at most {LONGEST_KEY} are allowed")
    return text


def _payload(text: str) -> str:
    size = _check_text(text)
    if size > LARGEST:
        raise ValueError(f"the record has {size} bytes, at most {LARGEST} are allowed")
    return text


def _rendered(record: Any) -> str:
    try:
        return json_text(record)
    except ValueError as error:
        raise ValueError(f"it has a number that JSON cannot hold: {error}") from None


def _check_text(text: str) -> int:
    """Return the bytes of a text; raise ValueError for one that PostgreSQL cannot store."""
    if ("\x00" in text or "\\u0000" in text) and NUL.search(text):
        raise ValueError("it has the character NUL, which PostgreSQL cannot store")
    try:
        return len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise ValueError("it has a lone surrogate, which is not a character") from None


def _time(at: Any, is_needed: bool) -> datetime | None:
    if at is None:
        if is_needed:
            raise ValueError("its updated_at is null")
        return None
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise BadPage(f"updated_at must be a datetime with a time zone, got {at!r}", where="updated_at")
    return at


def _shown_key(reader: Reader, record: Any) -> str | None:
    try:
        key = reader.call("key", record)
    except Exception:  # noqa: BLE001 - the record is rejected already; its key is only shown
        return None
    return None if key is None else _storable(str(key))[:LONGEST_KEY]


def _shown(record: Any) -> str:
    try:
        return _storable(repr(record))[:SHOWN]
    except Exception as error:  # noqa: BLE001 - any object may fail to show itself
        return f"its text cannot be read: {type(error).__name__}"


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd").encode(errors="replace").decode()
