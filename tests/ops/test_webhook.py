"""Webhooks of GitHub and Gitea, on real sockets: a signed push queues a run, once; everything else is refused (R36)."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from holdfast.kernel import migrate
from holdfast.ops.trigger import LARGEST
from ops.hooks import OLD, SECRET, SHA, ZEROS, Hook, headers, push, receiving, signed
from ops.runs import DB, called, run
from worker.running import until

pytestmark = pytest.mark.one_server


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)


@pytest.fixture
def hook(dsn: str, db: DB) -> Iterator[Hook]:
    called(db, "define_project", p_project_id="shop", p_repository="o/r")
    called(db, "define_environment", p_project_id="shop", p_env="staging", p_branch_pattern="main")
    called(db, "define_environment", p_project_id="shop", p_env="prod", p_branch_pattern="release/*", p_kind="ship")
    with receiving(dsn) as hook:
        yield hook


def deliveries(db: DB) -> list[tuple[Any, ...]]:
    return db.execute("select source, event, outcome from ops.webhook_deliveries order by received_at").fetchall()


def runs(db: DB) -> int:
    ((count,),) = db.execute("select count(*) from ops.runs").fetchall()
    return int(count)


def test_a_signed_push_queues_a_run_and_the_same_delivery_again_returns_it(hook: Hook, db: DB) -> None:
    """O-24, O-17, O-28, O-73: the branch selects the environment."""
    first, again = hook.post(push()), hook.post(push())

    assert (first.status, again.status) == (202, 200)
    assert first.fields["run_id"] == again.fields["run_id"]
    assert first.fields["status"] == "queued"
    row = run(db, first.fields["run_id"])
    selected = [row[name] for name in ("project_id", "git_sha", "git_ref", "status")]
    assert selected == ["shop", SHA, "refs/heads/main", "queued"]
    assert row["idempotency_key"].startswith("github:292430182:72d3162e-cc78-11e3-81ab-4c9367dc0958")
    kept = {"trigger": "webhook", "author": "j", "message": "Fix", "source": "github"}
    assert row["metadata"].items() >= kept.items()
    released = hook.post(push(ref="refs/heads/release/1.2"), x_github_delivery="d2")
    assert run(db, released.fields["run_id"])["kind"] == "ship"
    assert deliveries(db) == [("github", "push", "queued")] * 2


def test_deliveries_that_arrive_twice_at_once_queue_one_run(hook: Hook, db: DB) -> None:
    """O-24, O-73."""
    answers: list[str] = []
    together = threading.Barrier(6)

    def post() -> None:
        together.wait(10)
        answers.append(hook.post(push()).fields["run_id"])

    threads = [threading.Thread(target=post) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert (len(answers), len(set(answers)), runs(db)) == (6, 1, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"x_hub_signature_256": None},
        {"x_hub_signature_256": ""},
        {"x_hub_signature_256": "sha256=" + "0" * 64},
        {"x_hub_signature_256": signed(push(), OLD)},
        {"x_hub_signature_256": signed(json.dumps(json.loads(push()), indent=1).encode())},
        {"x_hub_signature_256": None, "x_hub_signature": "sha1=0c2f2f0b7f1a1a3ff06de48a1d6c9c2d6cfdb0a1"},
    ],
    ids=["missing", "empty", "wrong", "another secret", "re-encoded body", "only SHA-1"],
)
def test_a_bad_signature_gets_a_bare_401(hook: Hook, db: DB, changes: dict[str, str | None]) -> None:
    """R36, O-24."""
    refused = hook.post(push(), **changes)

    assert (refused.status, refused.body) == (401, b"")
    assert "www-authenticate" not in refused.headers
    assert (runs(db), deliveries(db)) == (0, [])


def test_two_secrets_are_live_while_one_replaces_the_other(
    dsn: str, db: DB, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """R36: and a file is read for each request."""
    file = tmp_path / "old"
    file.write_text(OLD)
    monkeypatch.setenv("WEBHOOK_SECRET_OLD_FILE", str(file))
    with receiving(dsn, "WEBHOOK_SECRET", "WEBHOOK_SECRET_OLD") as hook:
        assert hook.post(push(), x_hub_signature_256=signed(push(), OLD)).status == 202
        assert hook.post(push()).status == 202
        file.write_text("replaced-meanwhile")
        assert hook.post(push(), x_hub_signature_256=signed(push(), OLD)).status == 401


@pytest.mark.parametrize(
    ("body", "event", "status", "outcome"),
    [
        (b'{"zen": "x", "hook_id": 1, "repository": {"full_name": "o/r"}}', "ping", 200, "ping"),
        (b"{}", "issues", 202, "the event issues queues no run"),
        (push(deleted=True, after=ZEROS, head_commit=None), "push", 202, "the ref was deleted"),
        (push(after=ZEROS, deleted=None), "push", 202, "the ref was deleted"),
        (push(ref="refs/heads/feature"), "push", 202, "no environment matches"),
        (push(ref="refs/tags/v1"), "push", 202, "no environment matches"),
        (push(repository={"full_name": "o/other"}), "push", 202, "no environment matches"),
    ],
    ids=["ping", "another event", "deleted", "deleted by Gitea", "another branch", "tag", "another repository"],
)
def test_what_queues_no_run_is_recorded(hook: Hook, db: DB, body: bytes, event: str, status: int, outcome: str) -> None:
    answer = hook.post(body, x_github_event=event)

    assert (answer.status, runs(db)) == (status, 0)
    assert deliveries(db) == [("github", event, outcome)]


def test_a_form_a_tag_and_a_sha_256_repository_work(hook: Hook, db: DB) -> None:
    """The signature is over the raw bytes of the form."""
    called(db, "define_environment", p_project_id="shop", p_env="releases", p_branch_pattern="refs/tags/v*")
    form = urlencode({"payload": push(ref="refs/tags/v1.2", after="ab" * 32).decode()}).encode()

    answer = hook.post(form, content_type="application/x-www-form-urlencoded; charset=utf-8")

    assert answer.status == 202
    assert run(db, answer.fields["run_id"])["git_sha"] == "ab" * 32


def test_gitea_sends_the_same_headers_without_a_hook_id(hook: Hook, db: DB) -> None:
    body = push(pusher={"id": 1, "login": "gitea-user", "email": "g@example.com"}, sender={"login": "gitea-user"})
    own = {"x_gitea_event": "push", "x_gitea_delivery": "g1", "x_gitea_signature": signed(body)[7:]}

    answer = hook.post(body, x_github_hook_id=None, x_github_delivery="g1", **own)

    assert answer.status == 202
    assert run(db, answer.fields["run_id"])["idempotency_key"].startswith("gitea:g1:")
    assert deliveries(db) == [("gitea", "push", "queued")]


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        (b"", {}),
        (b"not json", {}),
        (b'{"a": 1', {}),
        (b"[1]", {}),
        (b"\xff", {}),
        (b"[" * 100_000, {}),
        (push(after=None), {}),
        (push(after=7), {}),
        (push(after="main"), {}),
        (push(ref=None), {}),
        (push(ref="refs/heads/\u0000"), {}),
        (push(ref="x" * 401), {}),
        (push(repository=None), {}),
        (push(repository="o/r"), {}),
        (push(), {"x_github_delivery": None}),
        (push(), {"x_github_delivery": "x" * 101}),
        (push(), {"x_github_event": None}),
        (push(), {"content_type": "application/x-www-form-urlencoded"}),
        (b"payload=", {"content_type": "application/x-www-form-urlencoded"}),
        (b"other=1", {"content_type": "application/x-www-form-urlencoded"}),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_signed_request_that_cannot_be_read_gets_422(
    hook: Hook, db: DB, body: bytes, changes: dict[str, str | None]
) -> None:
    answer = hook.post(body, **changes)

    assert answer.status == 422
    assert answer.fields["where"]
    assert (runs(db), deliveries(db)) == (0, [])


def test_a_body_over_25_mb_gets_413_whatever_its_length_says(hook: Hook, db: DB) -> None:
    large = b"x" * (LARGEST + 1)
    assert hook.post(large).status == 413

    def chunks() -> Iterator[bytes]:
        for _ in range(LARGEST // 2**20 + 2):
            yield b"x" * 2**20

    sent = headers(b"") | {"Transfer-Encoding": "chunked"}
    answer = hook.send(chunks(), sent)
    assert (answer.status, answer.headers["connection"]) == (413, "close")
    padded = push(padding="x" * (LARGEST - 2000))
    assert len(padded) <= LARGEST
    assert hook.post(padded).status == 202


def test_a_client_that_stops_sending_gets_408_and_one_that_leaves_is_forgotten(dsn: str) -> None:
    with receiving(dsn, body_within=0.2) as hook:
        with socket.create_connection(("127.0.0.1", hook.port), timeout=10) as slow:
            slow.sendall(b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
            assert b"408" in slow.recv(100)
        with socket.create_connection(("127.0.0.1", hook.port), timeout=10) as gone:
            gone.sendall(b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
        assert hook.post(push()).status == 202


def test_other_paths_and_methods(hook: Hook) -> None:
    assert hook.post(push(), path="/").status == 202
    assert hook.post(push(), path="/elsewhere").status == 404
    got = hook.post(b"", method="GET")
    assert (got.status, got.headers["allow"]) == (405, "POST")
    assert hook.post(b"", path="/healthz", method="GET").status == 200


def test_a_database_that_does_not_answer_gets_503_and_a_redelivery_works(dsn: str, db: DB) -> None:
    with receiving(dsn, stored_within=0.5) as hook:
        with psycopg.connect(dsn) as other:
            other.execute("lock table ops.deliveries")
            assert hook.post(push()).status == 503
        assert deliveries(db) == []
        until(lambda: hook.post(push()).status == 202, "a redelivery that is stored in time")
    with receiving("postgresql://127.0.0.1:1/none?connect_timeout=2") as hook:
        assert hook.post(push()).status == 503


def test_a_new_push_cancels_the_queued_run_of_the_ref_where_the_environment_says_so(hook: Hook, db: DB) -> None:
    called(
        db, "define_environment", p_project_id="shop", p_env="staging", p_branch_pattern="main",
        p_on_push="cancel_queued",
    )  # fmt: skip
    older = hook.post(push()).fields["run_id"]
    newer = hook.post(push(after="b" * 40), x_github_delivery="d2").fields["run_id"]
    hook.post(push())

    assert (run(db, older)["status"], run(db, newer)["status"]) == ("cancelled", "queued")


def test_the_receiver_needs_no_more_rights_than_those_of_a_producer(dsn: str, db: DB, hook: Hook) -> None:
    role = sql.Identifier(f"hf_test_hook_{os.getpid()}")
    db.execute(sql.SQL("create role {} login").format(role))
    try:
        db.execute(sql.SQL("grant hf_producer to {}").format(role))
        own = make_conninfo(dsn, user=role.as_string(None).strip('"'))
        with psycopg.connect(own, autocommit=True) as connection:
            migrate.check(connection)
        with receiving(own) as narrow:
            first = narrow.post(push())
        assert (first.status, hook.post(push()).status) == (202, 200)
    finally:
        db.execute(sql.SQL("drop owned by {} cascade").format(role))
        db.execute(sql.SQL("drop role {}").format(role))


def test_the_command_receives_a_push_and_stops_in_order(dsn: str, db: DB, tmp_path: Path) -> None:
    """The secret is in none of its lines."""
    log = tmp_path / "log"
    command = [sys.executable, "-m", "holdfast", "ops", "webhook", "--port", "0", "--tenant", "acme"]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "HOLDFAST_DSN": dsn})
    try:
        until(lambda: "webhooks: http" in log.read_text(), "the address")
        hook = Hook(int(re.findall(r"127\.0\.0\.1:(\d+)/webhook", log.read_text())[0]))
        answer = hook.post(push(head_commit={"message": f"leaks {SECRET}"}))
        assert hook.post(push(), x_hub_signature_256=None).status == 401
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0

    assert (answer.status, answer.fields["reason"]) == (202, "no environment matches")
    ((tenant,),) = db.execute("select tenant from ops.webhook_deliveries").fetchall()
    assert tenant == "acme"
    assert SECRET not in log.read_text()
    assert "webhook.refused" in log.read_text()


def test_the_command_does_not_begin_without_its_secret(dsn: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "ops", "webhook", "--port", "0", "--secret", "NOT_SET"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HOLDFAST_DSN": dsn}, timeout=60)

    assert done.returncode == 2
    assert "NOT_SET" in done.stderr
