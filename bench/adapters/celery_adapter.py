"""celery with redis as its broker: prefork, results off."""

from __future__ import annotations

import os
import sys
import time

import probe
import redis
from celery import Celery
from celery.signals import worker_ready
from driver import BATCH, DSN, PROCESSES, main, pace

app = Celery("celery_adapter", broker=DSN)
app.conf.update(
    task_ignore_result=True,
    task_default_queue="noop",
    task_acks_late=os.environ.get("BENCH_ACKNOWLEDGE") == "each",
    worker_prefetch_multiplier=BATCH,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop(sent: float = 0.0) -> None:
    probe.hit(sent)


@worker_ready.connect
def on_ready(**_: object) -> None:
    probe.ready()


def setup() -> None:
    redis.Redis.from_url(DSN).flushdb()


def enqueue(n: int) -> float:
    with app.producer_pool.acquire(block=True) as producer:
        producer.connection.ensure_connection()
        begun = time.perf_counter()
        for _ in range(n):
            noop.apply_async(producer=producer)
        return time.perf_counter() - begun


def worker() -> None:
    """Become the program that its users start; it forks as many processes as are asked for, and is ready without a barrier."""
    quiet = ["-l", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    options = ["-A", "celery_adapter", "worker", "-P", "prefork", "-c", str(PROCESSES), *quiet]
    os.chdir(os.path.dirname(__file__))  # noqa: PTH120 - a string is what is wanted
    os.execv(sys.executable, [sys.executable, "-m", "celery", *options])


def trickle(rate: float, seconds: float) -> None:
    with app.producer_pool.acquire(block=True) as producer:
        for now in pace(rate, seconds):
            noop.apply_async((now,), producer=producer)


if __name__ == "__main__":
    main(setup=setup, enqueue=enqueue, worker=worker, trickle=trickle)
