"""Builds the handlers of a flow's steps, and decides where each argument comes from."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from holdfast.errors import BadDefinition, InputRefused
from holdfast.flow import batches, calls, wrappers
from holdfast.flow.backoff import Backoff, StepRetry
from holdfast.flow.context import Context, Fields, known_fields
from holdfast.flow.limits import check_fields, check_place
from holdfast.flow.step import Node, Title
from holdfast.flow.wrappers import OURS, Parameters, conditional
from holdfast.handlers.batch_signature import BatchSignature
from holdfast.handlers.inputs import Want
from holdfast.handlers.limits import KindLimits
from holdfast.handlers.registry import Handler, RetryLaw, RetryPolicy
from holdfast.handlers.secret_parameters import env_of
from holdfast.handlers.signature import Signature, validation_text
from holdfast.models import Json

CONFIG = "config"  # the parameter that receives the config of a step's definition
_SOURCES = {  # of the wrappers' own parameters: a source, and a name in it
    wrappers.PLACE: ("name", ""),
    wrappers.PLAN: ("own", "plan"),
    wrappers.VERSION: ("own", "version"),
    wrappers.INNER: ("inner", ""),
    wrappers.CONTEXT: ("whole", ""),
}


class Declared(NamedTuple):
    """The type and check of a flow's context, if it declares one."""

    hint: Any = None
    check: Context | None = None


