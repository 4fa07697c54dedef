"""How much output a run keeps: the head of all its shells together, and the end of each."""

from __future__ import annotations

from collections import deque

from holdfast.ops.output import Chunk, Stream, group_after, text_of

HEAD = 5 * 2**20  # bytes that a run keeps from the beginning of its output
TAIL = 4 * 2**20  # and from the end of the first shell that exceeds it
RESERVE = 2**20  # and from the ends of later shells
SMALL_TAIL = 64 * 1024  # of each of those
GROUP = b"group::"  # what a line that begins or ends a group contains


class Block:
    """Complete lines, as they were read: most of them are dropped, so they are copied only if they are stored.

    What is counted of them is counted at once, while the processor still has them.
    """

    __slots__ = ("_begun", "_end", "_read", "has_group", "lines", "size", "stream")

    def __init__(self, begun: bytes, read: bytes, end: int, stream: Stream) -> None:
        self._begun = begun  # of the first line, from an earlier read
        self._read = read
        self._end = end  # where the last complete line ends
        self.stream: Stream = stream
        self.size = len(begun) + end
        self.lines = read.count(b"\n", 0, end)
        self.has_group = GROUP in begun + read[: len(GROUP)] or _may_have_group(read, end)

    @property
    def data(self) -> bytes:
        """Its bytes."""
        return self._begun + self._read[: self._end]

    def last(self, most: int) -> bytes:
        """Return its last bytes."""
        return self._read[self._end - most : self._end] if most <= self._end else self.data[-most:]


def _may_have_group(data: bytes, end: int) -> bool:
    """Return whether the text of data may begin or end a group, by the tests that take the least time."""
    return b":" in data and (b"\x1b" in data or data.rfind(GROUP, 0, end) >= 0)


class Tail:
    """The last chunks and blocks of one shell, up to a size; it counts what it dropped."""

    def __init__(self, limit: int = TAIL) -> None:
        self._limit = limit
        self._parts: deque[Chunk | Block] = deque()
        self._size = 0
        self.dropped_bytes = 0
        self.dropped_lines = 0
        self.group: str | None = None  # that is open where the first part begins

    def add(self, part: Chunk | Block) -> None:
        """Take a part, and drop the oldest ones beyond the limit."""
        self._parts.append(part)
        self._size += part.size
        self._shrink(self._limit)

    def end(self, allowance: Allowance) -> list[Chunk | Block]:
        """Return the last parts that the run has room for."""
        self._shrink(allowance.tail(self._size))
        parts, self._parts, self._size = list(self._parts), deque(), 0
        return parts

    def _shrink(self, limit: int) -> None:
        while self._size > limit:
            part = self._parts.popleft()
            self._size -= part.size
            self.dropped_bytes += part.size
            self.dropped_lines += part.lines
            if isinstance(part, Chunk):
                self.group = group_after(part.text, self.group)
            elif part.has_group:
                self.group = group_after(text_of(part.data), self.group)


class Allowance:
    """How much output a run may still store: the head of all its shells together, and their tails."""

    def __init__(self, head: int = HEAD, tail: int = TAIL, reserve: int = RESERVE) -> None:
        self._head = head
        self._tail = tail
        self._reserve = reserve

    def takes(self, size: int) -> bool:
        """Take room at the head; after the first chunk without room there is none for later ones."""
        if size > self._head:
            self._head = 0
            return False
        self._head -= size
        return True

    def tail(self, size: int) -> int:
        """Take room for the end of a shell whose beginning no longer fits, and return how much that is."""
        if self._tail:
            room, self._tail = min(size, self._tail), 0
            return room
        room = min(size, SMALL_TAIL, self._reserve)
        self._reserve -= room
        return room
