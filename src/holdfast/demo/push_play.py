"""Plays the demo's pushes: signed requests on a real socket queue runs, of which one is deployed while it is watched,
one is cancelled, and one goes stale.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPConnection
from importlib.util import find_spec
from typing import Any

from psycopg import Connection

from holdfast.demo import deploys
from holdfast.demo.judge import Finding
from holdfast.env import Env
from holdfast.kernel import calls, db
from holdfast.ops import calls as ops
from holdfast.ops import reads
from holdfast.ops.rows import Run
from holdfast.reads.demo import Load

SECRET = "HOLDFAST_DEMO_WEBHOOK_SECRET"  # noqa: S105 - a variable's name
LAPTOP = "demo_laptop"  # a kind that no worker of the demo serves
LAPTOPS_LEASE = timedelta(seconds=1)
QUEUE_OF_PROGRAMS = "ops"  # where runs of such kinds wait
BRANCHES = {"staging": "main", "preview": "feature/*", "laptop": "laptop"}
REFS = ("refs/heads/main", deploys.ENDLESS, "refs/heads/laptop")
REASON = "a person saw that it hangs"
PATIENCE = 30.0  # seconds
LOOK_EACH = 0.1


@dataclass(frozen=True, slots=True)
class Answer:
    """What the receiver answered."""

    status: int
    run_id: str | None


@dataclass(frozen=True, slots=True)
class PushFacts:
    """What became of the pushes."""

    refused: int  # the status that a wrong signature got
    queued: int
    repeated: int
    deployed: int
    live: int  # lines that were seen while the program ran
    cancelled: int
    stale: int


class PushPlay:
    """The pushes of one demo. They begin after the kill, because the run of a killed worker would end as stale."""

    def __init__(self, connection: Connection[Any], load: Load, port: int) -> None:
        self._connection = connection
        self._port = port
        self._repository = f"demo/{load.queue}"
        self._seen = 0  # the last event that was shown
        self._has_claimed = False
        self.watched: list[str] = []  # what the deployment printed, as it was seen
        self._live = 0  # of these, how many lines before it had ended
        self._define(load.queue)
        self._unsigned = self._push(REFS[0], "unsigned", secret=secrets.token_hex(16))
        self.pushed = [self._push(ref, f"push-{number}") for number, ref in enumerate(REFS)]
        self._again = self._push(REFS[0], "push-0")

    @property
    def run_id(self) -> str:
        """The run that is deployed."""
        return str(self.pushed[0].run_id)

    def see_to_it(self) -> None:
        """Watch the first run, cancel the second one when it runs, and claim the third one without a word after it."""
        self._watch(self._run(0))
        hanging = self._run(1)
        if hanging.status == "running":
            db.run(self._connection, ops.cancel_run(hanging.run_id, REASON, "demo"))
        if not self._has_claimed:
            kinds = [f"ops:{LAPTOP}"]
            claim = calls.claim_steps("laptop", QUEUE_OF_PROGRAMS, kinds, batch=10, lease=LAPTOPS_LEASE)
            self._has_claimed = bool(db.run(self._connection, claim))

    def wait(self) -> Iterator[None]:
        """Wait until all have ended, and yield after each look."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            self.see_to_it()
            yield
            if all(self._run(number).is_over for number in range(len(REFS))):
                return
            time.sleep(LOOK_EACH)

    def findings(self) -> list[Finding]:
        """Compare what happened with what must have happened."""
        runs = [self._run(number) for number in range(len(REFS))]
        deployed, cancelled, stale = (json.loads(run.metadata) for run in runs)
        accepted = {each.run_id for each in self.pushed if each.status == HTTPStatus.ACCEPTED}
        facts = PushFacts(
            refused=self._unsigned.status,
            queued=len(accepted - {None}),
            repeated=int(self._again.run_id != self.pushed[0].run_id),
            deployed=int(runs[0].status == "success" and deployed.get("pages") == "1"),
            live=self._live,
            cancelled=int(runs[1].status == "cancelled" and cancelled.get("reason") == REASON),
            stale=int(runs[2].status == "cancelled" and stale.get("original_worker") == "laptop"),
        )
        return judged(facts)

    def _define(self, project: str) -> None:
        db.run(self._connection, ops.define_project(project, self._repository, "default"))
        for env, branch in BRANCHES.items():
            kind = LAPTOP if env == "laptop" else deploys.KIND
            call = ops.define_environment(
                project, env, kind_of_place="dev", branch=branch, approval=False, on_push="queue", concurrency=None,
                queue_ttl=None, kind=kind, tenant="default",
            )  # fmt: skip
            db.run(self._connection, call)

    def _run(self, number: int) -> Run:
        return reads.run_of(self._connection, str(self.pushed[number].run_id))

    def _watch(self, run: Run) -> None:
        """Show what is new; the run was read before, so that lines of one that is over do not count as live."""
        for event in reads.events_after(self._connection, run.step_id, self._seen):
            self._seen = event.id
            if "stream" in json.loads(event.payload):
                lines = event.message.splitlines()
                self.watched += lines
                self._live += 0 if run.is_over else len(lines)

    def _push(self, git_ref: str, delivery: str, secret: str | None = None) -> Answer:
        """Push, and deliver it again while the database has no time for it, as a person would."""
        until = time.monotonic() + PATIENCE
        while (answer := self._post(git_ref, delivery, secret)).status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            if time.monotonic() > until:
                break
            time.sleep(LOOK_EACH)
        return answer

    def _post(self, git_ref: str, delivery: str, secret: str | None) -> Answer:
        """Send a delivery as GitHub does."""
        sha = hashlib.sha1(f"{self._repository} {git_ref}".encode(), usedforsecurity=False).hexdigest()
        push = {"ref": git_ref, "after": sha, "repository": {"full_name": self._repository}, "pusher": {"name": "ann"}}
        body = json.dumps(push).encode()
        signature = hmac.new((secret or os.environ[SECRET]).encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json", "X-GitHub-Event": "push", "X-Hub-Signature-256": f"sha256={signature}",
            "X-GitHub-Delivery": f"{self._repository}-{delivery}", "X-GitHub-Hook-ID": "1",
        }  # fmt: skip
        client = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        try:
            client.request("POST", "/webhook", body, headers)
            response = client.getresponse()
            answer = response.read()
        finally:
            client.close()
        return Answer(response.status, json.loads(answer).get("run_id") if answer else None)


