"""What a handler may come to, and what the step becomes: each outcome, each exception, and all that cannot be kept."""

from __future__ import annotations

import asyncio
import json

import pytest
from pydantic import BaseModel

from holdfast import Continue, Ctx, Fail, Holdfast, Retry, RetryPolicy, Snooze
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import Clock, events
from kernel.steps import DB, step_row, value
from worker.running import burst, seconds, working

pytestmark = pytest.mark.one_server
SECRET = "hunter2"


class Receipt(BaseModel):
    total: int


def error_of(db: DB, step_id: int) -> dict[str, str]:
    error: dict[str, str] = step_row(db, step_id)["error"]
    return error


def test_what_is_returned_is_the_result(hf: Holdfast, db: DB) -> None:
    """W-09, W-10, W-23."""

    @hf.task
    def double(number: int) -> int:
        return 2 * number

    started = double.start(number=21)
    burst(hf)

    assert started.wait() == 42
    assert events(db, step=started.id) == ["claimed", "succeeded"]


def test_an_exception_is_final_without_a_policy(hf: Holdfast, db: DB) -> None:
    """W-11, W-24, W-32, C-65."""

    @hf.task
    def break_down() -> None:
        raise ValueError("the pipe burst")

    started = break_down.start()
    burst(hf)

    assert step_row(db, started.id)["state"] == "error"
    assert events(db, step=started.id) == ["claimed", "failed"]


def test_an_exception_is_tried_again_as_the_policy_says(hf: Holdfast, db: DB) -> None:
    """C-65, W-49."""

    @hf.task(retry=RetryPolicy(limit=3, base=seconds(0)))
    def break_down() -> None:
        raise ValueError("the pipe burst")

    started = break_down.start()
    burst(hf)

    assert events(db, step=started.id) == ["claimed", "retried"] * 2 + ["claimed", "failed"]


def test_a_handlers_own_validation_error_is_an_exception_like_others(hf: Holdfast, db: DB) -> None:
    """C-65: only the step's own input is an InputRefused."""

    class Answer(BaseModel):
        code: int

    @hf.task(retry=RetryPolicy(limit=2, base=seconds(0)))
    def ask(ctx: Ctx) -> int:
        return Answer.model_validate({"code": "none" if ctx.attempt == 1 else 7}).code

    started = ask.start()
    burst(hf)

    assert events(db, step=started.id) == ["claimed", "retried", "claimed", "succeeded"]


def test_type_message_and_trace_are_stored_without_values_of_variables(hf: Holdfast, db: DB) -> None:
    """W-58."""

    @hf.task
    def log_in(password: str) -> None:
        copy = password.upper()
        raise PermissionError(f"no entry after {len(copy)} letters")

    started = log_in.start(password=SECRET)
    burst(hf)
    error = error_of(db, started.id)

    assert (error["type"], error["message"]) == ("PermissionError", "no entry after 7 letters")
    assert "in log_in" in error["trace"]
    assert "raise PermissionError" in error["trace"]
    assert SECRET not in json.dumps(error)
    assert SECRET.upper() not in json.dumps(error)


@pytest.mark.parametrize("raises", [True, False])
def test_a_retry_comes_after_the_time_it_names(hf: Holdfast, db: DB, clock: Clock, raises: bool) -> None:
    """W-24: raised or returned is the same."""
    now = clock.freeze()

    @hf.task
    def call() -> None:
        outcome = Retry("busy", after=seconds(60))
        if raises:
            raise outcome
        return outcome  # type: ignore[return-value]

    started = call.start()
    burst(hf)
    row = step_row(db, started.id)

    assert (row["state"], row["due_at"], row["failures"]) == ("pending", now + seconds(60), 1)
    assert error_of(db, started.id) == {"type": "Retry", "message": "busy"}


def test_a_snooze_comes_back_uncharged(hf: Holdfast, db: DB, clock: Clock) -> None:
    """A snooze is no failure."""
    now = clock.freeze()

    @hf.task
    def call() -> None:
        raise Snooze(after=90)

    started = call.start()
    burst(hf)
    row = step_row(db, started.id)

    assert (row["state"], row["due_at"], row["failures"]) == ("pending", now + seconds(90), 0)


