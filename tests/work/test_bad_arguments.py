"""Arguments are checked where they are given: the error names the field, the value and a correct one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from holdfast import Ctx, Holdfast, RetryPolicy
from holdfast.env import Env
from holdfast.errors import BadAddress, BadDefinition, BadInput, HoldfastError, InputRefused
from holdfast.flow import StepRetry
from holdfast.ingest import Rows, Table
from holdfast.rules import Guard
from kernel.steps import DB
from worker.running import burst

pytestmark = pytest.mark.one_server

NAIVE = datetime(2030, 1, 2, 3, 4)  # noqa: DTZ001 - that is what is refused
AWARE = NAIVE.astimezone()


class Case(NamedTuple):
    """A bad call, its error, the field that it names, the value that it shows, and what it says to write."""

    call: Callable[[Holdfast], Any]
    error: type[HoldfastError]
    where: str
    shown: str
    correct: str


def count(number: int, day: datetime | None = None) -> int:
    return number


def task(hf: Holdfast, **options: Any) -> Any:
    return hf.task(**options)(count) if options else hf.task(count)


def forgetful(hf: Holdfast, **context: Any) -> Any:
    """A flow whose second step takes the first one's result and does not wait for it."""
    order = hf.flow("order", **context)

    @order.step
    def reserve(order_id: int) -> str:
        return f"reserved {order_id}"

    @order.step
    def charge(order_id: int, reserve: str) -> str:
        return reserve

    return order


def step(hf: Holdfast, **options: Any) -> Any:
    return hf.flow("order").step(**options)(count)


def source_table(**options: Any) -> Table:
    return Table(Env("SHOP_DSN"), "orders", key="id", updated_at="changed_at", **options)


