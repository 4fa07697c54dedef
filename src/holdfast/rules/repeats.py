"""Notices an item that comes twice among any number of them, in little memory: ids are sorted in parts, on disk."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

from holdfast.errors import BadInput

PART = 50_000  # ids in memory
T = TypeVar("T")


def once(items: Iterator[T], id_of: Callable[[T], Any]) -> Iterator[T]:
    """Return the items; after the last raise BadInput if two have one id. Those whose id is no text are left out."""
    with ExitStack() as stack:
        parts: list[IO[bytes]] = []
        ids: list[bytes] = []
        for item in items:
            item_id = id_of(item)
            if type(item_id) is str:
                ids.append(item_id.encode("unicode_escape"))  # without newlines
                if len(ids) == PART:
                    parts.append(_sorted(ids, stack))
                    ids = []
            yield item
        ids.sort()
        for one, next_one in pairwise(heapq.merge(*(map(_line, part) for part in parts), ids)):
            if one == next_one:
                item_id = one.decode("unicode_escape")
                raise BadInput(f"item {item_id!r:.120} is there twice", where="items", next="list each item once")


def _sorted(ids: list[bytes], stack: ExitStack) -> IO[bytes]:
    ids.sort()
    file: IO[bytes] = stack.enter_context(TemporaryFile())  # noqa: SIM115 - the stack's
    file.writelines(each + b"\n" for each in ids)
    file.seek(0)
    return file


def _line(line: bytes) -> bytes:
    return line[:-1]
