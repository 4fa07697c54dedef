"""Records the output of one program: as events of its run, and on request all of it in a file."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Literal

from holdfast.ops.allowance import Allowance, Block, Tail
from holdfast.ops.output import Batches, Chunk, Cleaner, End, Lines, Stream, TextFilter, end_of_lines, text_of
from holdfast.ops.sender import Append, Entry, Sender

REMIND_EACH = 10.0  # seconds between events about output that is not stored
ENDS = {"stdout": 64 * 1024, "stderr": 4096}  # characters that the result keeps
LONGEST_CODE = 5000  # bytes: the longest code of a terminal that is removed is shorter
Pipe = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a program needs of its run."""

    append: Append
    stop_reason: Callable[[], str | None]
    mask: Callable[[str], str]
    masked_stream: Callable[[], TextFilter]
    allowance: Allowance


class Recorder:
    """Takes the output of one program in chunks that are split anywhere."""

    def __init__(self, step: str, around: Surroundings, sender: Sender, file: IO[bytes] | None) -> None:
        self._step = step
        self._around = around
        self._sender = sender
        self._file = file
        self._pipes = {name: _Pipe(around, most) for name, most in ENDS.items()}
        self._batches = Batches()
        self._tail: Tail | None = None  # from the first chunk that the run has no room for
        self._remind_at = 0.0

    @property
    def due_at(self) -> float | None:
        """When the lines that are collected must be stored."""
        return self._batches.due_at

    @property
    def is_dropping(self) -> bool:
        """Whether the run has no room left but for the end of the output."""
        return self._tail is not None

    def end_of(self, pipe: Pipe) -> str:
        """Return the last characters of a pipe."""
        return self._pipes[pipe].end_text

    def read(self, pipe: Pipe, data: bytes) -> None:
        """Take what was read from a pipe."""
        if self._tail is not None and self._file is None:
            data = self._keep_lines(self._tail, pipe, data)
        self._read_text(pipe, data)

    def _keep_lines(self, tail: Tail, pipe: Pipe, data: bytes) -> bytes:
        """Keep complete lines as bytes, because most of them will be dropped; return what has to become text now."""
        taker = self._pipes[pipe]
        if not taker.is_idle:
            first = data.find(b"\n") + 1
            self._read_text(pipe, data[:first])
            data = data[first:]
        if (block := taker.take_lines(data, pipe)) is None:
            return data
        self._store(self._batches.flush())
        self._keep(tail, block)
        return b""

    def _read_text(self, pipe: Pipe, data: bytes) -> None:
        if data and (text := self._pipes[pipe].feed(data)):
            self._store(self._batches.add(text, pipe, time.monotonic()))

    def flush_if_due(self, now: float) -> None:
        """Store the lines of a program that writes slowly."""
        if self._batches.due_at is not None and now >= self._batches.due_at:
            self._store(self._batches.flush())

    def finish(self) -> None:
        """Store what is left when the program has ended."""
        pipes: tuple[Pipe, ...] = ("stdout", "stderr")
        for pipe in pipes:
            self._store(self._batches.add(self._pipes[pipe].rest(), pipe, time.monotonic()))
        self._store(self._batches.flush())
        if self._tail is not None:
            self._store_tail(self._tail)

    def say(self, entry: Entry) -> None:
        """Pass an event on. While the database is slow the program waits in its pipe, unless the run has to stop."""
        while not self._sender.put(entry):
            if self._around.stop_reason() is not None:
                return

    def _store(self, chunks: Iterator[Chunk]) -> None:
        for chunk in chunks:
            if self._file is not None:
                self._file.write(chunk.text.encode())
            if self._tail is None and self._around.allowance.takes(chunk.size):
                self._store_chunk(chunk)
                continue
            if self._tail is None:
                self._tail = Tail()
                self._tail.group = chunk.group
                self._remind("the run has stored the beginning of its output; from here on only the end is kept")
            self._keep(self._tail, chunk)

    def _keep(self, tail: Tail, part: Chunk | Block) -> None:
        tail.add(part)
        if time.monotonic() >= self._remind_at:
            self._remind(f"{_megabytes(tail.dropped_bytes)} of output are left out so far")

    def _store_tail(self, tail: Tail) -> None:
        parts = tail.end(self._around.allowance)
        if tail.dropped_bytes:
            self.say(
                Entry(
                    f"… {_megabytes(tail.dropped_bytes)}, {tail.dropped_lines:,} lines, are left out here",
                    "warn",
                    {"step": self._step, "dropped_bytes": tail.dropped_bytes, "dropped_lines": tail.dropped_lines},
                )
            )
        for chunk in self._chunks(tail, parts):
            self._store_chunk(chunk)

    def _chunks(self, tail: Tail, parts: list[Chunk | Block]) -> Iterator[Chunk]:
        batches = Batches(group=tail.group)
        for part in parts:
            text = part.text if isinstance(part, Chunk) else self._around.mask(text_of(part.data))
            yield from batches.add(text, part.stream, 0)
        yield from batches.flush()

    def _store_chunk(self, chunk: Chunk) -> None:
        group = {} if chunk.group is None else {"group": chunk.group}
        payload = {"step": self._step, "stream": chunk.stream, **group}
        self.say(Entry(chunk.text.removesuffix("\n"), payload=payload))

    def _remind(self, message: str) -> None:
        self._remind_at = time.monotonic() + REMIND_EACH
        self.say(Entry(message, "warn", {"step": self._step}))