def test_fail_is_final_whatever_the_policy(hf: Holdfast, db: DB) -> None:
    """W-32."""

    @hf.task(retry=RetryPolicy(limit=5))
    def call() -> None:
        raise Fail("the card is stolen")

    started = call.start()
    burst(hf)

    assert events(db, step=started.id) == ["claimed", "failed"]
    assert error_of(db, started.id)["message"] == "the card is stolen"


def test_continue_goes_on_page_by_page(hf: Holdfast, db: DB) -> None:
    """W-09: a cursor moves from page to page, and no page counts as a failure."""
    seen = []

    @hf.task
    def pull(ctx: Ctx) -> int:
        page = ctx.cursor["page"] if ctx.cursor else 1
        seen.append(page)
        if page < 4:
            raise Continue({"page": page + 1})
        return page

    started = pull.start()
    burst(hf)

    assert (started.wait(), seen) == (4, [1, 2, 3, 4])
    assert step_row(db, started.id)["failures"] == 0


UNKEPT = {
    "a time that is none": Retry("x", after="soon"),  # type: ignore[arg-type]
    "a time beyond all": Snooze(after=1e300),
    "a time that is no number": Snooze(after=float("nan")),
    "a cursor that is no JSON": Continue({1, 2}),
    "a cursor that holds itself": Continue(loop := [], loop.append(loop)),
    "a cursor with a NUL": Continue("a\0b"),
    "a cursor with a lone surrogate": Continue("\ud800"),
    "a cursor that is no number": Continue(float("inf")),
    "an error that is no JSON": Fail(object()),
    "an error with keys that are no text": Fail({(1, 2): 3}),
    "an error with a NUL": Fail({"message": "a\0b"}),
}


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("outcome", UNKEPT.values(), ids=UNKEPT.keys())
def test_an_outcome_that_makes_no_sense_fails_its_step_alone(
    hf: Holdfast, db: DB, outcome: Exception, is_async: bool
) -> None:
    """W-33: the worker goes on; the batch beside it settles."""

    def odd() -> None:
        raise outcome

    async def aodd() -> None:
        raise outcome

    @hf.task
    def even() -> int:
        return 1

    task = hf.task(name="odd")(aodd if is_async else odd)
    bad, good = task.start(), even.start()
    burst(hf)

    assert good.wait() == 1
    assert step_row(db, bad.id)["state"] == "error"
    assert error_of(db, bad.id)["message"]


@pytest.mark.parametrize(
    "gives",
    [lambda: {"at": object()}, lambda: "a\0b", lambda: {"k\0": 1}, lambda: "\ud800", lambda: "x" * 2_000_000],
    ids=["no JSON", "NUL", "NUL in a key", "lone surrogate", "2 MB"],
)
def test_a_result_that_cannot_be_kept_fails_its_step_alone(hf: Holdfast, db: DB, gives: object) -> None:
    """W-10: and says why."""

    @hf.task
    def odd():  # type: ignore[no-untyped-def]
        return gives()  # type: ignore[operator]

    @hf.task
    def even() -> int:
        return 1

    bad, good = odd.start(), even.start()
    burst(hf)

    assert good.wait() == 1
    assert step_row(db, bad.id)["state"] == "error"
    assert error_of(db, bad.id)["message"]


def test_a_result_is_checked_against_what_the_handler_says(hf: Holdfast, db: DB) -> None:
    """W-10."""

    @hf.task
    def count() -> int:
        return "many"  # type: ignore[return-value]

    @hf.task
    def nothing() -> None:
        return 5  # type: ignore[return-value]

    wrong, more = count.start(), nothing.start()
    burst(hf)

    assert error_of(db, wrong.id)["type"] == "ResultRefused"
    assert "annotation" in error_of(db, wrong.id)["message"]
    assert "says that it gives None" in error_of(db, more.id)["message"]


