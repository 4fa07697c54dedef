"""Rules at a simulated shop: what an apply, a rollback and a pass cost beside their calls by hand, whether a limit is
kept by four workers, and how long the newest change of each item takes to find beside many older ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

import engines
from bench import Bench
from holdfast import Holdfast
from holdfast.kernel import calls
from holdfast.kernel.db import run as made
from holdfast.rules import Price, Rule, everything, percent
from holdfast.rules.channel import ChannelCall, Write
from holdfast.rules.handle import RuleRun
from holdfast.rules.http import HttpChannel
from holdfast.rules.pass_handle import PassHandle
from hot_loop import install
from sections import rules

CHANNEL = "outlet"
QUEUE = f"rules:{CHANNEL}"
TENTH = Rule("tenth", where=everything, change=percent(-10))
RATE = 50.0  # calls per second
BURST = 10.0  # calls at once: less than the shop takes, because calls do not arrive as evenly as they begin
PACED_BATCH = 2  # targets of a call: the limit is about calls
PACED_WORKERS = 4
LEASE = timedelta(hours=1)
OLDER = 100  # changes of each item beside its newest
GROWN = """
insert into rules.ledger (id, at, tenant, channel, item_id, currency, price_before, price_after, source, effect,
                          rule_id, rule_version, run_id, step_id)
select -n, l.at - interval '1 day', l.tenant, l.channel, l.item_id, l.currency, l.price_before, l.price_after, l.source,
       l.effect, l.rule_id, l.rule_version, l.run_id, -n
  from (select row_number() over () + o * %(count)s as n, l.*
          from generate_series(0, %(older)s - 1) o, rules.ledger l where l.run_id = %(run)s) l
