"""Calls over HTTP from handlers: each answer is a success or an error that says what becomes of the step."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from connectors.stub import Stub
from holdfast import Holdfast, RetryPolicy
from holdfast.connectors import http
from holdfast.errors import BadInput, OutsideError, RateLimited, Rejected, Unavailable
from holdfast.flow.backoff import Backoff
from holdfast.testing import Clock, events
from kernel.steps import DB, column, value
from worker.running import burst, error_of, seconds

pytestmark = pytest.mark.one_server
SECRET = "hunter2"
MATRIX = [
    (429, RateLimited), (503, Unavailable),
    (500, Unavailable), (501, Unavailable), (502, Unavailable), (504, Unavailable), (599, Unavailable),
    (408, Unavailable), (425, Unavailable),
    (400, Rejected), (401, Rejected), (403, Rejected), (404, Rejected), (422, Rejected),
    (402, Rejected), (409, Rejected), (410, Rejected), (418, Rejected), (451, Rejected), (499, Rejected),
    (301, Rejected), (307, Rejected),
]  # fmt: skip
AT_ONCE = RetryPolicy(limit=2, base=seconds(0))


def refusal(stub: Stub, **options: Any) -> OutsideError:
    with pytest.raises(OutsideError) as caught:
        http.call("GET", f"{stub.url}/api?token={SECRET}", **options)
    return caught.value


@pytest.mark.parametrize(("status", "error"), MATRIX)
def test_each_status_that_is_no_success_is_an_error_of_its_sort(
    stub: Stub, status: int, error: type[OutsideError]
) -> None:
    """T-146: sync and async alike"""
    stub.answers(status)

    assert type(refusal(stub)) is error
    with pytest.raises(error):
        asyncio.run(http.acall("GET", stub.url))
    assert len(stub.asked) == 2


@pytest.mark.parametrize("status", [200, 201, 202, 204, 304])
def test_a_success_is_given_back(stub: Stub, status: int) -> None:
    """T-146"""
    body = b"" if status in {204, 304} else b'{"paid": true}'
    stub.answers(status, body, X_Request="7")

    answer = http.call("GET", stub.url)

    assert (answer.status, answer.headers["x-request"], answer.body) == (status, "7", body)


def test_json_goes_out_and_comes_back(stub: Stub) -> None:
    """T-146"""
    stub.answers(200, b'{"total": 5}')

    answer = http.call("POST", f"{stub.url}/orders", json={"id": 7}, headers={"X-Shop": "a"}, key="order:7")

    (asked,) = stub.asked
    assert answer.json() == {"total": 5}
    assert (asked.method, asked.path, json.loads(asked.body)) == ("POST", "/orders", {"id": 7})
    assert (asked.headers["x-shop"], asked.headers["idempotency-key"]) == ("a", "order:7")


def test_without_a_key_none_is_sent(stub: Stub) -> None:
    """T-131"""
    http.call("GET", stub.url)

    assert "idempotency-key" not in stub.asked[0].headers


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "wait"), [("30", 30), ("0.5", 0.5), ("soon", None), ("-3", None), ("", None), ("0", 0)]
)
def test_a_wait_in_seconds_is_taken_as_it_came(stub: Stub, status: int, header: str, wait: float | None) -> None:
    """T-112, C-04"""
    stub.answers(status, Retry_After=header)
    error = refusal(stub)

    assert isinstance(error, RateLimited if status == 429 else Unavailable)
    assert error.retry_after == (None if wait is None else seconds(wait))


@pytest.mark.parametrize("name", ["Retry-After", "retry-after", "RETRY-AFTER"])
def test_the_wait_is_read_whatever_the_case_of_its_header(stub: Stub, name: str) -> None:
    """A-55"""
    stub.answers(429, **{name: "7"})

    assert refusal(stub).retry_after == seconds(7)


@pytest.mark.parametrize("status", [429, 503, 404])
def test_an_error_carries_status_code_and_headers_of_the_answer(stub: Stub, status: int) -> None:
    """A-54"""
    stub.answers(status, body=b'{"error": {"code": "THROTTLED"}}', X_Request="7")
    error = refusal(stub)

    assert (error.status, error.code, error.headers["x-request"]) == (status, "THROTTLED", "7")


@pytest.mark.parametrize("wrong_by", [timedelta(0), timedelta(days=400), timedelta(days=-400)])
def test_a_wait_until_a_date_counts_from_the_servers_own_clock(stub: Stub, wrong_by: timedelta) -> None:
    """T-112, C-04: whatever ours says"""
    theirs = datetime.now(UTC).replace(microsecond=0) + wrong_by
    until = theirs + timedelta(seconds=45)
    stub.answers(429, Date=format_datetime(theirs, usegmt=True), Retry_After=format_datetime(until, usegmt=True))
    error = refusal(stub)

    assert isinstance(error, RateLimited)
    assert error.retry_after == seconds(45)


def test_a_date_of_a_server_that_has_no_clock_counts_from_ours(stub: Stub) -> None:
    """T-112"""
    until = datetime.now(UTC) + timedelta(hours=1)
    stub.answers(429, Date="none", Retry_After=format_datetime(until, usegmt=True))
    error = refusal(stub)

    assert isinstance(error, RateLimited)
    assert error.retry_after is not None
    assert error.retry_after > seconds(0)


def test_a_server_that_is_not_there_is_unavailable(stub: Stub) -> None:
    """T-146: a transport error is tried again"""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/api?token={SECRET}"
        with pytest.raises(Unavailable, match=r"^GET 127.0.0.1/api: ConnectError: "):
            http.call("GET", url)
        with pytest.raises(Unavailable, match=r"^GET 127.0.0.1/api: ConnectError: "):
            asyncio.run(http.acall("GET", url))


@pytest.mark.parametrize("timeout", [0.05, timedelta(seconds=0.05), "50ms"])
def test_a_server_that_says_nothing_is_unavailable(timeout: Any) -> None:
    """T-146: a timeout is tried again"""
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(Unavailable, match="ReadTimeout"):
        http.call("GET", f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=timeout)


@pytest.mark.parametrize("url", ["gopher://127.0.0.1/", "/api", "http://[", "http://127.0.0.1:port/"])
def test_an_address_that_is_none_is_rejected(url: str) -> None:
    """T-146: trying again would not help"""
    with pytest.raises(Rejected, match="address"):
        http.call("GET", url)


def test_a_header_that_cannot_be_sent_is_rejected_and_not_told(stub: Stub) -> None:
    """T-146, X: no secret in an error"""
    error = refusal(stub, headers={"Authorization": f"Bearer {SECRET}\n"})

    assert isinstance(error, Rejected)
    assert SECRET not in repr(error)
    assert error.__suppress_context__


def test_no_header_body_or_query_is_told_or_logged(stub: Stub, caplog: pytest.LogCaptureFixture) -> None:
    """T-146: not even where everything is logged"""
    caplog.set_level(logging.DEBUG)
    stub.answers(500, SECRET.encode(), Set_Cookie=SECRET)

    error = refusal(stub, headers={"Authorization": SECRET}, json={"password": SECRET}, key=SECRET)
    stub.answers(200, SECRET.encode(), Set_Cookie=SECRET)
    answer = http.call("GET", f"{stub.url}/?token={SECRET}")

    assert str(error) == "GET 127.0.0.1/api answered 500"
    assert SECRET not in repr(answer)
    assert SECRET not in caplog.text


def test_no_cookie_of_one_call_comes_to_another(stub: Stub) -> None:
    """Each step calls for itself."""
    stub.answers(200, Set_Cookie="who=a")
    http.call("GET", stub.url)
    http.call("GET", stub.url)

    assert "cookie" not in stub.asked[1].headers


def calling(hf: Holdfast, stub: Stub, **options: Any) -> int:
    """Start a task that calls the server; its number."""

    @hf.task(**options)
    def ask() -> Any:
        return http.call("GET", stub.url).json()

    return ask.start().id


def calling_in_a_flow(hf: Holdfast, db: DB, stub: Stub, backoff: Backoff) -> int:
    """Start a flow whose only step calls the server; the step's number."""
    order = hf.flow("order", backoff=backoff)

    @order.step
    def ask() -> Any:
        return http.call("GET", stub.url).json()

    step_id: int = value(db, "select id from holdfast.steps where run_id = %s", order.start().id)
    return step_id