@contextmanager
def receiving(dsn: str) -> Iterator[int | None]:
    """Receive webhooks during the block; yield the port, or None without the extra `api`."""
    if find_spec("uvicorn") is None:
        yield None
        return
    from holdfast.ops import serving

    os.environ[SECRET] = secrets.token_hex(16)
    try:
        with serving.receiving(dsn, Env(SECRET)) as port:
            yield port
    finally:
        del os.environ[SECRET]


def judged(facts: PushFacts) -> list[Finding]:
    """Judge each figure."""
    refused, queued = facts.refused, facts.queued
    return [
        Finding("pushes: wrongly signed", refused, "401: nothing is queued", refused == HTTPStatus.UNAUTHORIZED),
        Finding("pushes: runs queued", queued, "one per signed push", queued == len(REFS)),
        Finding("pushes: repeated", facts.repeated, "a repeated delivery returns the same run", facts.repeated == 0),
        Finding("pushes: deployed", facts.deployed, "by its program, with what it wrote", facts.deployed == 1),
        Finding("pushes: lines seen live", facts.live, "while the program ran", facts.live > 0),
        Finding("pushes: cancelled", facts.cancelled, f"by hand: {REASON}", facts.cancelled == 1),
        Finding("pushes: stale", facts.stale, "its worker was not heard of again", facts.stale == 1),
    ]
