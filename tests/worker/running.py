"""What the tests of the worker arrange: apps, workers that run in this process, and ways to wait for what they do."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from prometheus_client import generate_latest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.testing import events
from holdfast.worker.lanes.loop import new_loop
from holdfast.worker.loop import Worker
from holdfast.worker.options import Options
from kernel.steps import step_row

DB = Connection[Any]
PATIENCE = 30.0  # seconds; only a broken test waits that long
QUICK: dict[str, Any] = {"error_wait": timedelta(seconds=0.05), "poll_min": timedelta(seconds=0.01)}


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def worker_of(app: Holdfast, **options: Any) -> Worker:
    """Make a worker that is quick to look again."""
    return Worker(app.dsn, app._engine.registry, Options(**{**QUICK, **options}), app._engine.hooks)


def burst(app: Holdfast, **options: Any) -> Worker:
    """Work until nothing is due; the worker that did."""
    worker = worker_of(app, burst=True, **options)
    _run(worker)
    return worker


@contextmanager
def working(app: Holdfast, **options: Any) -> Iterator[Worker]:
    """Have a worker work in a thread for as long as the block lasts, and drain it."""
    with running(worker_of(app, **options)) as worker:
        yield worker


@contextmanager
def running(worker: Worker) -> Iterator[Worker]:
    """Run a worker in a thread for as long as the block lasts, and drain it."""
    loop = new_loop()
    thread = threading.Thread(target=_run, args=[worker, loop], daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(worker.stop)
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the worker did not stop"


def until(is_so: Callable[[], Any], what: str = "it") -> None:
    """Wait until something is so."""
    give_up_at = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < give_up_at, f"{what} never came"
        time.sleep(0.005)


def until_event(db: DB, step: int, event: str) -> None:
    """Wait until the journal has an event of a step."""
    until(lambda: event in events(db, step=step), event)


def error_of(db: DB, step_id: int) -> dict[str, str]:
    error: dict[str, str] = step_row(db, step_id)["error"]
    return error


def metric(worker: Worker, name: str, **labels: str) -> float:
    """Read one of a worker's meters as a scrape would; 0 for one that was never touched."""
    return worker.meters.registry.get_sample_value(name, labels) or 0.0


def scraped(worker: Worker) -> str:
    return generate_latest(worker.meters.registry).decode()


def read(event: threading.Event) -> bool:
    """Wait for a handler to say so."""
    return event.wait(PATIENCE)


def _run(worker: Worker, loop: asyncio.AbstractEventLoop | None = None) -> None:
    loop = loop or new_loop()
    try:
        loop.run_until_complete(worker.run())
    finally:
        loop.close()
