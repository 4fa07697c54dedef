"""The output of programs as text that can be stored: cleaned, folded into lines, cut, batched and capped.

Nothing here reads a clock, a file or a database. Each part takes chunks that may be split anywhere, and works on whole
chunks where it can: a program may write millions of lines.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import AnyStr, Literal, Protocol

Stream = Literal["stdout", "stderr", "both"]

LONGEST_LINE = 16 * 1024  # characters of a line; the rest is counted
LARGEST_EVENT = 64 * 1024  # bytes of output in one event
LEAST_LATER = 4096  # bytes: fewer become text at once
EACH = 0.25  # seconds between events of a program that writes slowly

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

    def is_idle_after(self, end: str, /) -> bool:
        """Return whether it holds back nothing now, and would hold back nothing of a text that ends so."""

    @property
    def longest(self) -> int:
        """The most characters that it may hold back at the end of a line."""


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

    @property
    def is_idle(self) -> bool:
        """Whether it holds back nothing."""
        return not self._open and not self._decoder.getstate()[0]

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

    @property
    def is_idle(self) -> bool:
        """Whether no line has begun."""
        return not (self._line or self._over or self._is_returned)

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
        if not has_long_line(body, "\n", self._longest):
            return body
        return "".join(f"{self._cut(line)}\n" for line in body[:-1].split("\n"))

    def _cut(self, line: str) -> str:
        return line if len(line) <= self._longest else line[: self._longest] + _cut_mark(len(line) - self._longest)


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

    def __init__(self, largest: int = LARGEST_EVENT, each: float = EACH, *, group: str | None = None) -> None:
        self._largest = largest
        self._each = each
        self._texts: list[str] = []
        self._streams: set[Stream] = set()
        self._size = 0
        self._group: str | None = None  # where the chunk begins
        self.open_group = group  # where it ends
        self.due_at: float | None = None  # when the chunk must be stored, if it is not full before

    def add(self, text: str, stream: Stream, now: float) -> Iterator[Chunk]:
        """Take lines; yield the chunks that are full."""
        for part in _parts(text, self._largest):
            size = _size(part)
            if self._size + size > self._largest:
                yield from self.flush()
            if self.due_at is None:
                self.due_at = now + self._each
                self._group = self.open_group
            self._texts.append(part)
            self._streams.add(stream)
            self._size += size
            self.open_group = group_after(part, self.open_group)

    def flush(self) -> Iterator[Chunk]:
        """Yield what is there."""
        if self._texts:
            stream: Stream = "both" if len(self._streams) > 1 else next(iter(self._streams))
            yield Chunk("".join(self._texts), stream, self._group, self._size)
        self._texts, self._size, self.due_at = [], 0, None
        self._streams.clear()


class End:
    """The last characters of a stream."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.text = ""

    def add(self, text: str) -> None:
        """Take the next part."""
        self.text = text[-self.most :] if len(text) >= self.most else (self.text + text)[-self.most :]


def end_of_lines(begun: bytes, data: bytes) -> int:
    """Return where the complete lines of data end that can become text at any later time, or 0 if they cannot.

    The first line began before, with `begun`. Data with carriage returns may be much shorter as text.
    """
    end = data.rfind(b"\n") + 1
    if not end or len(begun) + len(data) < LEAST_LATER or b"\r" in data:
        return 0
    is_long = len(begun) + data.find(b"\n") > LONGEST_LINE or has_long_line(data, b"\n", LONGEST_LINE, end)
    return 0 if is_long else end


def text_of(lines: bytes) -> str:
    """Return the text of complete lines without carriage returns."""
    cleaner = Cleaner()  # nothing that it removes or replaces continues after the end of a line
    return cleaner.feed(lines) + cleaner.end()


def has_long_line(text: AnyStr, newline: AnyStr, longest: int, end: int | None = None) -> bool:
    """Return whether a line of a text, which ends with a newline at its end, is longer than that."""
    place, end = 0, len(text) if end is None else end
    while end - place > longest + 1:
        found = text.rfind(newline, place, place + longest + 1)
        if found < 0:
            return True
        place = found + 1
    return False


def storable(text: str) -> str:
    """Replace what PostgreSQL or UTF-8 cannot store: NUL characters and lone surrogates."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
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


def group_after(text: str, group: str | None) -> str | None:
    """Return the group that is open after a text, as `::group::TITLE` and `::endgroup::` lines say."""
    if "group::" not in text:
        return group
    for found in _GROUP.finditer(text):
        group = found[1].strip() or "group" if found[1] is not None else None
    return group
