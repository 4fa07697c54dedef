"""The limits of a flow's steps: checks what their templates name, and fills in the fields of the context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.errors import BadDefinition, BadInput
from holdfast.flow.context import Context, known_fields
from holdfast.handlers.limits import KindLimits, filled_in
from holdfast.models import Fail

if TYPE_CHECKING:
    from holdfast.flow.step import Node

ITEM = "item"
_UNFIT = ("array", "boolean", "null", "object")  # types of JSON Schema that cannot be part of a name


def check_place(flow: str, node: Node) -> None:
    """Raise for limits of a sub-flow: they would apply to its opening and closing, not to the work inside."""
    options = node.options
    for option in ("limits", "weight", "call_weight"):
        if node.inner is not None and getattr(options, option) is not None:
            raise BadDefinition(
                f"step {node.name} of flow {flow} is a sub-flow and cannot have {option}",
                where=option,
                next=f"give {option} to the steps of {node.inner.title.name}",
            )


def check_fields(flow: str, nodes: Iterable[Node], context: Context) -> None:
    """Raise for a template that names no field of the context, as far as its type lists them."""
    nodes = [node for node in nodes if node.options.limited.fields()]
    if not nodes:
        return
    schema = context.schema()
    known = known_fields(schema)
    types: Mapping[str, Any] = schema.get("properties", {})
    for node in nodes:
        for field, template in node.options.limited.fields().items():
            name = field if known and field in known else field.partition(".")[0]
            if node.each is not None and name == ITEM:
                continue
            if known is not None and name not in known:
                raise _unknown(flow, node, name, template, known)
            kind = types[field].get("type") if isinstance(types.get(field), dict) else None
            if kind in _UNFIT:
                raise BadDefinition(
                    f"step {node.name} of flow {flow}: {template} needs text or a number, got the type {kind}",
                    where=field,
                    next=f"name a field that is text or a number, such as {{{field}.id}} of an object",
                )


def filled(step: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Return a step of a plan with the fields of a context filled in, as SQL does at a start."""
    templates, weight = step.get("limits"), step.get("weight")
    limited = KindLimits(None if templates is None else tuple(templates), None if weight is None else str(weight))
    return {**step, **_written(limited, step.get("batch_key"), context)}


def of_item(
    limited: KindLimits, batch_key: str | None, context: Any, items: Sequence[Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield each item of a map with its limits and key: those of the step, with the context's and the item's fields."""
    for item in items:
        try:
            yield item, _written(limited, batch_key, {**(context or {}), ITEM: item})
        except BadInput as error:
            raise Fail({"type": "LimitRefused", "message": f"{error.what}; {error.next}"}) from None


def _written(limited: KindLimits, batch_key: str | None, fields: Any) -> dict[str, Any]:
    names, weight = limited.filled(fields, "context")
    written = {**({"limits": names} if names else {}), **({} if weight is None else {"weight": weight})}
    if batch_key is not None:
        written["batch_key"] = filled_in(batch_key, fields, "context")
    return written


def _unknown(flow: str, node: Node, name: str, template: str, known: Sequence[str]) -> BadDefinition:
    what = f"step {node.name} of flow {flow}: {template} names {name}, which is not a field of the context"
    if name in node.after:
        fix = "limits are known before a step's parents end, so name a field of the context"
    elif name == ITEM:
        fix = "only a step with each= has an item"
    else:
        fix = f"use one of: {', '.join(known) or 'none'}; or add {name}, in `context=` or as a parameter of a step"
    return BadDefinition(what, where=name, next=fix)
