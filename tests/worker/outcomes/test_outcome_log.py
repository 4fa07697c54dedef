"""What a worker logs of each outcome, and what its handlers log themselves."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Fail, Holdfast, Retry, RetryPolicy
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import drain
from worker.running import DB, burst

pytestmark = pytest.mark.one_server
SECRET = "s3cret"
APP = """
import logging
from holdfast import Ctx, Holdfast

hf = Holdfast()
log = logging.getLogger("shop.mail")

@hf.task
def in_a_thread(number: int) -> None:
    log.info("thread %s", number)
    log.debug("not at this level")

@hf.task
async def on_the_loop(number: int) -> None:
    log.warning("loop %s", number)

@hf.task(cpu=True)
def in_a_process(number: int) -> None:
    log.info("process %s", number)

@hf.task
def by_ctx(ctx: Ctx, number: int) -> None:
    ctx.log.info("handler.said", number=number)

@hf.task
def raising() -> None:
    secret = "s3cret"
    try:
        raise ValueError("no user 17")
    except ValueError:
        log.exception("it went wrong")
"""


def of(lines: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["event"] == event]


def test_each_success_is_a_line_and_each_failure_has_its_class_its_message_and_whether_it_is_retried(
    hf: Holdfast, db: DB, log_lines: list[dict[str, Any]]
) -> None:
    """And nothing of an input, a result or an error's own fields."""

    @hf.task
    def good(password: str) -> str:
        return password

    @hf.task
    def bad(password: str) -> None:
        raise ValueError("no user 17")

    @hf.task(retry=RetryPolicy(limit=2, base=timedelta(hours=1)))
    def again(password: str) -> None:
        raise ConnectionError("busy")

    @hf.task
    def later(password: str) -> None:
        raise Retry("come back", after=timedelta(minutes=5))

    @hf.task
    def odd(password: str) -> None:
        raise Fail({"order": password})

    ids = {task.name: task.options().start(password=SECRET).id for task in (good, bad, again, later, odd)}
    burst(hf)

    (done,) = of(log_lines, "step.succeeded")
    assert (done["kind"], done["step_id"], done["attempt"], done["log_level"]) == ("good", ids["good"], 1, "info")
    assert isinstance(done["duration"], float)
    failed = {line["kind"]: line for line in of(log_lines, "step.failed")}
    assert (failed["bad"]["error"], failed["bad"]["message"]) == ("ValueError", "no user 17")
    assert (failed["bad"]["will_retry"], failed["bad"]["log_level"]) == (False, "error")
    retried = {line["kind"]: line for line in of(log_lines, "step.retried")}
    assert (retried["again"]["error"], retried["again"]["message"]) == ("ConnectionError", "busy")
    assert (retried["again"]["will_retry"], retried["again"]["log_level"]) == (True, "warning")
    assert (retried["later"]["message"], round(retried["later"]["retry_after"])) == ("come back", 300)
    left = db.execute("select due_at - holdfast.clock() from holdfast.steps where id = %s", [ids["again"]]).fetchone()
    assert left is not None
    assert 0 <= retried["again"]["retry_after"] - left[0].total_seconds() < 60, "as its policy decided"
    assert failed["odd"]["message"] == ""
    assert SECRET not in json.dumps(log_lines, default=str)


def test_many_successes_are_summed_up_by_kind(hf: Holdfast, log_lines: list[dict[str, Any]]) -> None:
    """Each is in a line or in a summary; what is left at the end is told when the worker stops."""

    @hf.task
    def quick(number: int) -> None: ...

    quick.start_many({"number": number} for number in range(500))
    burst(hf)

    lines, summaries = of(log_lines, "step.succeeded"), of(log_lines, "steps.succeeded")
    assert len(lines) + sum(line["kinds"]["quick"] for line in summaries) == 500
    assert summaries
    assert log_lines[-1]["event"] == "worker.stopped"


def test_drain_says_nothing_unless_it_is_asked_to(
    hf: Holdfast, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("structlog.is_configured", lambda: False)  # another test may have left it so

    @hf.task
    def bad(number: int) -> None:
        logging.getLogger("shop").warning("its own line")
        raise ValueError("no user 17")

    bad.start(number=1)
    drain(hf)
    quiet = [record.name for record in caplog.records]
    bad.start(number=2)
    drain(hf, log_level="info")

    assert quiet == ["shop"]
    assert any(
        "step.failed" in record.getMessage() and "no user 17" in record.getMessage() for record in caplog.records
    )
    assert capfd.readouterr() == ("", "")


def test_what_handlers_log_by_standard_logging_has_their_step_in_every_lane(db: DB, dsn: str, tmp_path: Path) -> None:
    """In threads, on the loop and in processes; at the level that is set, and without the values of variables."""
    (tmp_path / "shop.py").write_text(APP)
    numbers = {"in_a_thread": 1, "on_the_loop": 2, "in_a_process": 3, "by_ctx": 4}
    inputs = {kind: {"number": number} for kind, number in numbers.items()} | {"raising": {}}
    ids = {kind: run(db, calls.start_task(kind, given))[0] for kind, given in inputs.items()}

    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "worker", "--app", "shop:hf", "--burst"],
        env={"HOLDFAST_DSN": dsn, "HOLDFAST_LOG_LEVEL": "info"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]

    assert done.returncode == 0
    said = {line["event"]: line for line in lines if line.get("logger") == "shop.mail" or line.get("part") == "handler"}
    assert set(said) == {"thread 1", "loop 2", "process 3", "handler.said", "it went wrong"}
    for event, kind in (("thread 1", "in_a_thread"), ("loop 2", "on_the_loop"), ("process 3", "in_a_process")):
        line = said[event]
        assert (line["kind"], line["step_id"], line["attempt"]) == (kind, ids[kind], 1)
    assert (said["loop 2"]["level"], said["handler.said"]["number"]) == ("warning", 4)
    assert "ValueError: no user 17" in said["it went wrong"]["exception"]
    assert {line["kind"] for line in of(lines, "step.succeeded")} == set(ids)
    assert SECRET not in str([line for line in lines if line["event"] != "it went wrong"])
