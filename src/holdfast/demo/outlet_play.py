"""Plays a sale in a simulated shop: throttled, applied in part, retried, edited by a third party, checked, undone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import UUID

from holdfast.app import Holdfast
from holdfast.demo import outlets
from holdfast.demo.judge import Finding
from holdfast.rules.pass_handle import PassHandle
from holdfast.worker_processes import WorkerGroup

ITEMS = 40  # four calls
REFUSED, EDITED = "item-8", "item-5"
FOREIGN = "99.99"  # what the third party writes
PAUSE = 1  # seconds, in the shop's Retry-After
FAULTS = ({"name": "rate_limited", "count": 1, "retry_after": str(PAUSE)}, {"name": "refused", "items": [REFUSED]})
OVER = {"APPLIED", "PARTIAL", "FAILED"}
PATIENCE = 60.0  # seconds
LOOK_EACH = 0.1
NEEDED = ("uvicorn", "httpx2")  # of the extras `sim` and `http`


@dataclass
class OutletFacts:
    """What happened, by the runs and by the shop's own log."""

    planned: int = 0
    early: int = 0  # values that the preview wrote
    throttled: int = 0
    waited: float = 0.0  # seconds from the 429 to the next call
    failed: int = 0  # targets of the run when it had ended in part
    applied: int = 0
    drift: tuple[str, ...] = ()  # items that the pass found
    rolled_back: int = 0
    conflicts: int = 0
    is_edit_kept: bool = False
    twice: int = 0


@dataclass(frozen=True, slots=True)
class Outlet:
    """A running shop."""

    channel: str
    url: str
    log: Path

    def control(self, method: str, path: str, given: Any = None) -> None:
        """Change its faults or a price, as its command line does."""
        from holdfast.connectors import http

        http.call(method, f"{self.url}/_sim{path}", json=given)

    def entries(self, entry: str) -> list[dict[str, Any]]:
        """Read its log: its calls, or its values."""
        lines = (json.loads(line) for line in self.log.read_text("utf-8").splitlines())
        return [each for each in lines if each["entry"] == entry]


class OutletPlay:
    """One sale, with a worker of its own: the demo kills others."""

    def __init__(self, dsn: str, outlet: Outlet, group: WorkerGroup) -> None:
        self._outlet = outlet
        self._facts = OutletFacts()
        self._hf = Holdfast(dsn)
        outlets.register(self._hf, outlet.channel, outlet.url)
        group.start(f"rules:{outlet.channel}")
        self._run = self._hf.rules.preview(outlets.SALE, channel=outlet.channel)
        self._facts.planned = self._run.summary.counts["targets"]
        self._facts.early = len(self._written())
        outlet.control("PUT", "/faults", FAULTS)
        self._run.apply()
        self._runs = [self._run]
        self._story = self._told()

    @property
    def run_id(self) -> UUID:
        """The run of the sale."""
        return self._run.id

    def see_to_it(self) -> None:
        """Do what a person would do now."""
        next(self._story, None)

    def wait(self) -> None:
        """Wait until it is over, and call off the passes that are due later: the shop closes with the demo."""
        until = time.monotonic() + PATIENCE
        for _ in self._story:
            if time.monotonic() > until:
                break
            time.sleep(LOOK_EACH)
        self._read_log()
        for each in (due for run in self._runs for due in run.passes() if due.finished_at is None):
            PassHandle(each.pass_id, self._hf._engine).cancel("the demo is over")
        self._hf.close()

    def findings(self) -> list[Finding]:
        """Compare what happened with what must have happened."""
        return judged(self._facts)

    def _told(self) -> Iterator[None]:
        facts, run = self._facts, self._run
        yield from _until(lambda: run.summary.status == "PARTIAL")
        facts.failed = run.summary.counts["failed"]
        self._outlet.control("PUT", "/faults", [])
        run.retry_failed(reason="the shop takes the item now")
        yield from _until(lambda: run.summary.status == "APPLIED")
        facts.applied = run.summary.counts["applied"]
        self._outlet.control("POST", "/edit", {"id": EDITED, "price": FOREIGN})
        checked = run.reconcile()
        yield from _until(lambda: checked.summary.finished_at is not None)
        facts.drift = tuple(each.item_id for each in run.mismatches())
        undo = run.rollback(apply=True, reason="the sale is over")
        self._runs.append(undo)
        yield from _until(lambda: undo.summary.status in OVER)
        facts.rolled_back = run.summary.counts["rolledBack"]
        facts.conflicts = sum(each.reason == "conflict" for each in undo.targets("FAILED"))

    def _written(self) -> Counter[str]:
        return Counter(each["item"] for each in self._outlet.entries("value") if each["by"] == "call")

    def _read_log(self) -> None:
        facts = self._facts
        calls = [each for each in self._outlet.entries("call") if each["place"] == "write"]
        places = [place for place, each in enumerate(calls) if each["fault"] == "rate_limited"]
        facts.throttled = len(places)
        facts.waited = min((calls[n + 1]["at"] - calls[n]["at"] for n in places if n + 1 < len(calls)), default=0.0)
        written = self._written()
        facts.twice = sum(times > (1 if item == EDITED else 2) for item, times in written.items())
        values = [each["price"] for each in self._outlet.entries("value") if each["item"] == EDITED]
        facts.is_edit_kept = values[-1] == FOREIGN


@contextmanager
def selling(batch: str) -> Iterator[Outlet | None]:
    """Run a shop during the block, as a process of its own; yield None without the extras `sim` and `http`."""
    if any(find_spec(each) is None for each in NEEDED):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        log = Path(folder) / "shop.jsonl"
        command = [sys.executable, "-m", "holdfast.demo.outlet_shop", str(ITEMS), str(log)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                url = "" if process.stdout is None else process.stdout.readline().strip()
                outlet = Outlet(f"outlet-{batch}", url, log)
                os.environ.update({outlets.CHANNEL: outlet.channel, outlets.URL: outlet.url})
                yield outlet
            finally:
                for name in (outlets.CHANNEL, outlets.URL):
                    os.environ.pop(name, None)
                process.kill()


def judged(facts: OutletFacts) -> list[Finding]:
    """Judge each figure."""
    is_planned = facts.planned == ITEMS and facts.early == 0
    is_throttled = facts.throttled == 1 and facts.waited >= PAUSE
    others = ITEMS - 1
    is_undone, is_kept = facts.rolled_back == others, facts.conflicts == 1 and facts.is_edit_kept
    return [
        Finding("outlet: planned", facts.planned, "a preview changes nothing in the shop", is_planned),
        Finding("outlet: 429", facts.throttled, f"no call for {PAUSE} s, as the shop asked", is_throttled),
        Finding("outlet: refused", facts.failed, "the run ended in part", facts.failed == 1),
        Finding("outlet: applied", facts.applied, "all, after a retry", facts.applied == ITEMS),
        Finding("outlet: drift", len(facts.drift), "a third party's edit, found by a pass", facts.drift == (EDITED,)),
        Finding("outlet: rolled back", facts.rolled_back, "all but that one", is_undone),
        Finding("outlet: conflicts", facts.conflicts, "its price was not overwritten", is_kept),
        Finding("outlet: written twice", facts.twice, "once per direction, by the shop's log", facts.twice == 0),
    ]


def _until(happened: Callable[[], bool]) -> Iterator[None]:
    while not happened():
        yield