"""


@dataclass(frozen=True)
class Outlet:
    """A simulated shop that runs."""

    url: str
    log: Path

    def times(self, entry: str) -> list[float]:
        """Return when each write, or each call that was throttled, came."""
        with self.log.open("rb") as lines:
            found = [json.loads(line) for line in lines if f'"entry": "{entry}"'.encode() in line[:120]]
        return [each["at"] for each in found if each["place"] == "write"]


def measure(bench: Bench, number: int, count: int) -> None:
    """Apply to a shop, check it and undo it; then the same calls by hand."""
    ours, by_hand = engines.named("holdfast"), engines.named("baseline")
    dsn = bench.server.fresh("rules outlet")
    install(dsn, "holdfast")
    with outlet(bench, count) as shop:
        hf = app(dsn, shop)
        run = hf.rules.preview(TENTH, channel=CHANNEL)
        apply = applied(bench, shop, dsn, run)
        bench.record(ours, "apply to a shop", number, count / apply, "targets/s", n=count)
        bench.record(ours, "pass", number, count / checked(bench, shop, dsn, run), "targets/s", n=count)
        undo = run.rollback()
        bench.record(ours, "rollback", number, count / applied(bench, shop, dsn, undo), "targets/s", n=count)
        newest(bench, number, count, undo, dsn)
        hf.close()
    with outlet(bench, count) as shop:
        write, read = calls_by_hand(shop, count)
    bench.record(by_hand, "apply to a shop", number, count / (write + rules.no_ops(bench, count)), "targets/s", n=count)
    bench.record(by_hand, "pass", number, count / read, "targets/s", n=count)
    paced(bench, number, bench.size(20, 5))


def app(dsn: str, shop: Outlet, **options: Any) -> Holdfast:
    """Return an app with the shop as its channel."""
    hf = Holdfast(dsn)
    hf.rules.channel(CHANNEL, HttpChannel(shop.url), **{"batch": rules.BATCH, **options})
    return hf


def applied(bench: Bench, shop: Outlet, dsn: str, run: RuleRun) -> float:
    """Apply a run with one worker, and return the seconds from its first claim to its end."""
    bench.server.settle(dsn)
    run.apply()
    with rules.worker(dsn, QUEUE, OUTLET_URL=shop.url):
        summary = run.result(timeout=rules.WAIT)
    assert summary.finished_at is not None
    assert summary.started_at is not None
    called_off(dsn)
    return (summary.finished_at - summary.started_at).total_seconds()


def checked(bench: Bench, shop: Outlet, dsn: str, run: RuleRun) -> float:
    """Check a run with one worker, and return the seconds from the first claim of the pass to its end."""
    bench.server.settle(dsn)
    planned: PassHandle = run.reconcile()
    with rules.worker(dsn, QUEUE, OUTLET_URL=shop.url):
        found = planned.result(timeout=rules.WAIT)
    assert found.mismatches == 0
    assert found.started_at is not None
    assert found.finished_at is not None
    return (found.finished_at - found.started_at).total_seconds()


def called_off(dsn: str) -> None:
    """Cancel the passes that are due soon: they would be read beside what is measured next."""
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute("select holdfast.cancel(pass_id::text) from rules.reconciliations where finished_at is null")


def calls_by_hand(shop: Outlet, count: int) -> tuple[float, float]:
    """Make the same writes and the same reads with the channel, one after the other, and return the seconds of each."""
    channel = HttpChannel(shop.url)
    writes = [_write(number) for number in range(1, count + 1)]
    seconds = []
    for is_write in (True, False):
        begun = time.perf_counter()
        for first in range(0, count, rules.BATCH):
            some, call = writes[first : first + rules.BATCH], ChannelCall(key=f"{first}")
            if is_write:
                channel.write(some, call)
            else:
                channel.read([write.item_id for write in some], call)
        seconds.append(time.perf_counter() - begun)
    channel.close()
    return seconds[0], seconds[1]


def _write(number: int) -> Write:
    """Return the change of an item by the rule: the simulator's prices are known."""
    price = 100 * (10 + number % 90)
    return Write(f"item-{number}", Price(price, None, "EUR"), Price(price * 9 // 10, None, "EUR"))


def newest(bench: Bench, number: int, count: int, run: RuleRun, dsn: str) -> None:
    """Look for the newest change of each item, as a pass does: beside no older changes, and beside many."""
    ours = engines.named("holdfast")
    planned = run.reconcile()
    with psycopg.connect(bench.server.admin(dsn), autocommit=True) as db:
        steps = made(db, calls.claim_steps("bench", QUEUE, [f"reconcile:{CHANNEL}"], batch=1000, lease=LEASE))
        for what in ("few", "many"):
            if what == "many":
                db.execute(GROWN, {"count": count, "older": OLDER, "run": run.id})
            bench.server.settle(dsn)
            for turn in ("warm", "measured"):
                begun = time.perf_counter()
                for step in steps:
                    db.execute("select count(*) from rules.page_targets(%s, %s, 10000)", [step.step_id, step.lease_id])
                seconds = time.perf_counter() - begun
                if turn == "measured":
                    bench.record(ours, f"newest, {what} changes", number, 1000 * seconds, "ms", n=count)
        db.execute("select holdfast.cancel(%s)", [str(planned.id)])


def paced(bench: Bench, number: int, seconds: int) -> None:
    """Apply under a limit of calls with four workers, to a shop that refuses more."""
    ours = engines.named("holdfast")
    count = int(RATE * PACED_BATCH * (seconds + 2))
    dsn = bench.server.fresh("rules paced")
    install(dsn, "holdfast")
    settings = {"OUTLET_RATE": str(RATE), "OUTLET_BURST": str(BURST), "OUTLET_BATCH": str(PACED_BATCH)}
    with outlet(bench, count, "--rate", str(RATE)) as shop, ExitStack() as stack:
        hf = app(dsn, shop, batch=PACED_BATCH, rate=RATE, per=1, burst=BURST)
        run = hf.rules.preview(TENTH, channel=CHANNEL)
        for _ in range(PACED_WORKERS):
            stack.enter_context(rules.worker(dsn, QUEUE, OUTLET_URL=shop.url, **settings))
        time.sleep(2)  # the preview has used up what the shop gives at once
        run.apply()
        run.result(timeout=rules.WAIT)
        hf.close()
        sent, throttled = shop.times("call"), shop.times("throttled")
    begun = min(sent) + 1
    later, refused = ([at for at in times if at > begun] for times in (sent, throttled))
    pace = (len(later) - len(refused)) / (max(later) - begun)
    bench.record(ours, "50 calls/s over 4 workers", number, pace, "calls/s", n=count)
    bench.record(ours, "429 after a second", number, len(refused), "calls", n=count)


@contextmanager
def outlet(bench: Bench, items: int, *options: str) -> Iterator[Outlet]:
    """Run a simulated shop as a process of its own."""
    folder = bench.server.folder / "outlet"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "shop.jsonl"
    log.unlink(missing_ok=True)
    command = [sys.executable, "-m", "holdfast", "sim", "shop", "--items", str(items), "--port", "0", "--log", str(log)]
    with subprocess.Popen([*command, "--json", *options], stdout=subprocess.PIPE, text=True, env=_plain()) as process:
        assert process.stdout is not None
        try:
            yield Outlet(json.loads(process.stdout.readline())["url"], log)
        finally:
            process.terminate()


def _plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
