"""What a handler may come to, and what the step becomes: each outcome, each exception, and all that cannot be kept."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from holdfast import Continue, Ctx, Fail, Holdfast, Retry, RetryPolicy, Snooze
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import Clock, events
from kernel.steps import DB, step_row, value
from worker.running import burst, error_of, seconds, working

pytestmark = pytest.mark.one_server
SECRET = "hunter2"


class Receipt(BaseModel):
    total: int


def test_what_is_returned_is_the_result(hf: Holdfast, db: DB) -> None:
    """W-09, W-10, W-23."""

    @hf.task
    def double(number: int) -> int:
        return 2 * number

    started = double.start(number=21)
    burst(hf)

    assert started.result() == 42
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

    assert (started.result(), seen) == (4, [1, 2, 3, 4])
    assert step_row(db, started.id)["failures"] == 0


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
    assert "return type" in error_of(db, wrong.id)["message"]
    assert "None" in error_of(db, more.id)["message"]


def test_a_typed_result_comes_back_as_its_type(hf: Holdfast) -> None:
    """W-10."""

    @hf.task
    def pay() -> Receipt:
        return Receipt(total=9)

    started = pay.start()
    burst(hf)

    assert started.result() == Receipt(total=9)


def test_the_trace_context_of_an_input_is_no_argument(hf: Holdfast, db: DB) -> None:
    """W-55: it travels beside the arguments."""

    @hf.task
    def greet(name: str) -> str:
        return name

    (step,) = run(db, calls.start_task("greet", {"name": "ann", "$trace": {"traceparent": "00-aa-bb-01"}}))
    burst(hf)

    assert hf.handle(step).result() == "ann"


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
        assert last.result(timeout=30) == 100

    assert value(db, "select count(*) from holdfast.steps where state = 'error'") == 20
    assert value(db, "select count(*) from holdfast.steps where state = 'done'") == 21
