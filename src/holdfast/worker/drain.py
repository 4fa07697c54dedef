"""An orderly stop: claims end, and steps that were not begun or do not end within the grace period are released.

A release does not count as a failure. After a second signal a worker releases what it holds without waiting.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import psycopg

from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.worker.exit_codes import DRAINED, NOT_TOLD, STOPPED_NOW
from holdfast.worker.settler import released

if TYPE_CHECKING:
    from holdfast.worker.loop import Worker

LAST_CALLS = 5.0  # seconds for the last calls to the database


async def drain(worker: Worker) -> int:
    """Stop the worker, and return the exit code."""
    failpoint("before_drain")
    worker.states.enter("draining")
    worker.is_ready = False
    worker.log.info("worker.draining", in_flight=worker.in_flight, grace=worker.options.grace.total_seconds())
    for attempt in released(worker.claimer.withdraw()):
        worker.settler.ended(attempt)
    until = time.monotonic() + worker.options.grace.total_seconds()
    if worker.in_flight:
        worker.show_draining()
    while worker.in_flight and worker.stop_signals < 2 and (left := until - time.monotonic()) > 0:
        await worker.wait_for_change(left)
    failpoint("before_hand_back")
    code = await _hand_back(worker)
    failpoint("after_hand_back")
    worker.leases.stop()
    worker.claimer.close()
    worker.hooks.flush(LAST_CALLS if worker.stop_signals < 2 else 0)
    worker.states.enter("stopped")
    worker.meters.stands("stopped", in_flight=0, beat=time.time())
    worker.log.info("worker.stopped", exit_code=code)
    return code


async def _hand_back(worker: Worker) -> int:
    was_told_twice = worker.stop_signals > 1
    left = list(worker.held.values())
    for attempt in left:
        attempt.stop("its worker is stopping")
    try:
        async with asyncio.timeout(LAST_CALLS):
            await worker.end_beside()
            if left:
                await worker.settler.settle(released(left))
                worker.log.warning("worker.handed_back", steps=len(left))
            await worker.retire()
    except (TimeoutError, psycopg.Error, HoldfastError) as error:
        worker.log.warning(
            "worker.not_told", steps=len(left), error=str(error), then="their leases run out on their own"
        )
        return NOT_TOLD if left else DRAINED
    return STOPPED_NOW if was_told_twice else DRAINED
