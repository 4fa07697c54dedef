"""Records the output of one program: as events of its run, and on request all of it in a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Literal

from holdfast.ops.output import Allowance, Batches, Chunk, Cleaner, End, Lines, Tail, TextFilter
from holdfast.ops.sender import Append, Entry, Sender

REMIND_EACH = 10.0  # seconds between events about output that is not stored
ENDS = {"stdout": 64 * 1024, "stderr": 4096}  # characters that the result keeps
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
        self._pipes = {name: _Pipe(around.masked_stream(), most) for name, most in ENDS.items()}
        self._batches = Batches()
        self._tail: Tail | None = None  # from the first chunk that the run has no room for
        self._remind_at = 0.0

    @property
    def due_at(self) -> float | None:
        """When the lines that are collected must be stored."""
        return self._batches.due_at

    def end_of(self, pipe: Pipe) -> str:
        """Return the last characters of a pipe."""
        return self._pipes[pipe].end.text

    def read(self, pipe: Pipe, data: bytes) -> None:
        """Take what was read from a pipe."""
        if text := self._pipes[pipe].feed(data):
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
                self._remind("the run has stored the beginning of its output; from here on only the end is kept")
            self._tail.add(chunk)
            if time.monotonic() >= self._remind_at:
                self._remind(f"{_megabytes(self._tail.dropped_bytes)} of output are left out so far")

    def _store_tail(self, tail: Tail) -> None:
        chunks = tail.end(self._around.allowance)
        if tail.dropped_bytes:
            self.say(
                Entry(
                    f"… {_megabytes(tail.dropped_bytes)}, {tail.dropped_lines:,} lines, are left out here",
                    "warn",
                    {"step": self._step, "dropped_bytes": tail.dropped_bytes, "dropped_lines": tail.dropped_lines},
                )
            )
        for chunk in chunks:
            self._store_chunk(chunk)

    def _store_chunk(self, chunk: Chunk) -> None:
        group = {} if chunk.group is None else {"group": chunk.group}
        payload = {"step": self._step, "stream": chunk.stream, **group}
        self.say(Entry(chunk.text.removesuffix("\n"), payload=payload))

    def _remind(self, message: str) -> None:
        self._remind_at = time.monotonic() + REMIND_EACH
        self.say(Entry(message, "warn", {"step": self._step}))


class _Pipe:
    """One pipe of a program: bytes in, complete lines out."""

    def __init__(self, mask: TextFilter, most: int) -> None:
        self._cleaner = Cleaner()
        self._mask = mask
        self._lines = Lines()
        self.end = End(most)

    def feed(self, data: bytes) -> str:
        """Take what was read, and return complete lines."""
        text = self._lines.feed(self._mask.feed(self._cleaner.feed(data)))
        self.end.add(text)
        return text

    def rest(self) -> str:
        """Return what is left when the pipe has ended."""
        text = self._lines.feed(self._mask.feed(self._cleaner.end()) + self._mask.close()) + self._lines.end()
        self.end.add(text)
        return text


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MB"
