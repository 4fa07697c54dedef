"""Tasks as users write them down: what they take, how they are started, and which definitions cannot work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import AsyncConnection
from pydantic import BaseModel

from holdfast import Ctx, Holdfast
from holdfast.errors import BadDefinition, BadInput, InputRefused, KeyConflict
from holdfast.testing import Clock
from kernel.steps import DB, step_row, value
from worker.running import burst

if TYPE_CHECKING:
    from decimal import Decimal

pytestmark = pytest.mark.one_server


class Address(BaseModel):
    street: str
    number: int = 1


@dataclass
class Parcel:
    grams: int
    to: Address


def started(db: DB) -> int:
    count: int = value(db, "select count(*) from holdfast.steps")
    return count


@pytest.fixture
def send(hf: Holdfast) -> Any:
    @hf.task(queue="post")
    def send(parcel: Parcel, copies: int = 2, *, express: bool = False) -> dict[str, Any]:
        return {"street": parcel.to.street, "all": parcel.grams * copies, "express": express}

    return send


PARCEL = Parcel(5, Address(street="Elm"))


def test_inputs_travel_as_their_types(hf: Holdfast, db: DB, send: Any) -> None:
    """W-09, W-43: a dataclass, a model in it, defaults of the handler that runs."""
    handle = send.start(PARCEL, express=True)
    burst(hf, queues=("post",))

    assert handle.result() == {"street": "Elm", "all": 10, "express": True}
    assert step_row(db, handle.id)["input"] == {
        "parcel": {"grams": 5, "to": {"street": "Elm", "number": 1}},
        "express": True,
    }


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "parcel: Field required"),
        ((PARCEL,), {"copeis": 3}, "copeis"),
        ((PARCEL, "many"), {}, "copies"),
        ((PARCEL, 1, True, 4), {}, "4 positional arguments"),
        ((PARCEL,), {"parcel": PARCEL}, "got parcel twice"),
        ((PARCEL, 1, True), {}, "express"),
    ],
    ids=["missing", "wrong name", "wrong type", "too many", "twice", "by place what goes by name"],
)
def test_arguments_that_do_not_fit_are_refused_with_what_it_takes(
    db: DB, send: Any, args: tuple[Any, ...], kwargs: dict[str, Any], words: str
) -> None:
    """W-52, C-89: nothing is started."""
    with pytest.raises(InputRefused, match=words) as raised:
        send.start(*args, **kwargs)

    assert "twice" in words or "parcel:" in str(raised.value)
    assert started(db) == 0


def test_an_argument_that_is_no_json_is_refused(hf: Holdfast, db: DB) -> None:
    """W-52."""

    @hf.task
    def take(thing: Any) -> None: ...

    for odd in (object(), "\ud800", {"deep": {1: object()}}):
        with pytest.raises((InputRefused, BadInput)):
            take.start(thing=odd)
    with pytest.raises(BadInput):
        take.start(thing="a\0b")
    assert started(db) == 0


def test_called_it_runs_here_and_now(db: DB, send: Any) -> None:
    """W-09: without the database."""
    assert send(PARCEL, 3)["all"] == 15
    assert started(db) == 0


def test_a_key_starts_it_once_for_good(hf: Holdfast, db: DB, send: Any) -> None:
    """W-43."""
    first, again = (send.options(key="k").start(PARCEL) for _ in range(2))

    assert (first.id, started(db)) == (again.id, 1)
    with pytest.raises(KeyConflict):
        send.options(key="k").start(PARCEL, copies=9)


def test_a_unique_key_starts_it_once_while_it_is_not_over(hf: Holdfast, db: DB, send: Any) -> None:
    """W-43."""
    one = send.options(unique_key="u")
    first, again = one.start(PARCEL), one.start(PARCEL)
    assert again.id == first.id
    burst(hf, queues=("post",))

    assert one.start(PARCEL).id != first.id


def test_the_options_of_a_start_are_kept(db: DB, clock: Clock, send: Any) -> None:
    """W-43, W-59."""
    later = clock.freeze() + timedelta(hours=1)

    plain = step_row(db, send.start(PARCEL).id)
    row = step_row(db, send.options(due_at=later, priority=7, queue="night", tenant="acme").start(PARCEL).id)

    assert (plain["queue"], plain["priority"], plain["tenant"]) == ("post", 0, "default")
    assert (row["due_at"], row["priority"], row["queue"], row["tenant"]) == (later, 7, "night", "acme")


def test_many_are_started_at_once_or_none(db: DB, send: Any) -> None:
    """W-43."""
    parcel = {"grams": 1, "to": {"street": "Elm"}}

    assert send.options(priority=3).start_many({"parcel": parcel} for _ in range(1000)) == 1000
    with pytest.raises(InputRefused):
        send.start_many([{"parcel": parcel}, {"parcel": 3}])

    assert started(db) == 1000
    assert value(db, "select count(*) from holdfast.steps where queue = 'post' and priority = 3") == 1000


@pytest.mark.parametrize("many", [False, True])
def test_started_in_my_transaction_it_goes_with_it(dsn: str, db: DB, send: Any, many: bool) -> None:
    """W-60: rolled back, it was never started."""
    with psycopg.connect(dsn) as mine:
        task = send.options(conn=mine)
        for keeps in (False, True):
            task.start_many([{"parcel": PARCEL}]) if many else task.start(PARCEL)
            assert started(db) == 0
            mine.commit() if keeps else mine.rollback()

    assert started(db) == 1


async def _astart(hf: Holdfast, dsn: str, send: Any) -> list[int]:
    async with await AsyncConnection.connect(dsn) as mine:
        await send.options(conn=mine).astart(PARCEL)
        await mine.rollback()
        kept = await send.options(conn=mine).astart(PARCEL)
        await mine.commit()
    own = await send.astart(PARCEL)
    seen = [(await hf.handle(one.id).astatus()).id for one in (kept, own)]
    with pytest.raises(BadInput, match=r"psycopg\.Connection"), psycopg.connect(dsn) as wrong:
        await send.options(conn=wrong).astart(PARCEL)
    await hf.aclose()
    return seen


def test_the_async_start_does_the_same(hf: Holdfast, dsn: str, db: DB, send: Any) -> None:
    """W-60."""
    seen = asyncio.run(_astart(hf, dsn, send))

    assert (len(seen), started(db)) == (2, 2)


def test_a_connection_of_the_wrong_sort_is_refused(db: DB, send: Any) -> None:
    """W-60."""
    with pytest.raises(BadInput, match="str"):
        send.options(conn="postgresql://").start(PARCEL)


def test_a_task_may_start_tasks(hf: Holdfast, db: DB) -> None:
    """W-01."""

    @hf.task
    def leaf(number: int) -> int:
        return number

    @hf.task
    def root() -> list[int]:
        return [leaf.start(number=n).id for n in range(3)]

    handle = root.start()
    burst(hf)

    assert [hf.handle(one).result(timeout=30) for one in handle.result()] == [0, 1, 2]


def _inner() -> Any:
    def inner() -> None: ...

    return inner


def _any_number(*numbers: int) -> None: ...
def _any_names(**names: int) -> None: ...
def _by_place(number: int, /) -> None: ...
def _yields() -> Iterator[int]:
    yield 1


async def _ayields() -> AsyncIterator[int]:
    yield 1


def _unreadable(price: Decimal) -> None: ...
def _no_json(thread: psycopg.Connection[Any]) -> None: ...
def _two(a: Ctx, b: Ctx) -> None: ...
async def _waits() -> None: ...
def _plain() -> None: ...


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (_any_number, {}, "any number"),
        (_any_names, {}, "takes any names"),
        (_by_place, {}, "is positional only"),
        (_yields, {}, "generator"),
        (_ayields, {}, "generator"),
        (_unreadable, {}, "cannot be read.*TYPE_CHECKING"),
        (_no_json, {}, "as JSON"),
        (_two, {}, "takes two contexts"),
        (_waits, {"cpu": True}, "async handler"),
        (_plain, {"timeout": 0}, "timeout must be longer than 0"),
        (_plain, {"lease": timedelta(seconds=-1)}, "lease .*negative"),
        (_plain, {"name": "a\nb"}, r"'a\\nb'"),
        (_inner(), {"cpu": True}, "top of a module"),
        ("mail", {}, "function, got 'mail'"),
    ],
)  # fmt: skip
def test_a_definition_that_cannot_work_is_refused(function: Any, options: Any, words: str) -> None:
    """W-52: when it is written down, not when it is run."""
    with pytest.raises(BadDefinition, match=words):
        Holdfast("postgresql://").task(**options)(function)


def test_a_context_that_does_not_come_first_is_refused_and_the_fix_is_shown() -> None:
    """A type checker can remove a parameter from a signature only if it comes first."""
    hf = Holdfast("postgresql://")

    def late(number: int, context: Ctx, *, urgent: bool = False) -> None: ...

    for define in (hf.task, hf.flow("order").step):
        with pytest.raises(BadDefinition) as refused:
            define(late)
        assert refused.value.where == "context"
        assert "late(context: Ctx, number, *, urgent=False)" in str(refused.value.next)


def test_two_handlers_of_one_name_are_refused() -> None:
    """W-52."""
    hf = Holdfast("postgresql://")
    hf.task(name="mail")(_plain)
    hf.task(name="mail")(_plain)  # the same again is no other

    with pytest.raises(BadDefinition, match="mail"):
        hf.task(name="mail")(_waits)
