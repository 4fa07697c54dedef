"""The context of a flow: the input of a start, which its steps read. It is checked by types and stored as JSON."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NotRequired, Protocol, cast, runtime_checkable

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from typing_extensions import TypedDict

from holdfast.errors import BadDefinition, BadInput, InputRefused
from holdfast.flow.yaml import needs_extra
from holdfast.handlers.secret_parameters import refuse_secret_value, refuse_stored
from holdfast.handlers.signature import first_place, strict_scalars, validation_text
from holdfast.kernel import finite
from holdfast.models import Json

_OPEN = {"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"}  # with these, fields may be defined elsewhere


@runtime_checkable
class Context(Protocol):
    """A check of contexts."""

    def write(self, value: Any) -> Json:
        """Check a context and return it as JSON; raise InputRefused, or BadInput for NaN and infinity."""

    def schema(self) -> dict[str, Any]:
        """Return it as JSON Schema."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the context as one step takes it."""

    hint: Any
    is_required: bool
    step: str


class Fields:
    """The fields of a context, collected from the parameters of the flow's steps."""

    def __init__(self, flow: str) -> None:
        self._flow = flow
        self._fields: dict[str, Field] = {}

    def add(self, step: str, parameter: inspect.Parameter, hint: Any) -> None:
        """Record that a step takes a field; reject another type than the one in other steps."""
        name, is_required = parameter.name, parameter.default is parameter.empty
        other = self._fields.get(name)
        if other is None or (other.hint is Any and hint is not Any):
            self._fields[name] = Field(hint, is_required or (other is not None and other.is_required), step)
            return
        if hint is not Any and hint != other.hint:
            raise BadDefinition(
                (
                    f"{self._flow}: {name} of the context is {_type_name(other.hint)} in step {other.step} "
                    f"and {_type_name(hint)} in step {step}"
                ),
                where=name,
                next=(f"use one type, or another name if it is the result of a step that {step} waits for"),
            )
        if is_required and not other.is_required:
            self._fields[name] = replace(other, is_required=True)

    def taker(self, name: str) -> str | None:
        """Return the step that takes a field."""
        return self._fields[name].step if name in self._fields else None

    def typed(self) -> Any:
        """Return the type of the whole context."""
        hints = {name: strict_scalars(field.hint) for name, field in self._fields.items()}
        types = {n: hints[n] if f.is_required else NotRequired[hints[n]] for n, f in self._fields.items()}
        typed = cast("Any", TypedDict)(f"{self._flow} context", types)
        typed.__pydantic_config__ = ConfigDict(extra="forbid")
        return typed


class Typed:
    """A context by its type: a pydantic model, a dataclass, a TypedDict, or the collected fields of the steps."""

    def __init__(self, flow: str, hint: Any, missing: Callable[[str], InputRefused | None] | None = None) -> None:
        self._flow = flow
        self._missing = missing  # explains a missing field that is not the caller's fault
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(hint)
        except PydanticSchemaGenerationError as error:
            raise BadDefinition(
                f"the context of flow {flow} cannot be stored as JSON: {str(error).splitlines()[0]}",
                where="context",
                next="use a pydantic model, a dataclass or plain JSON types",
            ) from error
        refuse_stored(f"the context of flow {flow}", self._adapter, "a context")

    def write(self, value: Any) -> Json:
        """Check a context, and return it as JSON."""
        try:
            checked = self._adapter.validate_python(value)
            text = self._adapter.dump_json(checked).decode()
        except ValidationError as error:
            raise self._explained(error) or InputRefused(
                f"the context does not fit flow {self._flow}: {validation_text(error)}",
                where=first_place(error) or "context",
                next=self._usage(),
            ) from None
        except (PydanticSerializationError, UnicodeEncodeError, ValueError) as error:
            raise InputRefused(
                f"the context of flow {self._flow} is not valid JSON: {error}", where="context", next=self._usage()
            ) from None
        if complaint := finite.complaint(self._adapter, checked, text, "context"):
            raise BadInput(
                f"flow {self._flow} cannot be started: {complaint}",
                next="JSON cannot hold it, so pass None or text",
            )
        refuse_secret_value(f"flow {self._flow}", text)
        return Json(text)

    def schema(self) -> dict[str, Any]:
        """Return it as JSON Schema."""
        return self._adapter.json_schema()

    def _explained(self, error: ValidationError) -> InputRefused | None:
        if self._missing is None:
            return None
        names = (str(each["loc"][0]) for each in error.errors(include_url=False) if each["type"] == "missing")
        return next((found for found in map(self._missing, names) if found is not None), None)

    def _usage(self) -> str:
        fields = self.schema().get("properties", {})
        return f"pass its fields: {', '.join(fields)}"


def read_context(flow: str, declared: Any) -> Context:
    """Return the check of a declared context: of a type, of a JSON Schema, or a check itself."""
    if isinstance(declared, Context) and not isinstance(declared, type):
        return declared
    if isinstance(declared, Mapping):
        with needs_extra():
            from holdfast.flow.yaml.json_schema import JsonSchema
        return JsonSchema(flow, declared)
    return Typed(flow, declared)


def known_fields(schema: Mapping[str, Any]) -> list[str] | None:
    """List the fields that a context may have; None if its schema leaves them open."""
    if "properties" not in schema or schema.get("additionalProperties", False) is not False:
        return None
    return None if schema.keys() & _OPEN else list(schema["properties"])


def given_as(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Read a context from a caller's arguments: one value, or its fields by name."""
    if len(args) > 1 or (args and kwargs):
        raise InputRefused(
            "a start takes either the whole context or its fields by name, got both", next="pass only one of them"
        )
    return args[0] if args else dict(kwargs)


def _type_name(hint: Any) -> str:
    return getattr(hint, "__name__", None) or str(hint)
