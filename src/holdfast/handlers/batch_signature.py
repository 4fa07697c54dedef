"""The signature of a batch handler: `def push(batch: Batch, prices: list[Price]) -> list[Any]`.

The input of a step is one item of the list, and its result one element of the returned list.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema

from holdfast.errors import BadDefinition, InputRefused
from holdfast.handlers.batch import Batch, Batching
from holdfast.handlers.context import Ctx
from holdfast.handlers.signature import TRACE, Signature, first_place, validation_text
from holdfast.models import Continue, Fail, Json, Retry, Snooze

_OUTCOMES = (Retry, Fail, Snooze, Continue)
_UNFIT = ("array", "object", "null")


class BatchSignature(Signature):
    """The items and the results of one batch handler; what it reads and writes is one of them."""

    def __init__(self, function: Callable[..., Any], batching: Batching) -> None:
        self._batching = batching
        self.fields: dict[str, str | None] | None = None
        super().__init__(function)
        self.fields = _fields(self._arguments)
        self._check_item()

    def read_item(self, text: str | bytes) -> tuple[Any, dict[str, str] | None]:
        """Read one item, and the trace context that its start may have stored beside its fields."""
        trace = None
        if isinstance(text, str) and f'"{TRACE}"' in text:
            fields = json.loads(text)
            trace = fields.pop(TRACE, None) if isinstance(fields, dict) else None
            text = json.dumps(fields)
        return self.read(text), trace if isinstance(trace, dict) else None

    def check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Check the item of a caller: one argument, or its fields by name."""
        if self.secrets:
            self._refuse_secrets(kwargs)
        if len(args) + bool(kwargs) != 1:
            raise InputRefused(
                f"{self._name} takes one item, got {len(args)} and {len(kwargs)} fields", next=self.usage()
            )
        try:
            return self._given.validator.validate_python(args[0] if args else dict(kwargs))
        except ValidationError as error:
            raise InputRefused(
                f"the item does not fit {self._name}: {validation_text(error)}",
                where=first_place(error),
                next=self.usage(),
            ) from None

    def read_given(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check an item in JSON form, where a date is text, and return its fields."""
        try:
            self.read(json.dumps(dict(arguments)))
        except ValidationError as error:
            raise InputRefused(
                f"the item does not fit {self._name}: {validation_text(error)}", next=self.usage()
            ) from None
        return dict(arguments)

    def names(self, *, by_place: bool = False) -> list[str]:  # noqa: ARG002 - an item has no places
        """List the fields of an item, as far as they are known."""
        return list(self.fields or ())

    def write(self, checked: Any) -> Json:
        """Return a checked item as JSON."""
        text = super().write(checked)
        if not text.startswith("{"):
            raise InputRefused(
                f"an item of {self._name} must have fields, got {type(checked).__name__}", next=self.usage()
            )
        return text

    def usage(self) -> str:
        """Return the type of an item, for messages."""
        return f"pass one item of {self.items_name}: {inspect.formatannotation(self.item)}"

    def _find_ctx(self, hints: dict[str, Any]) -> str | None:
        names = list(self._signature.parameters)
        for name in names:
            if isinstance(hints.get(name), type) and issubclass(hints[name], Ctx):
                raise BadDefinition(
                    f"{self._name} has a batch and takes {name}: Ctx",
                    where=name,
                    next=f"write {name}: holdfast.Batch; it has one Ctx per item in `steps`",
                )
        batches = [name for name in names if hints.get(name) is Batch]
        if batches and batches != names[:1]:
            raise BadDefinition(f"{self._name} takes {batches[0]}: Batch after other parameters", next="put it first")
        return batches[0] if batches else None

    def _arguments_type(self, hints: dict[str, Any]) -> Any:
        """Return the type of an item."""
        others = [name for name in self._signature.parameters if name not in self._supplied]
        hint = hints.get(others[0], list) if others else None
        origin, inner = get_origin(hint) or hint, get_args(hint)
        if len(others) != 1 or origin is not list:
            named = next((name for name in others if (get_origin(hints.get(name)) or hints.get(name)) is not list), "")
            raise BadDefinition(
                f"{self._name} has a batch and must take one list of items, got ({', '.join(others)})",
                where=named or self._name,
                next=f"write {others[0] if others else 'items'}: list[Item]",
            )
        self.items_name = others[0]
        self.item: Any = inner[0] if inner else Any
        return self.item

    def _result_type(self, hints: dict[str, Any]) -> Any:
        """Return the type of a result: an element of the list without the outcomes that it may be instead."""
        hint = hints.get("return", Any)
        if hint is Any:
            return Any
        origin, inner = get_origin(hint) or hint, get_args(hint)
        if origin is not list:
            raise BadDefinition(
                f"{self._name} has a batch and must return a list, but is annotated {inspect.formatannotation(hint)}",
                where="return",
                next="return one element per item: -> list[…]",
            )
        element = inner[0] if inner else Any
        if get_origin(element) in {Union, UnionType}:
            kept = [each for each in get_args(element) if each not in _OUTCOMES]
            return Union[tuple(kept)] if kept else Any  # noqa: UP007 - its members are known only at run time
        return Any if element in _OUTCOMES else element

    def _check_item(self) -> None:
        by = self._batching.by
        if self.fields is None or by is None:
            return
        if by not in self.fields:
            raise BadDefinition(
                f"by names {by}, which is not a field of the items of {self._name}",
                where="by",
                next=f"use one of: {', '.join(self.fields) or 'none'}",
            )
        if self.fields[by] in _UNFIT:
            raise BadDefinition(
                f"by needs text, a number or a boolean, got {by}, which is an {self.fields[by]}",
                where="by",
                next="name another field",
            )


def _fields(adapter: TypeAdapter[Any]) -> dict[str, str | None] | None:
    """Map the fields of an item to their types in JSON; None if the type does not list them."""
    try:
        schema = adapter.json_schema()
    except PydanticInvalidForJsonSchema:
        return None
    whole = _resolved(schema, schema)
    kind = whole.get("type")
    if kind is not None and kind != "object":
        raise BadDefinition(
            f"the items of a batch handler must have fields, got the type {kind}",
            where="batch",
            next="use a pydantic model, a dataclass or a TypedDict",
        )
    if "properties" not in whole:
        return None
    return {name: _resolved(each, schema).get("type") for name, each in whole["properties"].items()}


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    place = schema.get("$ref", "").removeprefix("#/$defs/")
    resolved = root.get("$defs", {}).get(place, schema) if place else schema
    return resolved if isinstance(resolved, dict) else {}
