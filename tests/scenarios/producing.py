"""Producers that go on whatever happens to the server, and know what was acknowledged to them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

import psycopg

from holdfast import Holdfast
from holdfast.errors import HoldfastError
from holdfast.kernel import calls

KINDS = ("deposit", "doze")


@dataclass
class Produced:
    """What came of it so far."""

    acknowledged: int = 0
    refusals: list[Exception] = field(default_factory=list)


@contextmanager
def producing(dsn: str, producers: int = 2) -> Iterator[list[Produced]]:
    """Start tasks for as long as the block lasts, each by its key and again until it is acknowledged.

    What was begun is brought to its end, unless the block failed.
    """
    enough, in_vain = Event(), Event()
    told = [Produced() for _ in range(producers)]
    with ThreadPoolExecutor(producers) as pool:
        going = [pool.submit(_produce, Holdfast(dsn), number, one, enough, in_vain) for number, one in enumerate(told)]
        try:
            yield told
        except BaseException:
            in_vain.set()
            raise
        finally:
            enough.set()
    for one in going:
        one.result()


def acknowledged(told: list[Produced]) -> int:
    return sum(one.acknowledged for one in told)


def _produce(hf: Holdfast, number: int, told: Produced, enough: Event, in_vain: Event) -> None:
    is_open = False
    while not in_vain.is_set() and (is_open or not enough.is_set()):
        kind = KINDS[told.acknowledged % len(KINDS)]
        try:
            hf._engine.make(calls.start_task(kind, {"seconds": 0.01}, key=f"{number}:{told.acknowledged}"))
        except (psycopg.OperationalError, HoldfastError) as error:
            told.refusals.append(error)
            is_open = True
        else:
            told.acknowledged += 1
            is_open = False
    hf.close()