@pytest.mark.parametrize(("header", "wait"), [("30", 30), ("4000", 300)])
def test_a_step_waits_as_long_as_the_server_asks_up_to_its_cap(
    hf: Holdfast, db: DB, clock: Clock, stub: Stub, header: str, wait: int
) -> None:
    """T-122, T-113, T-114, T-115: 429 with Retry-After 30 gives backoff_request_seconds of 30"""
    stub.answers(429, Retry_After=header)
    now = clock.freeze()
    step_id = calling_in_a_flow(hf, db, stub, Backoff())

    burst(hf)

    assert column(db, step_id, "due_at") == now + seconds(wait)
    assert value(db, "select backoff_request_seconds from flow.steps where step_id = %s", step_id) == wait
    assert error_of(db, step_id)["message"] == "GET 127.0.0.1 answered 429"


def test_without_a_wait_that_makes_sense_the_backoff_is_calculated(
    hf: Holdfast, db: DB, clock: Clock, stub: Stub
) -> None:
    """T-115, C-04: priority 2"""
    stub.answers(503, Retry_After="a while")
    now = clock.freeze()
    step_id = calling_in_a_flow(
        hf, db, stub, Backoff(default_backoff_seconds=[7], jitter_enabled=False, monotonic=True)
    )

    burst(hf)

    assert column(db, step_id, "due_at") == now + seconds(7)


