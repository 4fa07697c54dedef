"""The output of programs as text that can be stored: cleaned, folded into lines, cut, batched and capped.

Nothing here reads a clock, a file or a database. Each part takes chunks that may be split anywhere, and works on whole
chunks where it can: a program may write millions of lines.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

Stream = Literal["stdout", "stderr", "both"]

LONGEST_LINE = 16 * 1024  # characters of a line; the rest is counted
LARGEST_EVENT = 64 * 1024  # bytes of output in one event
EACH = 0.25  # seconds between events of a program that writes slowly
HEAD = 5 * 2**20  # bytes that a run keeps from the beginning of its output
TAIL = 4 * 2**20  # and from the end of the first shell that exceeds it
RESERVE = 2**20  # and from the ends of later shells
SMALL_TAIL = 64 * 1024  # of each of those

# CSI; strings that ST or BEL ends (titles, links); other sequences of ESC, intermediate bytes and a final one. What is
# longer than a terminal would accept is text after an odd ESC, so that no sequence is held back for ever.
_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,4000}(?:\x07|\x1b\\)|[PX^_][^\x1b\n]{0,4000}\x1b\\"
    rb"|[ -/]{0,8}[0-OQ-WYZ\\`-~])"
)
_OPEN_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}|\][^\x07\x1b\n]{0,4000}\x1b?|[PX^_][^\x1b\n]{0,4000}\x1b?|[ -/]{0,8})\Z"
)
_CONTROLS = bytes(n for n in (*range(32), 127) if n not in b"\t\n\r")
_UPPER_CONTROLS = re.compile("[\x80-\x9f]")
_LINE_END = re.compile("\r+\n")
_OVERWRITTEN = re.compile("[^\n]*\r")
_GROUP = re.compile(r"^::(?:group::(.*)|endgroup::.*)$", re.MULTILINE)


class TextFilter(Protocol):
    """Replaces text in a stream, as a masker does; it may hold back the end of a chunk."""

    def feed(self, text: str, /) -> str:
        """Take a chunk, and return what is certain."""

    def close(self) -> str:
        """Return the rest."""


class Cleaner:
    """Turns bytes into text: without ANSI codes and control characters, and with invalid UTF-8 replaced."""

    def __init__(self) -> None:
        self._open = b""  # an escape sequence that may continue in the next chunk
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        """Take a chunk, and return its text."""
        if self._open or b"\x1b" in data:
            data = self._without_escapes(data)
        return self._decoded(data, final=False)

    def end(self) -> str:
        """Return the rest."""
        data, self._open = self._open, b""
        return self._decoded(data[1:], final=True)

    def _without_escapes(self, data: bytes) -> bytes:
        data, self._open = self._open + data, b""
        if (found := _OPEN_ESCAPE.search(data)) is not None:
            data, self._open = data[: found.start()], data[found.start() :]
        return _ESCAPE.sub(b"", data)

    def _decoded(self, data: bytes, *, final: bool) -> str:
        text = self._decoder.decode(data.translate(None, _CONTROLS), final)
        return text if text.isascii() else _UPPER_CONTROLS.sub("", text)


class Lines:
    """Assembles lines: folds carriage returns as a terminal does, and cuts long lines."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._line = ""  # the line that is not yet complete
        self._over = 0  # characters that were cut from it
        self._is_returned = False  # its next character overwrites it

    def feed(self, text: str) -> str:
        """Take a chunk, and return the lines that are complete, each with its newline."""
        first = text.find("\n")
        if first < 0:
            self._extend(text)
            return ""
        last = text.rfind("\n")
        self._extend(text[:first])
        complete = self._close() + self._folded(text[first + 1 : last + 1])
        self._extend(text[last + 1 :])
        return complete

    def end(self) -> str:
        """Return the last line, with a newline."""
        return self._close() if self._line or self._over else ""

    def _extend(self, text: str) -> None:
        stripped = text.rstrip("\r")
        if stripped:
            returned = stripped.rfind("\r")
            if returned >= 0 or self._is_returned:
                self._line, self._over, self._is_returned = "", 0, False
            piece = stripped[returned + 1 :]
            room = self._longest - len(self._line)
            self._line += piece[:room]
            self._over += max(0, len(piece) - room)
        self._is_returned = self._is_returned or len(stripped) < len(text)

    def _close(self) -> str:
        line = f"{self._line}{_cut_mark(self._over)}\n"
        self._line, self._over, self._is_returned = "", 0, False
        return line

    def _folded(self, body: str) -> str:
        """Fold and cut lines that are complete."""
        if "\r" in body:
            body = _OVERWRITTEN.sub("", _LINE_END.sub("\n", body))
        if not self._has_long_line(body):
            return body
        return "".join(f"{self._cut(line)}\n" for line in body[:-1].split("\n"))

    def _cut(self, line: str) -> str:
        return line if len(line) <= self._longest else line[: self._longest] + _cut_mark(len(line) - self._longest)

    def _has_long_line(self, body: str) -> bool:
        place, end = 0, len(body)
        while end - place > self._longest + 1:
            newline = body.rfind("\n", place, place + self._longest + 1)
            if newline < 0:
                return True
            place = newline + 1
        return False


