"""Stores the events of a shell, in order and in a thread of its own, so that its output is read meanwhile."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg

from holdfast import log
from holdfast.errors import DatabaseError, LeaseLost, NotFound, RefusedError, WrongState
from holdfast.models import Level

MOST_WAITING = 64  # events, of 64 kB at most; beyond that the program waits in its pipe
MOST_AT_ONCE = 16  # in one transaction
FIRST_PAUSE = 0.2  # seconds until an event is sent again after the database failed; the pauses grow
LONGEST_PAUSE = 5.0
LOOK_EACH = 0.1


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of a run; its key makes it safe to send it again."""

    message: str
    level: Level = "info"
    payload: dict[str, Any] = field(default_factory=dict)
    key: str = field(default_factory=lambda: uuid4().hex)


Append = Callable[[Sequence[Entry]], None]  # raises LeaseLost if the run is no longer ours, and may be repeated


class Sender:
    """Sends events until the run is over or lost; then it drops them."""

    def __init__(self, append: Append, is_stopped: Callable[[], bool]) -> None:
        self._append = append
        self._is_stopped = is_stopped
        self._waiting: queue.Queue[Entry | None] = queue.Queue(MOST_WAITING)
        self._log = log.get("shell")
        self.loss: RefusedError | None = None  # why the run is not ours any more
        self._thread = threading.Thread(target=self._work, name="holdfast-shell-events", daemon=True)
        self._thread.start()

    def put(self, entry: Entry, seconds: float = LOOK_EACH) -> bool:
        """Take an event; return False if there is no room for it yet."""
        if self.loss is not None:
            return True
        try:
            self._waiting.put(entry, timeout=seconds)
        except queue.Full:
            return False
        return True

    def close(self) -> None:
        """Wait until all events are stored, or dropped because the run has to stop."""
        while self._thread.is_alive():
            try:
                self._waiting.put(None, timeout=LOOK_EACH)
                break
            except queue.Full:
                continue
        self._thread.join()

    def _work(self) -> None:
        is_closed = False
        while not is_closed:
            found = [self._waiting.get()]
            with suppress(queue.Empty):
                while len(found) < MOST_AT_ONCE:
                    found.append(self._waiting.get_nowait())
            is_closed = None in found
            if self.loss is None and (entries := [entry for entry in found if entry is not None]):
                self._send(entries)

    def _send(self, entries: list[Entry]) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                self._append(entries)
            except (LeaseLost, NotFound, WrongState) as error:
                self.loss = error
            except (DatabaseError, psycopg.Error, OSError) as error:
                if self._is_stopped():
                    return
                self._log.warning("shell.event_delayed", error=str(error), again_in=pause)
                time.sleep(pause)
                pause = min(LONGEST_PAUSE, pause * 2)
                continue
            except Exception as error:  # noqa: BLE001 - one of them cannot be stored, which must not fail the others
                if len(entries) > 1:
                    for entry in entries:
                        self._send([entry])
                else:
                    self._log.warning("shell.event_refused", error=str(error))
            return