@pytest.mark.parametrize(
    ("status", "retry", "story"),
    [
        (500, None, ["claimed", "retried"] * 2 + ["claimed", "failed"]),
        (429, None, ["claimed", "retried"] * 2 + ["claimed", "failed"]),
        (404, None, ["claimed", "failed"]),
        (500, AT_ONCE, ["claimed", "retried", "claimed", "failed"]),
        (429, AT_ONCE, ["claimed", "retried", "claimed", "failed"]),
        (404, AT_ONCE, ["claimed", "failed"]),
    ],
)
def test_the_answer_says_whether_a_step_is_tried_again_policy_or_none(
    hf: Holdfast, db: DB, stub: Stub, status: int, retry: RetryPolicy | None, story: list[str]
) -> None:
    """T-146, C-65"""
    stub.answers(status)
    step_id = calling(hf, stub, retry=retry)

    burst(hf)

    assert events(db, step=step_id) == story
    assert column(db, step_id, "state") == "error"


@pytest.mark.parametrize("after", [float("nan"), "soon", -5])
def test_a_wait_of_a_handlers_own_that_makes_no_sense_breaks_no_other_step(hf: Holdfast, db: DB, after: Any) -> None:
    """C-04: negative is at once; what is no number fails its own step"""

    @hf.task(retry=AT_ONCE)
    def ask() -> None:
        raise RateLimited("busy", retry_after=after)

    step_id = ask.start().id
    burst(hf)

    found = error_of(db, step_id)["type"]
    assert found == ("RateLimited" if after == -5 else "OutcomeRefused")


def test_a_timeout_that_cannot_be_read_is_refused_by_its_name() -> None:
    with pytest.raises(BadInput) as refused:
        http.call("GET", "http://127.0.0.1:9", timeout="soon")
    assert (refused.value.where, "'soon'" in refused.value.what) == ("timeout", True)
