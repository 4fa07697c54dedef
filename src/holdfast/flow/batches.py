"""Batch handlers of a flow's steps: the fields of their items, and the key by which steps share calls."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import BaseModel
from typing_extensions import is_typeddict

from holdfast.errors import BadDefinition
from holdfast.flow.wrappers import parameter
from holdfast.handlers.batch_signature import BatchSignature
from holdfast.handlers.signature import Signature

if TYPE_CHECKING:
    from holdfast.flow.step import Node, StepOptions

_REFUSED = {
    "when": "return None for an item that is to be skipped",
    "inner": "give batch to the steps of the inner flow",
}


def signature_of(function: Callable[..., Any], options: StepOptions) -> Signature:
    """Return the signature of a step's function."""
    batching = options.batching
    return Signature(function) if batching is None else BatchSignature(function, batching)


def item_fields(flow: str, node: Node, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the fields of a batch handler's items as the parameters that other steps have."""
    for option, fix in _REFUSED.items():
        if (node.inner if option == "inner" else getattr(node.options, option)) is not None:
            raise BadDefinition(
                f"step {node.name} of flow {flow} cannot have batch and {'a flow' if option == 'inner' else option}",
                where="batch",
                next=fix,
            )
    signature = signature_of(function, node.options)
    fields = _fields(signature.item) if isinstance(signature, BatchSignature) else None
    if fields is None:
        raise BadDefinition(
            f"step {node.name} of flow {flow}: the type of its items does not list their fields",
            where="batch",
            next="use a pydantic model, a dataclass or a TypedDict with the names that parameters would have",
        )
    _check_by(flow, node)
    return fields


def template(options: StepOptions) -> str | None:
    """Return the batch_key of a planned step, with the field of the context still to be filled in."""
    batching = options.batching
    if batching is None:
        return None
    return "" if batching.by is None else f"{{{batching.by}}}"


def _check_by(flow: str, node: Node) -> None:
    by = node.options.by
    if by is not None and by in node.after:
        raise BadDefinition(
            f"step {node.name} of flow {flow}: by names {by}, the result of a step that it waits for",
            where="by",
            next="calls are formed before a step's parents end, so name a field of the context",
        )


def _fields(item: Any) -> dict[str, inspect.Parameter] | None:
    if isinstance(item, type) and issubclass(item, BaseModel):
        return {
            name: parameter(name, field.annotation, _default(is_required=field.is_required()))
            for name, field in item.model_fields.items()
        }
    if dataclasses.is_dataclass(item):
        required = {
            field.name: field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            for field in dataclasses.fields(item)
        }
    elif is_typeddict(item):
        required = {name: name in item.__required_keys__ for name in item.__annotations__}
    else:
        return None
    hints: Mapping[str, Any] = get_type_hints(item)
    return {name: parameter(name, hints[name], _default(is_required=needed)) for name, needed in required.items()}


def _default(*, is_required: bool) -> Any:
    return inspect.Parameter.empty if is_required else None