def test_a_typed_result_comes_back_as_its_type(hf: Holdfast) -> None:
    """W-10."""

    @hf.task
    def pay() -> Receipt:
        return Receipt(total=9)

    started = pay.start()
    burst(hf)

    assert started.wait() == Receipt(total=9)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error",
    [ValueError("a\0b \ud800"), Unspeakable(), SystemExit(3), KeyboardInterrupt(), ValueError("x" * 5_000_000)],
    ids=["NUL and surrogate", "no words", "exit", "interrupt", "5 MB"],
)
def test_an_exception_of_any_sort_is_stored_and_the_worker_goes_on(hf: Holdfast, db: DB, error: BaseException) -> None:
    """W-24, W-33, W-58."""

    @hf.task
    def odd() -> None:
        raise error

    @hf.task
    def even() -> int:
        return 1

    bad, good = odd.start(), even.start()
    burst(hf)

    assert good.wait() == 1
    assert error_of(db, bad.id)["type"] == type(error).__name__


def test_an_async_handler_that_was_cancelled_by_none_of_ours_has_failed(hf: Holdfast, db: DB) -> None:
    """W-24: a CancelledError of its own making is an exception like others."""

    @hf.task
    async def odd() -> None:
        raise asyncio.CancelledError

    started = odd.start()
    burst(hf)

    assert error_of(db, started.id)["type"] == "CancelledError"


def test_an_input_that_no_longer_fits_after_a_deploy_fails_that_step_and_says_what_to_do(hf: Holdfast, db: DB) -> None:
    """W-52: the row stays; mended, it can be retried."""

    @hf.task
    def greet(name: str) -> str:
        return name

    (bad,) = run(db, calls.start_task("greet", {"nmae": SECRET, "age": 3}))
    good = greet.start(name="ann")
    burst(hf)

    assert good.wait() == "ann"
    error = error_of(db, bad)
    assert error["type"] == "InputRefused"
    assert "name" in error["message"]
    assert f"dlq retry {bad}" in error["next"]
    assert SECRET not in json.dumps(error)


@pytest.mark.parametrize("column", ["input", "cursor"])
def test_json_that_python_cannot_read_fails_that_step_alone(hf: Holdfast, db: DB, column: str) -> None:
    """W-33: PostgreSQL keeps what is nested deeper than Python reads."""

    @hf.task
    def greet(name: object, ctx: Ctx) -> int:
        return 1

    deep = "[" * 4000 + "]" * 4000
    bad, good = greet.start(name=1), greet.start(name=2)
    given = f'{{"name": {deep}}}' if column == "input" else deep
    db.execute(f"update holdfast.steps set {column} = %s::jsonb where id = %s", [given, bad.id])
    burst(hf)

    assert good.wait() == 1
    found = db.execute("select state, error ->> 'next' from holdfast.steps where id = %s", [bad.id]).fetchone()
    assert found is not None
    assert found[0] == "error"
    assert "holdfast dlq retry" in found[1]


def test_the_trace_context_of_an_input_is_no_argument(hf: Holdfast, db: DB) -> None:
    """W-55: it travels beside the arguments."""

    @hf.task
    def greet(name: str) -> str:
        return name

    (step,) = run(db, calls.start_task("greet", {"name": "ann", "$trace": {"traceparent": "00-aa-bb-01"}}))
    burst(hf)

    assert hf.started(step).wait() == "ann"


def test_a_task_that_fails_and_one_that_succeeds_are_settled_by_one_call(hf: Holdfast, db: DB) -> None:
    """W-25, W-26: and both leave the worker free for more."""

    @hf.task
    def either(number: int) -> int:
        if number % 2:
            raise ValueError("odd")
        return number

    either.start_many({"number": n} for n in range(40))
    with working(hf):
        last = either.start(number=100)
        assert last.wait(timeout=30) == 100

    assert value(db, "select count(*) from holdfast.steps where state = 'error'") == 20
    assert value(db, "select count(*) from holdfast.steps where state = 'done'") == 21