CASES = {
    "a task's retry as text": Case(lambda hf: task(hf, retry="5"), BadDefinition, "retry", "'5'", "RetryPolicy("),
    "a task's retry as a switch": Case(lambda hf: task(hf, retry=True), BadDefinition, "retry", "True", "use 5"),
    "a task's retry below 0": Case(lambda hf: task(hf, retry=-1), BadDefinition, "retry", "-1", "use 5"),
    "a flow's law for a task": Case(
        lambda hf: task(hf, retry=StepRetry()), BadDefinition, "retry", "StepRetry", "RetryPolicy("
    ),
    "a step's retry as text": Case(lambda hf: step(hf, retry="5"), BadDefinition, "retry", "'5'", "use 5"),
    "a step's retry as a switch": Case(lambda hf: step(hf, retry=True), BadDefinition, "retry", "True", "use 5"),
    "a policy's base": Case(lambda _: RetryPolicy(base=-10), BadDefinition, "base", "-10", '"10s"'),
    "a policy's limit": Case(lambda _: RetryPolicy(limit=0), BadDefinition, "limit", "0", "use 3"),
    "a policy's jitter": Case(lambda _: RetryPolicy(jitter=7), BadDefinition, "jitter", "7", "use 0.1"),
    "a policy's growth": Case(lambda _: RetryPolicy(growth=0.5), BadDefinition, "growth", "0.5", "use 2"),
    "a naive due_at": Case(lambda hf: task(hf).options(due_at=NAIVE), BadInput, "due_at", repr(NAIVE), "now(UTC)"),
    "a timedelta for due_at": Case(
        lambda hf: task(hf).options(due_at=timedelta(minutes=5)), BadInput, "due_at", "timedelta", 'delay="10m"'
    ),
    "text for due_at": Case(lambda hf: task(hf).options(due_at="soon"), BadInput, "due_at", "'soon'", 'delay="10m"'),
    "delay": Case(lambda hf: task(hf).options(delay="soon"), BadInput, "delay", "'soon'", '"1h30m"'),
    "delay and due_at": Case(
        lambda hf: task(hf).options(delay="5m", due_at=AWARE), BadInput, "delay", "0:05:00", "leave one out"
    ),
    "a flow's naive due_at": Case(
        lambda hf: forgetful(hf).options(due_at=NAIVE), BadInput, "due_at", repr(NAIVE), "now(UTC)"
    ),
    "a flow's delay and due_at": Case(
        lambda hf: forgetful(hf).options(delay=5, due_at=AWARE), BadInput, "delay", "0:00:05", "leave one out"
    ),
    "a flow's delay under a key": Case(
        lambda hf: forgetful(hf).options(delay=5, key="k"), BadInput, "delay", "k", "use due_at"
    ),
    "a flow's delay without its first step": Case(
        lambda hf: forgetful(hf).options(delay=5, skip=["reserve"]), BadInput, "skip", "reserve", "delay and due_at"
    ),
    "an empty queue of a task": Case(lambda hf: task(hf, queue=""), BadDefinition, "queue", "''", "mail"),
    "an empty queue of a step": Case(lambda hf: step(hf, queue=""), BadDefinition, "queue", "''", "mail"),
    "an empty queue of a start": Case(lambda hf: task(hf).options(queue=""), BadInput, "queue", "''", "mail"),
    "an empty key": Case(lambda hf: task(hf).options(key=""), BadInput, "key", "''", "order:42"),
    "text for an int": Case(lambda hf: task(hf).start("2"), InputRefused, "number", "valid integer", "number: 'int'"),
    "text for an int of a flow": Case(
        lambda hf: forgetful(hf).start(order_id="2", reserve="x"), InputRefused, "order_id", "valid integer", "order_id"
    ),
    "an unknown argument": Case(lambda hf: task(hf).start(nmber=2), InputRefused, "number", "nmber", "number"),
    "hf.handle of text": Case(lambda hf: hf.handle("garbage"), BadInput, "id", "'garbage'", "runs list"),
    "hf.handle of None": Case(lambda hf: hf.handle(None), BadInput, "id", "None", "runs list"),  # type: ignore[arg-type]
    "a flow's handle": Case(lambda hf: forgetful(hf).handle("garbage"), BadInput, "id", "'garbage'", "handle"),
    "hf.flow on a function": Case(lambda hf: hf.flow(count), BadDefinition, "name", "count", "@order.step above def"),
    "a forgotten after": Case(
        lambda hf: forgetful(hf).start(order_id=1), InputRefused, "reserve", "charge", "@order.step(after=reserve)"
    ),
    "a forgotten after beside a declared context": Case(
        lambda hf: forgetful(hf, context={"type": "object", "properties": {"order_id": {"type": "integer"}}}),
        BadDefinition, "reserve", "charge", "after=reserve",
    ),
    "after what is no step": Case(lambda hf: step(hf, after=count), BadDefinition, "after", "count", "after=["),
    "an unknown option of a task": Case(lambda hf: task(hf, quue="mail"), BadDefinition, "quue", "quue", "queue"),
    "an unknown option of a start": Case(lambda hf: task(hf).options(dealy=5), BadInput, "dealy", "dealy", "delay"),
    "an unknown option of a flow": Case(
        lambda hf: hf.flow("order", contxt=dict), BadDefinition, "contxt", "contxt", "context"  # type: ignore[call-arg]
    ),
    "an unknown option of a flow's start": Case(
        lambda hf: forgetful(hf).options(prioritty=5), BadInput, "prioritty", "prioritty", "tenant"
    ),
    "an unknown option of a policy": Case(
        lambda _: RetryPolicy(max_retries=5), BadDefinition, "max_retries", "max_retries", "limit"  # type: ignore[call-arg]
    ),
    "an unknown option of a step": Case(lambda hf: step(hf, aftr=1), BadDefinition, "aftr", "aftr", "after"),
    "an unknown option of an ops run": Case(
        lambda hf: hf.ops.queue("shop", env="prod", metdata={}), BadInput, "metdata", "metdata", "metadata"  # type: ignore[call-arg]
    ),
    "an unknown option of an ops run, async": Case(
        lambda hf: asyncio.run(hf.ops.aqueue("shop", env="prod", git_shaa="x")),  # type: ignore[call-arg]
        BadInput, "git_shaa", "git_shaa", "git_sha",
    ),
    "an unknown option of an ops schedule": Case(
        lambda hf: hf.ops.schedule("nightly", "shop", env="prod", crn="0 2 * * *"),  # type: ignore[call-arg]
        BadDefinition, "crn", "crn", "cron",
    ),
    "an unknown option of a rule's schedule": Case(
        lambda hf: hf.rules.schedule("tenth", channel="shop", evry="1h"), BadDefinition, "evry", "evry", "every"  # type: ignore[call-arg]
    ),
    "an unknown option of a preview": Case(
        lambda hf: hf.rules.preview("tenth", chanel="shop"), BadInput, "chanel", "chanel", "channel"  # type: ignore[call-arg, arg-type]
    ),
    "an unknown option of a schedule": Case(
        lambda hf: hf.schedule("nightly", task(hf), {"number": 1}, evry="1h"),  # type: ignore[call-arg]
        BadDefinition, "evry", "evry", "every",
    ),
    "an unknown guardrail": Case(
        lambda _: Guard(minimun=1), BadDefinition, "minimun", "minimun", "minimum"  # type: ignore[call-arg]
    ),
    "a DSN that is a number": Case(lambda _: Holdfast(5), BadAddress, "dsn", "int", "postgresql://"),  # type: ignore[arg-type]
    "one number for many": Case(
        lambda hf: task(hf).start_many(5), InputRefused, "arguments", "int", "pass ["
    ),
    "rows that are a number": Case(lambda _: Rows(5, "id"), BadDefinition, "rows", "int", "pass a list"),  # type: ignore[arg-type]
    "rows in empty pages": Case(
        lambda _: Rows([], "id", page_size=0), BadDefinition, "page_size", "0", "leave it out"
    ),
    "a table in empty pages": Case(
        lambda _: source_table(page_size=0), BadDefinition, "page_size", "0", "leave it out"
    ),
    "a table's unknown time zone": Case(
        lambda _: source_table(timezone="Mars"), BadDefinition, "timezone", "'Mars'", "Europe/Berlin"
    ),
    "a table's time zone as a number": Case(
        lambda _: source_table(timezone=1), BadDefinition, "timezone", "1", "Europe/Berlin"
    ),
    "a timeout of a result": Case(
        lambda hf: hf.handle(1).result(timeout="soon"), BadInput, "timeout", "'soon'", '"1h30m"'
    ),
}  # fmt: skip
OF_MANY = {  # these are read while they are sent
    "text for an int": Case(
        lambda hf: task(hf).start_many([{"number": "2"}]), InputRefused, "number", "valid integer", "number: 'int'"
    ),
    "a tuple": Case(
        lambda hf: task(hf).start_many([{"number": 1}, (2,)]), InputRefused, "arguments[1]", "tuple", '{"number": …'
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_argument_is_refused_where_it_is_given(name: str) -> None:
    check(Holdfast("postgresql://nowhere"), CASES[name])  # nothing is connected: each is refused before


def test_a_bad_argument_of_many_is_refused_and_none_is_started(hf: Holdfast, db: DB) -> None:
    for case in OF_MANY.values():
        check(hf, case)

    assert db.execute("select count(*) from holdfast.steps").fetchone() == (0,)


def check(hf: Holdfast, case: Case) -> None:
    with pytest.raises(case.error) as refused:
        case.call(hf)
    assert refused.value.where == case.where
    assert case.shown in refused.value.what
    assert case.correct in str(refused.value.next)


def test_numbers_are_strict_at_a_start_and_other_types_take_their_json_form(hf: Holdfast) -> None:
    """A start from SQL is JSON, which has no dates: workers convert as pydantic does."""

    @hf.task
    def book(
        ctx: Ctx, number: int, days: list[datetime], share: float = 0.5, rooms: dict[int, bool] | None = None
    ) -> str:
        return f"{number} {days[0]:%d} {share} {rooms}"

    for bad in ({"number": 2.0}, {"number": True}, {"share": "0.5"}, {"rooms": {1: 1}}, {"rooms": {1: "yes"}}):
        with pytest.raises(InputRefused) as refused:
            book.start(**{"number": 1, "days": [AWARE], **bad})
        assert refused.value.where == next(iter(bad))

    good = [book.start(1, ["2030-01-02T00:00:00Z"], 1, {1: True}), book.start(1, [AWARE], rooms={"1": True})]  # type: ignore[list-item, dict-item]
    with hf._engine.executor.connection() as connection:
        (step_id,) = connection.execute(
            """select holdfast.start_task('book', '{"number": "7", "days": ["2030-01-02T00:00:00Z"]}')"""
        ).fetchone() or [0]
    burst(hf)

    assert good[0].result() == "1 02 1.0 {1: True}"
    assert good[1].result() == "1 02 0.5 {1: True}"
    assert hf.handle(step_id).result() == "7 02 0.5 None"


def test_an_id_of_nothing_is_not_found(hf: Holdfast) -> None:
    for id in (10**17, uuid4()):  # noqa: A001 - the word is the same in SQL
        with pytest.raises(HoldfastError) as refused:
            hf.handle(id).status()
        assert str(id) in refused.value.what
