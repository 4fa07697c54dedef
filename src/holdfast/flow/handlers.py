"""The handlers of a flow's steps, and what each is called with: out of the context, parents' results, its own input."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from holdfast.errors import BadTask
from holdfast.flow import calls, expand, graph
from holdfast.flow.backoff import Backoff, StepRetry
from holdfast.flow.calling import Parameters, conditional
from holdfast.flow.context import Fields
from holdfast.flow.node import Node
from holdfast.flow.options import Title
from holdfast.kernel.completion import Want
from holdfast.kernel.registry import Handler, RetryLaw, RetryPolicy
from holdfast.kernel.signature import Signature


class Maker:
    """Makes the handlers of one flow."""

    def __init__(self, title: Title, nodes: Mapping[str, Node], context_type: Any, backoff: Backoff) -> None:
        self.fields = Fields(title.name)
        self._title = title
        self._nodes = nodes
        self._context_type = context_type
        self._backoff = backoff

    def handlers(self, node: Node, function: Callable[..., Any]) -> list[Handler]:
        """Make the handlers of a step: of its planned row, and of what that plans in its turn."""
        made = function
        if node.inner is not None:
            inner = node.inner
            made = expand.opener(function, lambda: inner.context, graph.leaves(inner.waits()))
        if node.each is not None:
            kind = self._title.kind(node.name)
            item = {"kind": kind, "queue": node.options.queue, "priority": node.options.priority}
            over = expand.mapper(item, node.each, function)
            return [self._handler(node, _guarded(over, node), node.kind), self._handler(node, made, kind)]
        return [self._handler(node, _guarded(made, node), node.kind)]

    def _handler(self, node: Node, function: Callable[..., Any], kind: str) -> Handler:
        options = node.options
        return Handler(
            kind=kind,
            function=function,
            signature=Signature(function),
            is_async=inspect.iscoroutinefunction(function),
            uses_cpu=options.cpu and kind == self._title.kind(node.name),
            queue=options.queue,
            retry=_law(node, self._backoff),
            lease=options.lease,
            timeout=options.timeout,
            wants=tuple(self._want(node, name, each) for name, each in Parameters(function).named.items()),
            completes=calls.step_surroundings,
            version=self._title.version,
            face="flow",
        )

    def _want(self, node: Node, name: str, parameter: inspect.Parameter) -> Want:
        hint = parameter.annotation
        match name:
            case expand.PLACE:
                return Want(name, "name", "")
            case expand.PLAN | expand.VERSION:
                return Want(name, "own", name.removeprefix("holdfast_"))
            case _ if name.startswith(expand.INNER):
                return Want(name, "inner", name.removeprefix(expand.INNER))
            case expand.ITEM if node.each is not None:
                return Want(name, "own", name)
            case _ if name in node.after:
                self._check_may_be_none(node, name, hint)
                return Want(name, "parent", name)
            case _ if self._context_type is not None and hint is self._context_type:
                return Want(name, "whole", "")
        if self._context_type is None:
            self.fields.add(node.name, parameter, hint)
        return Want(name, "context", name)

    def _check_may_be_none(self, node: Node, parent: str, hint: Any) -> None:
        if not self._nodes[parent].may_be_skipped:
            return
        try:
            TypeAdapter(hint).validate_python(None)
        except ValidationError:
            raise BadTask(
                f"step {node.name} of flow {self._title.name} takes the result of {parent}, which may be skipped; "
                f"annotate it so that None may come: {parent}: … | None"
            ) from None


def _guarded(function: Callable[..., Any], node: Node) -> Any:
    condition = node.options.when
    return function if condition is None else conditional(function, condition, node.name)


def _law(node: Node, backoff: Backoff) -> RetryLaw:
    law, retryable = node.options.retry, node.options.retryable
    if isinstance(law, (RetryPolicy, StepRetry)):
        return law if retryable else replace(law, limit=1)
    return StepRetry(node.limit, backoff, retryable)
