"""A flow as users define it: its steps, what each step waits for, and its start."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, ParamSpec, TypeVar, overload
from uuid import UUID

from holdfast.connections.caller.types import CallerConnection
from holdfast.durations import Duration, duration
from holdfast.errors import BadDefinition, BadInput
from holdfast.flow import calls, graph
from holdfast.flow.backoff import Backoff, StepRetry
from holdfast.flow.batches import signature_of
from holdfast.flow.context import Context, Typed, read_context
from holdfast.flow.decorator import (
    Async,
    BatchStepDecorator,
    BatchStepsDecorator,
    StepDecorator,
    StepsDecorator,
    SubflowDecorator,
    SubflowsDecorator,
)
from holdfast.flow.events import FlowExecutor
from holdfast.flow.handle import FlowRun, read_run_id
from holdfast.flow.handlers import Declared, Maker
from holdfast.flow.limits import check_fields
from holdfast.flow.start import Starter, later
from holdfast.flow.step import After, Node, Step, Title, check_step_name, limit_of, name_of, names_of, read_options
from holdfast.handlers.registry import RetryPolicy
from holdfast.handlers.signature import Signature
from holdfast.handlers.untyped import Untyped
from holdfast.kernel.call import Call
from holdfast.kernel.schedule_calls import Target
from holdfast.models import Json
from holdfast.spelling import checks_options

P = ParamSpec("P")
R = TypeVar("R")


class Flow:
    """Steps that wait for steps. Each start creates a run, which workers execute."""

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
    def step(self, function: Callable[P, Untyped], /) -> Step[Any, Callable[P, Any]]: ...
    @overload
    def step(self, function: Async[P, R], /) -> Step[R, Async[P, R]]: ...
    @overload
    def step(self, function: Callable[P, R], /) -> Step[R, Callable[P, R]]: ...
    @overload
    def step(
        self, *, name: str | None = None, after: After = (),
        retry: int | RetryPolicy | StepRetry | None = None, retryable: bool = True, skippable: bool = False,
        queue: str = "default", when: Callable[..., Any] | None = None, timeout: Duration | None = None,
        lease: Duration | None = None, cpu: bool = False, priority: int = 0, description: str | None = None,
        config: dict[str, Any] | None = None, limits: Sequence[str] | None = None,
        weight: float | str | None = None, call_weight: float | None = None,
    ) -> StepDecorator: ...  # fmt: skip
    @overload
    def step(
        self, *, batch: int, by: str | None = None, batch_wait: Duration | None = None, name: str | None = None,
        after: After = (), retry: int | RetryPolicy | StepRetry | None = None, retryable: bool = True,
        skippable: bool = False, queue: str = "default", timeout: Duration | None = None,
        lease: Duration | None = None, cpu: bool = False, priority: int = 0, description: str | None = None,
        config: dict[str, Any] | None = None, limits: Sequence[str] | None = None,
        weight: float | str | None = None, call_weight: float | None = None,
    ) -> BatchStepDecorator: ...  # fmt: skip
    @overload
    def step(
        self, *, each: Step[Iterable[Any] | None] | str, batch: int, by: str | None = None,
        batch_wait: Duration | None = None, name: str | None = None, after: After = (),
        retry: int | RetryPolicy | StepRetry | None = None, retryable: bool = True, skippable: bool = False,
        queue: str = "default", timeout: Duration | None = None, lease: Duration | None = None, cpu: bool = False,
        priority: int = 0, description: str | None = None, config: dict[str, Any] | None = None,
        limits: Sequence[str] | None = None, weight: float | str | None = None, call_weight: float | None = None,
    ) -> BatchStepsDecorator: ...  # fmt: skip
    @overload
    def step(
        self, *, each: Step[Iterable[Any] | None] | str, name: str | None = None, after: After = (),
        retry: int | RetryPolicy | StepRetry | None = None, retryable: bool = True, skippable: bool = False,
        queue: str = "default", when: Callable[..., Any] | None = None, timeout: Duration | None = None,
        lease: Duration | None = None, cpu: bool = False, priority: int = 0, description: str | None = None,
        config: dict[str, Any] | None = None, limits: Sequence[str] | None = None,
        weight: float | str | None = None, call_weight: float | None = None,
    ) -> StepsDecorator: ...  # fmt: skip
    def step(self, *functions: Callable[..., Any], **options: Any) -> Any:
        """Add a step: `@order.step`, or `@order.step(after=reserve, retry=5)`.

        A parameter with the name of a step in `after` receives its result, a parameter annotated `Ctx` the attempt,
        and every other one a field of the context. `each` plans one step per item of that step's list, received as
        `item`. `when` is a condition over the same names: the step is skipped if it is false. `retry` is the
        number of executions. A StepRetry or a RetryPolicy also sets the delays between them, else the flow's backoff.
        `limits`, `weight` and `call_weight` are as in `hf.task`: `{shop}` is a field of the context, and a step with
        `each` may also use `{item}` or `{item.shop}`. With `batch` one call serves up to so many steps, of several runs
        too: the function takes a `Batch` and a list of items, whose fields have the names that parameters would have.
        """
        for function in functions:
            return self._add(function)
        return lambda function: self._add(function, **options)

    @overload
    def subflow(self, flow: Flow, *, each: Step[Iterable[Any] | None] | str, **options: Any) -> SubflowsDecorator: ...
    @overload
    def subflow(self, flow: Flow, **options: Any) -> SubflowDecorator: ...
    def subflow(self, flow: Flow, **options: Any) -> Any:
        """Add a step that is a flow: the function has the parameters of any step and returns that flow's context.

        Steps that wait for it receive a dict: the results of that flow's last steps, by name.
        """
        flow.plan  # noqa: B018 - complete from here on: this step will wait for its last steps
        return lambda function: self._add(function, inner=flow, **options)

    def start(self, *context: Any, **fields: Any) -> FlowRun:
        """Start a run, with the whole context or with its fields by name."""
        return self.options().start(*context, **fields)

    async def astart(self, *context: Any, **fields: Any) -> FlowRun:
        """Start a run, as `start` does."""
        return await self.options().astart(*context, **fields)

    def scheduled(self, input: Any) -> Target:  # noqa: A002 - the word is the same in SQL
        """Check the context of a schedule's runs, and return what the schedule is to start."""
        return self.options().scheduled(input)

    @checks_options(BadInput)
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
        conn: CallerConnection | None = None,
        delay: Duration | None = None,
        due_at: datetime | None = None,
        key_for: Duration | None = None,
    ) -> Starter:
        """Set options for a start.

        `key`: starting again with the same key and context returns the existing run, within `key_for` if that is set.
        `skip`: names of skippable steps. `conn`: start inside your own transaction. `delay`, `due_at`: begin after a
        delay by the database's clock, or at a time. `tags`, `initiator`, `source_system` and `reason` are for people.
        """
        about = {"tags": list(tags), "initiator": initiator, "source_system": source_system, "reason": reason}
        return Starter(
            self,
            self._executor,
            key=key,
            tenant=tenant,
            skip=skip,
            about=about,
            conn=conn,
            later=later(delay, due_at),
            key_for=None if key_for is None else duration(key_for, "key_for"),
        )

    def handle(self, run_id: UUID | str) -> FlowRun:
        """Return the handle of a run that was started elsewhere, by its id."""
        return FlowRun(read_run_id(run_id), self._executor, self.read_result)

    @functools.cached_property
    def context(self) -> Context:
        """The check of a start's context."""
        return self._declared or Typed(self.title.name, self._maker.fields.typed(), self._maker.forgotten)

    @functools.cached_property
    def plan(self) -> list[dict[str, Any]]:
        """The steps, each after those it waits for."""
        waits = self.waits()
        order = graph.order(self.title.name, waits)
        if self._declared is None:  # the fields of the context are known only now
            check_fields(self.title.name, self.nodes.values(), self.context)
        return [self.nodes[name].planned() for name in order]

    @functools.cached_property
    def written_plan(self) -> Json:
        """The plan as JSON."""
        return Json(json.dumps(self.plan))

    def waits(self) -> dict[str, tuple[str, ...]]:
        """Map each step to the steps that it waits for."""
        return {node.name: node.after for node in self.nodes.values()}

    def pinned(self) -> dict[str, Any]:
        """Return what a run of an outer flow stores about this one at its start."""
        return {"plan": self.plan, "version": self.title.version}

    def definition(self) -> Call[None]:
        """Return the call that defines the flow in the database."""
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
        """Convert a step's stored result to the return type of its function; `place` names it in an error."""
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
        each: Step[Any] | str | None = None,
        inner: Flow | None = None,
        **options: Any,
    ) -> Step[Any]:
        name = str(getattr(function, "__name__", "")) if name is None else name
        check_step_name(self.title.name, name)
        if name in self.nodes:
            raise BadDefinition(
                f"flow {self.title.name} already has a step {name}", where=name, next="give one of them another name"
            )
        checked = read_options(name, options)
        source = None if each is None else name_of(each)
        awaited = tuple(dict.fromkeys([*names_of(after), *([] if source is None else [source])]))
        kind = self.title.kind(name) if source is None else f"{self.title.kind(name)}:each"
        node = Node(name, awaited, checked, limit_of(name, checked), kind, source, inner)
        graph.order(self.title.name, {**self.waits(), name: awaited})
        if "plan" in self.__dict__:
            raise BadDefinition(
                f"flow {self.title.name} was used before its step {name} was added",
                where=name,
                next="add all steps first",
            )
        signature = signature_of(function, checked)  # first, because it rejects what cannot be a step
        handlers = self._maker.handlers(node, function)
        for handler in handlers:
            self._executor.registry.add(handler)
        self.nodes[name] = node
        self._signatures[name] = signature
        return Step(name, handlers[-1], function)
