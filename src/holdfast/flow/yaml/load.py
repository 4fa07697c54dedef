"""Loads flows from documents: finds the functions, sorts the steps, and adds each as `@flow.step` does."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import BadDefinition
from holdfast.flow import graph
from holdfast.flow.backoff import Backoff, ReenqueueDelays
from holdfast.flow.define import Flow
from holdfast.flow.yaml import document, parse
from holdfast.flow.yaml.document import StepPart
from holdfast.spelling import did_you_mean

if TYPE_CHECKING:
    from holdfast.flow.api import Flows

Handlers = Mapping[str, Callable[..., Any]]
Source = str | Path | Mapping[str, Any]
_SUFFIXES = (".yaml", ".yml")
_OPTIONS = ("after", "each", "retry", "retryable", "skippable", "queue", "timeout", "lease", "cpu", "priority",
            "description", "config", "limits", "weight", "call_weight", "batch", "by", "batch_wait")  # fmt: skip


@dataclass(frozen=True)
class Loading:
    """The loading of one document."""

    flows: Flows
    handlers: Handlers
    environment: str | None
    where: str = "the document"
    folder: Path = Path()
    above: tuple[Path, ...] = ()  # the documents that include this one, from the outermost

    def load(self, source: Source) -> Flow:
        """Define the flow of a document."""
        if isinstance(source, Mapping):
            return self._define(source)
        if isinstance(source, str) and "\n" in source:
            return self._define(parse.read(source, self.where))
        return self._from_file(Path(source))

    def _from_file(self, path: Path) -> Flow:
        whole = path.resolve()
        if whole in self.above:
            circle = " → ".join(each.name for each in [*self.above[self.above.index(whole) :], whole])
            raise BadDefinition(
                f"{path}: flows include each other in a cycle: {circle}",
                where=str(path),
                next="remove one of these steps",
            )
        key = (whole, self.environment, tuple(self.handlers.items()))
        if (known := self.flows.from_document(key)) is not None:
            return known
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadDefinition(
                f"{path} cannot be read: {getattr(error, 'strerror', None) or error}",
                where=str(path),
                next="check the path; a document is a file in UTF-8",
            ) from None
        inside = replace(self, where=str(path), folder=path.parent, above=(*self.above, whole))
        flow = inside._define(parse.read(text, str(path)))
        self.flows.remember_document(key, flow)
        return flow

    def _define(self, values: Any) -> Flow:
        checked = document.check(values, self.where, self.environment)
        steps = {step.name: step for step in checked.steps}
        try:
            order = graph.order(checked.name, {step.name: _awaited(step) for step in checked.steps})
            functions = {step.name: self._function(place, step) for place, step in enumerate(checked.steps)}
            conditions = {
                step.name: self._named(f"steps[{place}].when", step.when)
                for place, step in enumerate(checked.steps)
                if step.when is not None
            }
            inner = {step.name: self._inner(step.flow) for step in checked.steps if step.flow is not None}
            flow = self.flows(
                checked.name, namespace=checked.namespace, version=checked.version, context=checked.context,
                backoff=_backoff(checked.backoff), description=checked.description,
            )  # fmt: skip
            for name in order:
                _add(flow, steps[name], functions[name], conditions.get(name), inner.get(name))
        except BadDefinition as error:
            what = error.what.removeprefix(f"{self.where}: ")
            raise BadDefinition(f"{self.where}: {what}", where=error.where, next=error.next) from None
        return flow

    def _inner(self, named: str) -> Flow:
        if named.endswith(_SUFFIXES):
            return self._from_file(self.folder / named)
        return self.flows.find(named)

    def _function(self, place: int, step: StepPart) -> Callable[..., Any]:
        if step.cpu and (step.when or step.flow):
            raise BadDefinition(
                f"steps[{place}].cpu: it cannot be combined with when or flow, as another process runs only a function",
                where=f"steps[{place}].cpu",
                next="remove cpu, or move the condition into the function",
            )
        return self._named(f"steps[{place}].handler", step.handler or step.name)

    def _named(self, place: str, named: str) -> Callable[..., Any]:
        if named in self.handlers:
            return self.handlers[named]
        module, _, name = named.partition(":")
        if not name:
            raise BadDefinition(
                f"{place}: there is no handler {named}", where=place, next=_known(named, list(self.handlers))
            )
        try:
            target = reduce(getattr, name.split("."), importlib.import_module(module))
        except (ImportError, AttributeError) as error:
            raise BadDefinition(
                f"{place}: {named} cannot be imported: {error}", where=place, next="write package.module:function"
            ) from error
        if not callable(target):
            raise BadDefinition(
                f"{place}: {named} must be a function, got a {type(target).__name__}",
                where=place,
                next="name a function",
            )
        return target


def _known(named: str, handlers: Sequence[str]) -> str:
    if not handlers:
        return f"write module:{named}, or pass it: handlers={{'{named}': …}}"
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
    values = {name: value for name in _OPTIONS if (value := getattr(step, name)) is not None}
    options = {**values, "name": step.name, "when": condition}
    (flow.step(**options) if inner is None else flow.subflow(inner, **options))(function)


def _backoff(part: Any) -> Backoff | None:
    if part is None:
        return None
    values = part.model_dump(exclude_none=True)
    delays = ReenqueueDelays(**values.pop("reenqueue_delays", {}))
    return Backoff(**values, reenqueue_delays=delays)
