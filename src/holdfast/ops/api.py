"""Ops in Python: `@hf.ops("deploy")` registers a handler, `hf.ops.queue(…)` queues a run."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from typing_extensions import Unpack

from holdfast import masking
from holdfast.connections.caller.lend import check_conn
from holdfast.connections.caller.types import CallerConnection
from holdfast.durations import Duration, duration
from holdfast.errors import BadDefinition, BadInput
from holdfast.handlers.registry import Handler, RetryPolicy, check_name, read_duration, read_retry
from holdfast.handlers.schedules import Times, schedule_definition
from holdfast.kernel.call import LONGEST_KEY, Call, check_due, check_names, check_priority, check_tenant
from holdfast.kernel.schedule_calls import Missed, Overlap
from holdfast.ops import calls
from holdfast.ops.context import OpsCtx
from holdfast.ops.events import OpsExecutor, RunWatcher, publish_manual
from holdfast.ops.handle import OpsHandle
from holdfast.ops.in_place import OpsSignature, in_place
from holdfast.ops.run import OpsRun
from holdfast.ops.schedule import ScheduledRuns
from holdfast.spelling import checks_options

__all__ = ["Ops", "OpsHandle"]  # what annotations of the app name

QUEUE = "ops"  # which a worker in any language claims from
P = ParamSpec("P")
R = TypeVar("R")


class OpsDecorator(Protocol):
    """Makes a function the handler of a kind, and returns it unchanged."""

    def __call__(
        self, function: Callable[Concatenate[OpsCtx, OpsRun, P], R], /
    ) -> Callable[Concatenate[OpsCtx, OpsRun, P], R]: ...


class Ops:
    """The ops handlers of an app, and the ways to queue runs."""

    def __init__(self, engine: OpsExecutor) -> None:
        self._engine = engine
        self.watcher = RunWatcher(engine.subscribers)

    @checks_options(BadDefinition)
    def __call__(
        self,
        kind: str,
        *,
        timeout: Duration | None = None,
        queue: str = QUEUE,
        retry: int | RetryPolicy | None = None,
        lease: Duration | None = None,
    ) -> OpsDecorator:
        """Register a function as the handler of a kind of run: `@hf.ops("deploy", timeout=1200)`.

        It takes a context and a run, `(ctx: OpsCtx, run: OpsRun)`, and what it returns becomes metadata of the run. It
        may be async. A failed execution is repeated in place, up to 3 executions, 5 and 10 seconds apart; `retry` is
        another number of executions or a RetryPolicy. `timeout` counts for all of them together. Workers in any
        language claim from queue `ops`; a kind that only Python serves needs another `queue`.
        """
        check_name("kind", kind)
        policy = read_retry(retry)

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            signature = OpsSignature(function, kind)
            is_async = inspect.iscoroutinefunction(function)
            self._engine.registry.add(
                Handler(
                    kind=f"ops:{kind}",
                    function=in_place(function, signature, is_async=is_async),
                    signature=signature,
                    is_async=is_async,
                    uses_cpu=False,
                    queue=queue,
                    retry=None,  # the run itself is claimed once
                    lease=read_duration("lease", lease),
                    timeout=read_duration("timeout", timeout),
                    face="ops",
                    context=OpsCtx,
                    is_releasable=False,
                )
            )
            if policy is not None:
                self._engine.registry.add_definition(lambda: policy.definition(f"ops.in_place:{kind}"))
            return function

        return register

    @checks_options(BadInput)
    def queue(
        self,
        project: str,
        *,
        env: str,
        git_sha: str | None = None,
        git_ref: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        kind: str | None = None,
        priority: int = 0,
        due_at: datetime | None = None,
        ttl: Duration | None = None,
        actor: str | None = None,
        tenant: str = "default",
        conn: CallerConnection | None = None,
    ) -> OpsHandle:
        """Queue a run of a project's environment, and return its handle.

        `key`: reusing it returns the existing run, whatever its state and whatever the other arguments are. `kind`
        chooses the handlers, by default `deploy`. `due_at`: run it no earlier than that. `ttl`: cancel it if no worker
        has claimed it by then. `priority`: 0 to 9, higher runs first. `actor`: the person that the login acts for.
        `conn`: queue it inside your own connection's transaction.
        """
        call = _queue_call(project, env, git_sha, git_ref, metadata, key=key, kind=kind, priority=priority,
                           due_at=due_at, ttl=ttl, actor=actor, tenant=tenant, conn=conn)  # fmt: skip
        (run,) = self._engine.make(call, conn)
        return self._queued(run, key, conn)

    @checks_options(BadInput)
    async def aqueue(
        self,
        project: str,
        *,
        env: str,
        git_sha: str | None = None,
        git_ref: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str | None = None,
        kind: str | None = None,
        priority: int = 0,
        due_at: datetime | None = None,
        ttl: Duration | None = None,
        actor: str | None = None,
        tenant: str = "default",
        conn: CallerConnection | None = None,
    ) -> OpsHandle:
        """Queue a run, as `queue` does."""
        call = _queue_call(project, env, git_sha, git_ref, metadata, key=key, kind=kind, priority=priority,
                           due_at=due_at, ttl=ttl, actor=actor, tenant=tenant, conn=conn)  # fmt: skip
        (run,) = await self._engine.amake(call, conn)
        return self._queued(run, key, conn)

    def project(self, project: str, *, repository: str | None = None, tenant: str = "default") -> None:
        """Define a project; the pushes of its repository (`owner/name`) queue runs of its environments."""
        self._engine.make(calls.define_project(project, repository, tenant))

    def environment(
        self,
        project: str,
        env: str,
        *,
        type: str | None = None,  # noqa: A002 - the word is the same in SQL
        branch: str | None = None,
        approval: bool = False,
        on_push: str = "queue",
        concurrency: int | None = None,
        queue_ttl: Duration | None = None,
        kind: str = "deploy",
        tenant: str = "default",
    ) -> str:
        """Define an environment of a project, and return its id.

        `type` is dev, staging or prod. `branch` says which pushes queue a run of `kind`: `main`, `release/*`. With
        `approval` each run waits until somebody other than its author approves it. `on_push` says what a new push does
        to older runs of the same ref: queue (nothing), cancel_queued, or cancel_all, which also cancels the running
        one. `concurrency` is how many of its runs are active at once, `queue_ttl` how long one may wait for a worker.
        """
        ttl = None if queue_ttl is None else duration(queue_ttl, "queue_ttl")
        call = calls.define_environment(project, env, kind_of_place=type, branch=branch, approval=approval,
                                        on_push=on_push, concurrency=concurrency, queue_ttl=ttl, kind=kind,
                                        tenant=tenant)  # fmt: skip
        (env_id,) = self._engine.make(call)
        return str(env_id)

    @checks_options(BadDefinition, more=Times.__annotations__)
    def schedule(
        self,
        name: str,
        kind: str,
        *,
        project: str | None = None,
        env: str | None = None,
        git_sha: str | None = None,
        git_ref: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        priority: int = 0,
        ttl: Duration | None = None,
        missed: Missed = "one",
        missed_window: Duration | None = None,
        overlap: Overlap = "allow",
        tenant: str | None = None,
        **times: Unpack[Times],
    ) -> None:
        """Queue runs on a schedule: `hf.ops.schedule("nightly", "backup", cron="0 2 * * *")`.

        Each tick queues one run per environment, of all projects or of those that `project` and `env` name. When it
        fires, `missed` and `overlap` are as in `hf.schedule`.
        """
        lives = None if ttl is None else duration(ttl, "ttl", error=BadDefinition)
        target = ScheduledRuns(kind, project, env, git_sha, git_ref, metadata or {}, priority, lives)
        definition = schedule_definition(
            name, target, None, missed=missed, missed_window=missed_window, overlap=overlap, tenant=tenant, **times
        )
        self._engine.registry.add_definition(lambda: definition)

    def _queued(self, run: calls.QueuedRun, key: str | None, conn: CallerConnection | None) -> OpsHandle:
        if conn is None:  # else the caller's transaction may still be rolled back
            publish_manual(self._engine, "queued", run.run_id, key=key)
        return OpsHandle(run.run_id, self._engine)


def _queue_call(
    project: str,
    env: str,
    git_sha: str | None,
    git_ref: str | None,
    metadata: Mapping[str, Any] | None,
    *,
    key: str | None,
    kind: str | None,
    priority: int,
    due_at: datetime | None,
    ttl: Duration | None,
    actor: str | None,
    tenant: str,
    conn: CallerConnection | None,
) -> Call[calls.QueuedRun]:
    """Check what was given, and return the call."""
    check_names([("project", project), ("env", env), ("git_sha", git_sha), ("kind", kind), ("actor", actor)])
    check_names([("key", key), ("git_ref", git_ref)], LONGEST_KEY)
    check_due(due_at)
    check_priority(priority)
    check_tenant(tenant)
    check_conn(conn)
    if metadata is not None and not isinstance(metadata, Mapping):
        raise BadInput(
            f"metadata must be a mapping, got {metadata!r:.80}", where="metadata", next='use {"author": "ann"}'
        )
    try:
        json.dumps(None if metadata is None else dict(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"metadata cannot be written as JSON: {error}", where="metadata",
                       next="use text, numbers, lists and mappings") from None  # fmt: skip
    lives: timedelta | None = None if ttl is None else duration(ttl, "ttl")
    masked = masking.known.value(metadata)
    return calls.queue_run(project, env, git_sha=git_sha, git_ref=git_ref, metadata=masked, key=key, kind=kind,
                           priority=priority, due_at=due_at, ttl=lives, actor=actor, tenant=tenant)  # fmt: skip