class _Pipe:
    """One pipe of a program: bytes in, complete lines out."""

    def __init__(self, around: Surroundings, most: int) -> None:
        self._cleaner = Cleaner()
        self._masked = around.masked_stream()
        self._mask = around.mask
        self._lines = Lines()
        self._end = End(most)
        self._begun = b""  # a line that began after those
        self._last: deque[Block] = deque()  # lines that are not in `_end` yet
        self._last_size = 0

    @property
    def is_idle(self) -> bool:
        """Whether what follows does not depend on what was read."""
        return self._cleaner.is_idle and self._lines.is_idle and self._masked.is_idle_after("")

    @property
    def end_text(self) -> str:
        """The last characters."""
        while self._last:
            self._end.add(self._mask(text_of(self._last.popleft().data)))
        self._last_size = 0
        return self._end.text

    def take_lines(self, data: bytes, stream: Stream) -> Block | None:
        """Take data whose complete lines can become text later, and return those; return None for other data."""
        if not self.is_idle or not (end := end_of_lines(self._begun, data)):
            return None
        block = Block(self._begun, data, end, stream)
        if self._holds_back(block):
            return None
        self._begun = data[end:]
        self._last.append(block)
        self._last_size += block.size
        while self._last_size - self._last[0].size > 2 * self._end.most:  # as text they may be shorter
            self._last_size -= self._last.popleft().size
        return block

    def _holds_back(self, block: Block) -> bool:
        """Return whether lines may end inside a secret of several lines."""
        longest = self._masked.longest
        if not longest:
            return False
        last = text_of(block.last(2 * longest + LONGEST_CODE))[LONGEST_CODE:]
        return len(last) < longest or not self._masked.is_idle_after(last)

    def feed(self, data: bytes) -> str:
        """Take what was read, and return complete lines."""
        data, self._begun = self._begun + data, b""
        return self._ended(self._lines.feed(self._masked.feed(self._cleaner.feed(data))))

    def rest(self) -> str:
        """Return what is left when the pipe has ended."""
        text = self.feed(b"")
        rest = self._lines.feed(self._masked.feed(self._cleaner.end()) + self._masked.close()) + self._lines.end()
        return text + self._ended(rest)

    def _ended(self, text: str) -> str:
        if text:
            _ = self.end_text  # in order
            self._end.add(text)
        return text


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MB"
