"""A flow as users write it down: its steps, what each waits for, and the ways to start it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload
from uuid import UUID

from psycopg import AsyncConnection, Connection

from holdfast.errors import BadTask
from holdfast.flow import calls, graph
from holdfast.flow.backoff import Backoff, StepRetry
from holdfast.flow.context import Context, Typed, read_context
from holdfast.flow.executor import FlowExecutor
from holdfast.flow.handle import FlowRun
from holdfast.flow.handlers import Declared, Maker
from holdfast.flow.node import After, Node, Step, limit_of, name_of, names_of, read_options
from holdfast.flow.options import Title, check_step_name
from holdfast.flow.start import Starter
from holdfast.handlers.registry import RetryPolicy
from holdfast.handlers.signature import Signature
from holdfast.kernel.call import Call
from holdfast.models import Json, Span

P = ParamSpec("P")
R = TypeVar("R")


class Flow:
    """Steps that wait for steps; a start makes a task of them, which workers carry out."""

    def __init__(
        self, title: Title, executor: FlowExecutor, context: Any = None, backoff: Backoff | None = None
    ) -> None:
        self.title = title
        self.nodes: dict[str, Node] = {}
        self._executor = executor
        self.backoff = backoff or Backoff()
        self._declared = None if context is None else read_context(title.name, context)
        self._maker = Maker(title, self.nodes, Declared(context, self._declared), self.backoff)
        self._signatures: dict[str, Signature] = {}

    def __repr__(self) -> str:
        return f"<flow {self.title.name} {self.title.version}>"

    @overload
    def step(self, function: Callable[P, R], /) -> Step[P, R]: ...
    @overload
    def step(
        self,
        *,
        name: str | None = None,
        after: After = (),
        each: Step[Any, Any] | str | None = None,
        retry: int | RetryPolicy | StepRetry | None = None,
        retryable: bool = True,
        skippable: bool = False,
        queue: str = "default",
        when: Callable[..., Any] | None = None,
        timeout: Span | None = None,
        lease: Span | None = None,
        cpu: bool = False,
        priority: int = 0,
        description: str | None = None,
        config: dict[str, Any] | None = None,
    ) -> Callable[[Callable[P, R]], Step[P, R]]: ...
    def step(self, *functions: Callable[..., Any], **options: Any) -> Any:
        """Add a step: `@order.step`, or `@order.step(after=reserve, retry=5)`.

        A parameter that bears the name of a step in `after` gets its result, a parameter annotated `Ctx` the attempt,
        every other one a field of the context. `each`: one step for each item of that step's list, taken as `item`.
        `when`: a condition over the same names; where it does not hold the step is skipped. `retry` counts executions;
        a StepRetry or a RetryPolicy says too how long it waits between them, else the flow's backoff does.
        """
        for function in functions:
            return self._add(function)
        return lambda given: self._add(given, **options)

    def subflow(self, flow: Flow, **options: Any) -> Callable[[Callable[P, R]], Step[P, R]]:
        """Add a step that is a flow of its own: the function, which takes what any step's does, gives its context.

        Those that wait for the step get a dict: what the last steps of that flow gave, by name.
        """
        flow.plan  # noqa: B018 - whole from here on: its last steps are what this one will wait for
        return lambda function: self._add(function, inner=flow, **options)

    def start(self, *context: Any, **fields: Any) -> FlowRun:
        """Start a task, with the whole context or with its fields by name."""
        return self.options().start(*context, **fields)

    async def astart(self, *context: Any, **fields: Any) -> FlowRun:
        """Start a task, as `start` does."""
        return await self.options().astart(*context, **fields)

    def options(
        self,
        *,
        key: str | None = None,
        tenant: str = "default",
        skip: Sequence[str] = (),
        tags: Sequence[str] = (),
        initiator: str | None = None,
        source_system: str | None = None,
        reason: str | None = None,
        conn: Connection[Any] | AsyncConnection[Any] | None = None,
    ) -> Starter:
        """Give a way to start it with options.

        `key`: the same key with the same context starts it once, for good. `skip`: names of skippable steps. `conn`:
        inside your own transaction. `tags`, `initiator`, `source_system` and `reason` are for those who read.
        """
        told = {"tags": list(tags), "initiator": initiator, "source_system": source_system, "reason": reason}
        return Starter(self, self._executor, key=key, tenant=tenant, skip=skip, about=told, conn=conn)

    def started(self, task_id: UUID | str) -> FlowRun:
        """Take hold of a task that was started elsewhere, by its id."""
        return FlowRun(UUID(str(task_id)), self._executor, self.read_result)

    @functools.cached_property
    def context(self) -> Context:
        """The check of what a start is given."""
        return self._declared or Typed(self.title.name, self._maker.fields.typed())

    @functools.cached_property
    def plan(self) -> list[dict[str, Any]]:
        """The steps, each after those that it waits for."""
        waits = self.waits()
        return [self.nodes[name].planned() for name in graph.order(self.title.name, waits)]

    @functools.cached_property
    def written_plan(self) -> Json:
        """The plan as JSON."""
        return Json(json.dumps(self.plan))

    def waits(self) -> dict[str, tuple[str, ...]]:
        """Say what each step waits for."""
        return {node.name: node.after for node in self.nodes.values()}

    def pinned(self) -> dict[str, Any]:
        """Say what a run of an outer flow keeps of this one from its start."""
        return {"plan": self.plan, "version": self.title.version}

    def definition(self) -> Call[None]:
        """Say to the database what the flow looks like."""
        title = self.title
        return calls.define_flow(
            title.name,
            self.plan,
            namespace=title.namespace,
            version=title.version,
            description=title.description,
            context_schema=self.context.schema(),
        )

    def read_result(self, step: str, stored: Any, place: str) -> Any:
        """Give what a step gave the type that its function says; `place` names it in an error."""
        signature, node = self._signatures.get(step), self.nodes.get(step)
        if signature is None or stored is None or node is None or node.inner is not None:
            return stored
        if not node.each:
            return signature.read_result(stored, place)
        return [signature.read_result(each, f"item {n} of {place}") for n, each in enumerate(stored)]

    def _add(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        after: After = (),
        each: Step[Any, Any] | str | None = None,
        inner: Flow | None = None,
        **given: Any,
    ) -> Step[Any, Any]:
        name = name or str(getattr(function, "__name__", ""))
        check_step_name(self.title.name, name)
        if name in self.nodes:
            raise BadTask(
                f"flow {self.title.name} has a step {name} already", where=name, next="give one of them another name"
            )
        options = read_options(name, given)
        source = None if each is None else name_of(each)
        awaited = tuple(dict.fromkeys([*names_of(after), *([] if source is None else [source])]))
        kind = self.title.kind(name) if source is None else f"{self.title.kind(name)}:each"
        node = Node(name, awaited, options, limit_of(name, options), kind, source, inner)
        graph.order(self.title.name, {**self.waits(), name: awaited})
        if "plan" in self.__dict__:
            raise BadTask(
                f"flow {self.title.name} was used before its step {name} was added",
                where=name,
                next="add all steps first",
            )
        signature = Signature(function)  # before anything is kept: what cannot be called is no step
        handlers = self._maker.handlers(node, function)
        for handler in handlers:
            self._executor.registry.add(handler)
        self.nodes[name] = node
        self._signatures[name] = signature
        return Step(name, handlers[-1], function)
