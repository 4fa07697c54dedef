"""A context with a JSON Schema (2020-12), for flows that are written without types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from holdfast.errors import BadDefinition, BadInput, InputRefused
from holdfast.kernel import finite
from holdfast.models import Json

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MOST_TOLD = 5
_SAID = (
    "type", "format", "pattern", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
)  # fmt: skip


class JsonSchema:
    """Checks contexts against a schema. Its defaults are not filled in; those of a handler are."""

    def __init__(self, flow: str, schema: Mapping[str, Any]) -> None:
        self._flow = flow
        self._schema = dict(schema)
        if self._schema.get("$schema", DIALECT).rstrip("#") != DIALECT:
            raise BadDefinition(
                f"the context of flow {flow} must be in the dialect {DIALECT}",
                where="context",
                next="remove $schema",
            )
        try:
            Draft202012Validator.check_schema(self._schema)
        except SchemaError as error:
            place = _path(error.absolute_path) or "it"
            raise BadDefinition(
                f"the context of flow {flow} is not a valid JSON Schema: {place}: {error.message}",
                where="context",
                next='write it as in {"type": "object", "properties": {"order_id": {"type": "integer"}}}',
            ) from None
        if self._schema.get("type") != "object":
            raise BadDefinition(
                f"the context of flow {flow} must be an object with named fields",
                where="context",
                next="write type: object",
            )
        self._check_references()
        self._validator = Draft202012Validator(
            self._schema, registry=Registry(), format_checker=Draft202012Validator.FORMAT_CHECKER
        )

    def write(self, given: Any) -> Json:
        """Check a context, and return it as JSON."""
        try:
            text = json.dumps(dict(given) if isinstance(given, Mapping) else given, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            complaint = finite.complaint_of_json(given, "context") if type(error) is ValueError else None
            if complaint:
                raise BadInput(
                    f"flow {self._flow} cannot be started: {complaint}", next="pass null or text instead"
                ) from None
            raise InputRefused(
                f"the context of flow {self._flow} is not valid JSON", where="context", next=self._usage()
            ) from None
        errors = sorted(self._validator.iter_errors(json.loads(text)), key=lambda error: _path(error.absolute_path))
        if errors:
            complaint = ", ".join(_complaint(error) for error in errors[:MOST_TOLD])
            raise InputRefused(
                f"the context does not fit flow {self._flow}: {complaint}", where="context", next=self._usage()
            )
        return Json(text)

    def schema(self) -> dict[str, Any]:
        """Return it as it was written."""
        return self._schema

    def _usage(self) -> str:
        return f"pass its fields: {', '.join(self._schema.get('properties', {}))}"

    def _check_references(self) -> None:
        """Raise for a reference that would fail each start, because nothing is fetched."""
        resource = Resource.from_contents(self._schema, default_specification=DRAFT202012)
        resolver = Registry().with_resource("", resource).resolver("")
        for reference in _references(self._schema):
            try:
                resolver.lookup(reference)
            except Unresolvable:
                raise BadDefinition(
                    f"the context of flow {self._flow} refers to {reference}, which is not in it",
                    where="context",
                    next="write it under $defs",
                ) from None


def _complaint(error: ValidationError) -> str:
    """Return what does not fit, by name and without the values, which may be secrets."""
    rule_value: Any = error.validator_value
    given: Any = error.instance
    beside: Any = error.schema
    place = _path(error.absolute_path)
    match rule := error.validator:
        case "required":
            missing = [name for name in rule_value if name not in given]
            return f"{_path([*error.absolute_path, missing[0]])}: is missing"
        case "additionalProperties" if rule_value is False:
            extra = sorted(given.keys() - beside.get("properties", {}).keys())
            return f"{_path([*error.absolute_path, extra[0]])}: is not known"
        case _ if rule in _SAID:
            return f"{place or 'context'}: must have {rule} {json.dumps(rule_value)}"
        case _:
            return f"{place or 'context'}: does not satisfy its {rule}"


def _path(parts: Any) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")


def _references(schema: Any) -> Iterator[str]:
    match schema:
        case dict():
            for name, value in schema.items():
                if name in {"$ref", "$dynamicRef"} and isinstance(value, str):
                    yield value
                elif name not in {"enum", "const", "default", "examples"}:
                    yield from _references(value)
        case list():
            for value in schema:
                yield from _references(value)