class Maker:
    """Builds the handlers of one flow."""

    def __init__(self, title: Title, nodes: Mapping[str, Node], context: Declared, backoff: Backoff) -> None:
        self.fields = Fields(title.name)
        self._title = title
        self._nodes = nodes
        self._context = context.check
        self._context_type = context.hint
        self._known = None if context.check is None else known_fields(context.check.schema())
        self._backoff = backoff

    def handlers(self, node: Node, function: Callable[..., Any]) -> list[Handler]:
        """Build the handlers of a step: of its planned row, and of the steps that it plans when it runs."""
        self._check_parameters(node, function)
        check_place(self._title.name, node)
        if self._context is not None:
            check_fields(self._title.name, [node], self._context)
        own = function
        if node.inner is not None:
            inner = node.inner
            own = wrappers.opener(function, lambda: inner.context)
        if node.each is not None:
            kind = self._title.kind(node.name)
            item = {"kind": kind, "queue": node.options.queue, "priority": node.options.priority}
            is_optional = self._nodes[node.each].may_be_skipped
            limited = node.options.limited
            over = wrappers.mapper(
                item,
                node.each,
                function,
                limited=limited,
                batch_key=batches.template(node.options),
                may_be_skipped=is_optional,
            )
            return [self._handler(node, _guarded(over, node), node.kind), self._handler(node, own, kind)]
        return [self._handler(node, _guarded(own, node), node.kind)]

    def _handler(self, node: Node, function: Callable[..., Any], kind: str) -> Handler:
        options = node.options
        is_own = kind == self._title.kind(node.name)  # not of the row that plans one step per item
        batching = options.batching if is_own else None
        if batching is None:
            named = {n: p for n, p in Parameters(function).named.items() if env_of(p.annotation) is None}
        else:
            named = batches.item_fields(self._title.name, node, function)
        constants = self._constants(node, named)
        return Handler(
            kind=kind,
            function=function,
            signature=Signature(function) if batching is None else BatchSignature(function, batching),
            is_async=inspect.iscoroutinefunction(function),
            uses_cpu=options.cpu and is_own,
            queue=options.queue,
            retry=_law(node, self._backoff),
            lease=options.lease,
            timeout=options.timeout,
            wants=tuple(self._want(node, name, each) for name, each in named.items() if name not in constants),
            constants=Json(json.dumps(constants)) if constants else None,
            completes=calls.step_surroundings,
            version=self._title.version,
            face="flow",
            limited=KindLimits(call_weight=options.call_weight if is_own else None),  # the rest is in the plan
            batching=None if batching is None else replace(batching, by=None),  # the plan has the keys
        )

    def _want(self, node: Node, name: str, parameter: inspect.Parameter) -> Want:
        hint = parameter.annotation
        match name:
            case _ if name in _SOURCES:
                return Want(name, *_SOURCES[name])
            case wrappers.ITEM if node.each is not None:
                return Want(name, "own", name)
            case _ if name in node.after:
                self._check_may_be_none(node, name, hint)
                return Want(name, "parent", name)
            case _ if self._context_type is not None and hint is self._context_type:
                return Want(name, "whole", "")
        if self._context_type is None:
            self.fields.add(node.name, parameter, hint)
        elif self._known is not None and name not in self._known and parameter.default is parameter.empty:
            if name in self._nodes:
                raise BadDefinition(self._forgotten(node.name, name), where=name, next=f"write after={name}")
            raise BadDefinition(
                (
                    f"step {node.name} of flow {self._title.name} takes {name}, which is neither a step that it waits "
                    f"for nor a field of the context (it has: {', '.join(self._known) or 'none'})"
                ),
                where=name,
                next="use one of these names, or add a default",
            )
        return Want(name, "context", name)

    def forgotten(self, field: str) -> InputRefused | None:
        """Explain a missing field that has the name of a step: another step does not wait for it."""
        taker = self.fields.taker(field)
        if taker is None or field not in self._nodes:
            return None
        return InputRefused(
            self._forgotten(taker, field),
            where=field,
            next=f"write @{self._title.name}.step(after={field}) above {taker}",
        )

    def _forgotten(self, step: str, parent: str) -> str:
        """Return the message for a step that takes the result of a step it does not wait for."""
        return f"step {step} of flow {self._title.name} takes {parent}, which is a step that it does not wait for"

    def _constants(self, node: Node, named: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
        """Return the arguments that are the same for all rows of the step."""
        config = node.options.config
        if config is None or CONFIG not in named:
            return {}
        try:
            TypeAdapter(named[CONFIG].annotation).validate_json(json.dumps(config))
        except ValidationError as error:
            raise BadDefinition(
                f"step {node.name} of flow {self._title.name}: its config does not fit its function: "
                f"{validation_text(error)}",
                where="config",
                next="correct the config of the step, or the annotation of its parameter",
            ) from None
        return {CONFIG: config}

    def _check_parameters(self, node: Node, function: Callable[..., Any]) -> None:
        is_batch = node.options.batching is not None
        named = batches.item_fields(self._title.name, node, function) if is_batch else Parameters(function).named
        if node.each is not None and wrappers.ITEM not in named:
            raise BadDefinition(
                (
                    f"step {node.name} of flow {self._title.name} runs once per item of {node.each} but does not "
                    "take the item"
                ),
                where=node.name,
                next=f"add a parameter called {wrappers.ITEM}",
            )
        if ours := [name for name in named if name.startswith(OURS)]:
            raise BadDefinition(
                f"step {node.name}: {ours[0]} begins with {OURS}, which is reserved",
                where=ours[0],
                next=f"rename {ours[0]}",
            )

    def _check_may_be_none(self, node: Node, parent: str, hint: Any) -> None:
        if not self._nodes[parent].may_be_skipped:
            return
        try:
            TypeAdapter(hint).validate_python(None)
        except ValidationError:
            raise BadDefinition(
                f"step {node.name} of flow {self._title.name} takes the result of {parent}, which may be skipped",
                where=node.name,
                next=f"annotate it so that it accepts None: {parent}: … | None",
            ) from None


def _guarded(function: Callable[..., Any], node: Node) -> Any:
    condition = node.options.when
    return function if condition is None else conditional(function, condition, node.name)


def _law(node: Node, backoff: Backoff) -> RetryLaw:
    law, retryable = node.options.retry, node.options.retryable
    if isinstance(law, (RetryPolicy, StepRetry)):
        return law if retryable else replace(law, retryable=False)
    return StepRetry(node.limit, backoff, retryable)