def _cut_mark(over: int) -> str:
    return f" … [cut: {over:,} more characters]" if over else ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The output of one event: complete lines, their stream, and the group that is open where it begins."""

    text: str
    stream: Stream
    group: str | None
    size: int  # in bytes

    @property
    def lines(self) -> int:
        """The number of its lines."""
        return self.text.count("\n")


class Batches:
    """Collects lines into chunks: one per 64 kB, or per 250 ms of a program that writes slowly."""

    def __init__(self, largest: int = LARGEST_EVENT, each: float = EACH) -> None:
        self._largest = largest
        self._each = each
        self._texts: list[str] = []
        self._streams: set[Stream] = set()
        self._size = 0
        self._group: str | None = None  # where the chunk begins
        self._open_group: str | None = None  # where it ends
        self.due_at: float | None = None  # when the chunk must be stored, if it is not full before

    def add(self, text: str, stream: Stream, now: float) -> Iterator[Chunk]:
        """Take lines; yield the chunks that are full."""
        for part in _parts(text, self._largest):
            size = _size(part)
            if self._size + size > self._largest:
                yield from self.flush()
            if self.due_at is None:
                self.due_at = now + self._each
                self._group = self._open_group
            self._texts.append(part)
            self._streams.add(stream)
            self._size += size
            self._open_group = _group_after(part, self._open_group)

    def flush(self) -> Iterator[Chunk]:
        """Yield what is there."""
        if self._texts:
            stream: Stream = "both" if len(self._streams) > 1 else next(iter(self._streams))
            yield Chunk("".join(self._texts), stream, self._group, self._size)
        self._texts, self._size, self.due_at = [], 0, None
        self._streams.clear()


class Tail:
    """The last chunks of one shell, up to a size; it counts what it dropped."""

    def __init__(self, limit: int = TAIL) -> None:
        self._limit = limit
        self._chunks: deque[Chunk] = deque()
        self._size = 0
        self.dropped_bytes = 0
        self.dropped_lines = 0

    def add(self, chunk: Chunk) -> None:
        """Take a chunk, and drop the oldest ones beyond the limit."""
        self._chunks.append(chunk)
        self._size += chunk.size
        self._shrink(self._limit)

    def end(self, allowance: Allowance) -> list[Chunk]:
        """Return the last chunks that the run has room for."""
        self._shrink(allowance.tail(self._size))
        chunks, self._chunks, self._size = list(self._chunks), deque(), 0
        return chunks

    def _shrink(self, limit: int) -> None:
        while self._size > limit:
            chunk = self._chunks.popleft()
            self._size -= chunk.size
            self.dropped_bytes += chunk.size
            self.dropped_lines += chunk.lines


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


class End:
    """The last characters of a stream."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.text = ""

    def add(self, text: str) -> None:
        """Take the next part."""
        self.text = text[-self._most :] if len(text) >= self._most else (self.text + text)[-self._most :]


def storable(text: str) -> str:
    """Replace what PostgreSQL or UTF-8 cannot store: NUL characters and lone surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _parts(text: str, largest: int) -> Iterator[str]:
    """Split text at line ends into parts of at most that many bytes; lines are shorter than that."""
    while _size(text) > largest:
        step = largest if text.isascii() else largest // 4
        place = text.rfind("\n", 0, step) + 1 or text.find("\n") + 1 or len(text)
        yield text[:place]
        text = text[place:]
    if text:
        yield text


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _group_after(text: str, group: str | None) -> str | None:
    """Return the group that is open after a text, as `::group::TITLE` and `::endgroup::` lines say."""
    if "group::" not in text:
        return group
    for found in _GROUP.finditer(text):
        group = found[1].strip() or "group" if found[1] is not None else None
    return group
