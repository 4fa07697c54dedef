"""Secrets of handlers: a worker supplies them from its environment, and does not begin without them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated

import pytest
from psycopg.conninfo import make_conninfo
from pydantic import SecretBytes, SecretStr

from holdfast import Ctx, Env, Holdfast
from holdfast.errors import SecretMissing
from holdfast.log import _mask_record
from holdfast.masking import MASK, known
from kernel.steps import DB, step_row
from worker.lanes import cpu
from worker.running import burst, error_of, worker_of

KEY = "sk-canary-of-a-worker"


def test_the_worker_supplies_secrets_in_every_lane(
    hf: Holdfast, db: DB, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also to a step of a flow, to one that runs per item, and next to a condition."""
    file = tmp_path / "salt"
    file.write_text("salt-in-a-file\n")
    monkeypatch.setenv("SHOP_KEY", KEY)
    monkeypatch.setenv("SHOP_SALT_FILE", str(file))
    seen: list[tuple[str, object]] = []

    @hf.task
    def charge(order_id: int, key: Annotated[SecretStr, Env("SHOP_KEY")]) -> int:
        seen.append(("thread", key.get_secret_value()))
        return order_id

    @hf.task
    async def fetch(ctx: Ctx, salt: Annotated[SecretBytes, Env("SHOP_SALT")], url: str) -> str:
        seen.append(("loop", salt.get_secret_value()))
        return url

    flow = hf.flow("order")

    @flow.step
    def prices(count: int, proxy: Annotated[SecretStr | None, Env("SHOP_NO_PROXY")] = None) -> list[int]:
        seen.append(("optional", proxy))
        return list(range(count))

    @flow.step(each=prices, when=lambda count: count > 0)
    def pay(item: int, key: Annotated[SecretStr, Env("SHOP_KEY")]) -> int:
        seen.append((f"item {item}", key.get_secret_value()))
        return item

    apart = hf.task(cpu=True)(cpu.key_length)
    started = [charge.start(7), fetch.start(url="/"), flow.start(count=2), apart.start(factor=2)]
    burst(hf)

    assert [started[0].result(), started[1].result(), started[3].result()] == [7, "/", 2 * len(KEY)]
    assert sorted(seen, key=str) == [
        ("item 0", KEY), ("item 1", KEY), ("loop", b"salt-in-a-file"), ("optional", None), ("thread", KEY),
    ]  # fmt: skip
    assert step_row(db, charge.start(8).id)["input"] == {"order_id": 8}


def test_a_worker_without_a_secret_does_not_begin_and_names_the_tasks_and_variables(hf: Holdfast) -> None:
    @hf.task
    def charge(key: Annotated[SecretStr, Env("SHOP_MISSING")] = Env.supplied) -> None: ...

    @hf.task
    def refund(salt: Annotated[SecretBytes, Env("SHOP_ABSENT")]) -> None: ...

    with pytest.raises(SecretMissing) as missing:
        worker_of(hf)

    assert "charge" in missing.value.what
    assert (missing.value.where, missing.value.exit_code) == ("SHOP_MISSING", 2)
    assert "refund" in missing.value.__notes__[0]
    assert "SHOP_ABSENT" in missing.value.__notes__[0]


def test_a_worker_needs_only_the_secrets_of_its_queues(hf: Holdfast, db: DB) -> None:
    """A task that was sent to another queue waits for a worker that has the key, or for somebody who adds it."""

    @hf.task(queue="payments")
    def charge(key: Annotated[SecretStr, Env("SHOP_MISSING")]) -> None: ...

    started = charge.options(queue="default").start()
    burst(hf)

    assert (step_row(db, started.id)["state"], error_of(db, started.id)["type"]) == ("pending", "SecretMissing")
    assert "SHOP_MISSING" in error_of(db, started.id)["message"]
    with pytest.raises(SecretMissing):
        worker_of(hf, queues=("default", "payments"))


def test_a_secret_in_a_file_can_be_replaced_while_the_worker_runs(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text("first-canary-1")
    monkeypatch.setenv("SHOP_KEY_FILE", str(file))

    @hf.task
    def rotate(step: int, key: Annotated[SecretStr, Env("SHOP_KEY")]) -> list[str]:
        file.write_text("second-canary-2")
        return [key.get_secret_value(), str(len(key.get_secret_value()))]

    started = [rotate.start(step=1), rotate.start(step=2)]
    burst(hf, concurrency=1)

    assert [each.result() for each in started] == [[MASK, "14"], [MASK, "15"]]


def test_a_short_secret_is_not_masked_and_the_worker_says_so(
    hf: Holdfast, log_lines: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PIN", "1234")
    monkeypatch.setattr("holdfast.env._too_short", set[str]())  # a process warns once

    @hf.task
    def charge(ctx: Ctx, pin: Annotated[SecretStr, Env("SHOP_PIN")]) -> str:
        ctx.mask("abc")
        return pin.get_secret_value()

    started = charge.start()
    hf.use(make_conninfo(hf.dsn, password="pw"))
    burst(hf)

    assert started.result() == "1234"
    short = [line for line in log_lines if line["event"] == "secret.too_short"]
    assert [line.get("name") for line in short] == ["the password of the DSN", "SHOP_PIN", None]
    assert [line.get("kind") for line in short] == [None, None, "charge"]


def test_a_masked_value_is_given_up_with_its_attempt(hf: Holdfast) -> None:
    @hf.task
    def log_in(ctx: Ctx) -> str:
        ctx.mask("session-canary")
        ctx.mask(SecretStr("session-canary"))
        return "session-canary"

    started = log_in.start()
    burst(hf)

    assert started.result() == MASK
    assert "session-canary" not in known._held


def test_a_users_own_handlers_of_standard_logging_get_masked_records() -> None:
    known.add("logging-canary")
    record = logging.makeLogRecord(
        {"msg": "using %s", "args": ("logging-canary",), "extra_field": {"k": "logging-canary"}, "password": "pw"}
    )
    try:
        raise ValueError("logging-canary")
    except ValueError as error:
        record.exc_info = (ValueError, error, error.__traceback__)

    assert _mask_record(record)
    shown = logging.Formatter("%(message)s %(extra_field)s %(password)s").format(record)
    assert "logging-canary" not in shown
    assert shown.startswith(f"using {MASK} {{'k': '{MASK}'}} {MASK}")
    assert "ValueError" in shown
    assert _mask_record(logging.makeLogRecord({"msg": "%d", "args": ("not a number",)}))  # reported by its handler


def test_an_error_is_masked_before_it_is_cut(hf: Holdfast, db: DB) -> None:
    """A secret across the end of the longest message would leave a part that nobody recognises."""
    secret = "cut-" + "canary" * 10
    known.add(secret)

    @hf.task
    def fail() -> None:
        raise ValueError("y" * 7980 + secret)

    started = fail.start()
    burst(hf)

    assert "canarycanary" not in json.dumps(error_of(db, started.id))
