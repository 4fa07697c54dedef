"""Flows out of documents: the functions found, the steps put in order, and each added as `@flow.step` would."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, Protocol

from holdfast.errors import BadTask
from holdfast.flow import graph
from holdfast.flow.backoff import Backoff, ReenqueueDelays
from holdfast.flow.define import Flow
from holdfast.flow.flows import Flows
from holdfast.flow.node import did_you_mean
from holdfast.flow.yaml import document, parse
from holdfast.flow.yaml.document import StepPart

Handlers = Mapping[str, Callable[..., Any]]
Source = str | Path | Mapping[str, Any]
_SUFFIXES = (".yaml", ".yml")
_OPTIONS = ("after", "each", "retry", "retryable", "skippable", "queue", "timeout", "lease", "cpu", "priority",
            "description", "config")  # fmt: skip


class Definer(Protocol):
    """The app, as a document sees it."""

    flows: Flows

    def flow(
        self, name: str, *, namespace: str, version: str, context: Any, backoff: Backoff | None, description: str | None
    ) -> Flow:
        """Define a flow."""


@dataclass(frozen=True)
class Loading:
    """One document on its way to a flow."""

    app: Definer
    handlers: Handlers
    environment: str | None
    where: str = "the document"
    folder: Path = Path()
    above: tuple[Path, ...] = ()  # documents whose sub-flows led here

    def load(self, source: Source) -> Flow:
        """Define the flow that a source tells of."""
        if isinstance(source, Mapping):
            return self._define(source)
        if isinstance(source, str) and "\n" in source:
            return self._define(parse.read(source, self.where))
        return self._from_file(Path(source))

    def _from_file(self, path: Path) -> Flow:
        whole = path.resolve()
        if whole in self.above:
            circle = " → ".join(each.name for each in [*self.above[self.above.index(whole) :], whole])
            raise BadTask(
                f"{path}: flows would stand inside themselves: {circle}",
                where=str(path),
                next="take one of these steps away",
            )
        told = (whole, self.environment, tuple(self.handlers.items()))
        if (known := self.app.flows.from_file(told)) is not None:
            return known
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadTask(
                f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", where=str(path)
            ) from None
        inside = replace(self, where=str(path), folder=path.parent, above=(*self.above, whole))
        flow = inside._define(parse.read(text, str(path)))
        self.app.flows.remember_file(told, flow)
        return flow

    def _define(self, values: Any) -> Flow:
        told = document.check(values, self.where, self.environment)
        steps = {step.name: step for step in told.steps}
        try:
            order = graph.order(told.name, {step.name: _awaited(step) for step in told.steps})
            functions = {step.name: self._function(place, step) for place, step in enumerate(told.steps)}
            conditions = {
                step.name: self._named(f"steps[{place}].when", step.when)
                for place, step in enumerate(told.steps)
                if step.when is not None
            }
            inner = {step.name: self._inner(step.flow) for step in told.steps if step.flow is not None}
            flow = self.app.flow(
                told.name, namespace=told.namespace, version=told.version, context=told.context,
                backoff=_backoff(told.backoff), description=told.description,
            )  # fmt: skip
            for name in order:
                _add(flow, steps[name], functions[name], conditions.get(name), inner.get(name))
        except BadTask as error:
            what = error.what.removeprefix(f"{self.where}: ")
            raise BadTask(f"{self.where}: {what}", where=error.where, next=error.next) from None
        return flow

    def _inner(self, named: str) -> Flow:
        if named.endswith(_SUFFIXES):
            return self._from_file(self.folder / named)
        return self.app.flows.find(named)

    def _function(self, place: int, step: StepPart) -> Callable[..., Any]:
        if step.cpu and (step.when or step.flow):
            raise BadTask(
                f"steps[{place}].cpu: another process finds the function by its name and knows of no when and no flow",
                where=f"steps[{place}].cpu",
                next="leave cpu out, or put the condition into the function",
            )
        return self._named(f"steps[{place}].handler", step.handler or step.name)

    def _named(self, place: str, named: str) -> Callable[..., Any]:
        if named in self.handlers:
            return self.handlers[named]
        module, _, name = named.partition(":")
        if not name:
            raise BadTask(f"{place}: there is no handler {named}", where=place, next=_known(named, list(self.handlers)))
        try:
            found = reduce(getattr, name.split("."), importlib.import_module(module))
        except (ImportError, AttributeError) as error:
            raise BadTask(f"{place}: {named} cannot be imported: {error}", where=place) from error
        if not callable(found):
            raise BadTask(f"{place}: {named} is a {type(found).__name__}", where=place, next="name a function")
        return found


def _known(named: str, handlers: Sequence[str]) -> str:
    if not handlers:
        return f"write module:{named}, or give it: handlers={{'{named}': …}}"
    return did_you_mean(named, handlers)


def _awaited(step: StepPart) -> list[str]:
    after = [step.after] if isinstance(step.after, str) else step.after
    return [*after, *([] if step.each is None else [step.each])]


def _add(
    flow: Flow,
    step: StepPart,
    function: Callable[..., Any],
    condition: Callable[..., Any] | None,
    inner: Flow | None,
) -> None:
    said = {name: value for name in _OPTIONS if (value := getattr(step, name)) is not None}
    options = {**said, "name": step.name, "when": condition}
    (flow.step(**options) if inner is None else flow.subflow(inner, **options))(function)


def _backoff(part: Any) -> Backoff | None:
    if part is None:
        return None
    given = part.model_dump(exclude_none=True)
    delays = ReenqueueDelays(**given.pop("reenqueue_delays", {}))
    return Backoff(**given, reenqueue_delays=delays)
