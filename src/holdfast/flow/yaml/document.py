"""A flow as a document: its fields, checked with messages that name the place, and merged with an environment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, create_model

from holdfast import config, durations
from holdfast.errors import BadDefinition
from holdfast.flow.backoff import DURATIONS, Backoff, ReenqueueDelays
from holdfast.flow.step import NAMESPACE, VERSION
from holdfast.spelling import did_you_mean

GUIDE = "correct it as in docs/guides/flows-in-yaml.md"
Name = Annotated[str, Field(min_length=1)]


_SHOWN = (
    Field(strict=False, description="Seconds, or text with units, as in 500ms, 30s, 5m or 1h30m."),
    WithJsonSchema({"type": ["number", "string"], "minimum": 0, "pattern": durations.PATTERN}),
)
Duration = Annotated[config.Duration, *_SHOWN]
Wait = Annotated[timedelta, BeforeValidator(durations.parse), *_SHOWN]  # it may be 0


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _as_part(model: type, **below: Any) -> Any:
    """Return the fields of a dataclass as a part of a document, where each is optional."""
    hints = {**get_type_hints(model), **below}
    fields: dict[str, Any] = {name: (hint | None, None) for name, hint in hints.items()}
    return create_model(model.__name__, __base__=_Part, __doc__=model.__doc__, **fields)


DelaysPart = _as_part(ReenqueueDelays, **dict.fromkeys((each.name for each in fields(ReenqueueDelays)), Wait))
BackoffPart = _as_part(
    Backoff, **dict.fromkeys(DURATIONS, Wait), default_backoff_seconds=list[Wait], reenqueue_delays=DelaysPart
)


class StepPart(_Part):
    """A step; without a handler it is served by the one with its name."""

    name: Name
    handler: Name | None = Field(None, description="module:function, or the name of a passed handler.")
    after: Name | list[Name] = Field([], description="The steps that it waits for, by name.")
    each: Name | None = Field(None, description="Run once per item of this step's result.")
    when: Name | None = Field(None, description="A condition, as module:function; if it is false, the step is skipped.")
    flow: Name | None = Field(
        None, description="A sub-flow: the file of a document, or the name of one of the app's flows."
    )
    retry: int | Literal[False] | None = Field(
        None, description="Executions, including the first; false means only one."
    )
    retryable: bool = Field(default=True, description="Whether a failure is retried.")
    skippable: bool = Field(default=False, description="Whether a start may skip it.")
    queue: Name | None = None
    timeout: Duration | None = None
    lease: Duration | None = None
    cpu: bool = Field(default=False, description="Whether it runs in its own process.")
    priority: int = Field(0, ge=0, le=9, description="Higher runs first.")
    description: str | None = None
    config: dict[str, Any] | None = Field(None, description="Passed to its function as `config`.")
    limits: list[Name] | None = Field(
        None, max_length=3, description="Limits by name; {field} is a field of the context, {item} an item of `each`."
    )
    weight: float | Name | None = Field(
        None, description="What it takes from the limits' buckets: a number, or a field as in '{tokens}'."
    )
    call_weight: float | None = Field(None, ge=0, description="What each call of its function takes in addition.")
    batch: int | None = Field(None, ge=1, le=10_000, description="How many steps one call of its function may serve.")
    by: Name | None = Field(None, description="The field of the items whose value all steps of a call share.")
    batch_wait: Duration | None = Field(None, description="How long a call that is not full waits for more steps.")


class EnvironmentPart(_Part):
    """What differs in an environment: mappings are merged, everything else is replaced, and null removes a name."""

    description: str | None = None
    context: dict[str, Any] | None = None
    backoff: dict[str, Any] | None = None
    steps: dict[Name, dict[str, Any]] = Field({}, description="What differs, by the step's name.")


class Document(_Part):
    """A flow of Holdfast."""

    name: Name
    namespace: Name = NAMESPACE
    version: Name = Field(VERSION, description="In quotes, because YAML reads 1.10 as the number 1.1.")
    description: str | None = None
    context: dict[str, Any] | None = Field(None, description="JSON Schema (2020-12) of a start's input.")
    backoff: BackoffPart | None = None  # type: ignore[valid-type]
    steps: list[StepPart] = Field(min_length=1)
    environments: dict[Name, EnvironmentPart | None] = {}


def check(values: Any, where: str, environment: str | None) -> Document:
    """Parse a document from plain values, for an environment; `where` is its name in messages."""
    if not isinstance(values, Mapping):
        raise BadDefinition(f"{where} must be a mapping", where=where, next="write at least a name and steps")
    document = _read(values, where)
    _check_names(document, where)
    there = {
        name: _read(_overridden(values, where, name), f"{where}, environment {name}") for name in document.environments
    }
    if environment is None or not there:
        return document
    if environment not in there:
        raise BadDefinition(
            f"{where} has no environment {environment} (it has: {', '.join(there)})",
            where="environment",
            next=f"if nothing differs there, write {environment}: {{}}",
        )
    return there[environment]


def schema() -> dict[str, Any]:
    """Return the JSON Schema of documents, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Document.model_json_schema()}


def _read(values: Mapping[str, Any], where: str) -> Document:
    try:
        return Document.model_validate_json(json.dumps(values, allow_nan=False))
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False)
        complaints = "; ".join(dict.fromkeys(_complaint(each) for each in errors[:5]))
        raise BadDefinition(f"{where}: {complaints}", where=where, next=GUIDE) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise BadDefinition(f"{where} cannot be written as JSON: {error}", where=where, next=GUIDE) from None


def _overridden(values: Mapping[str, Any], where: str, environment: str) -> dict[str, Any]:
    own = values["environments"][environment] or {}
    known = [step["name"] for step in values["steps"]]
    for name in own.get("steps") or {}:
        if name not in known:
            place = f"environments.{environment}.steps.{name}"
            raise BadDefinition(
                f"{where}: {place} is not one of its steps", where=place, next=did_you_mean(name, known)
            )
    steps = [merged(step, (own.get("steps") or {}).get(step["name"], {})) for step in values["steps"]]
    return merged(values, {name: part for name, part in own.items() if name != "steps"}) | {"steps": steps}


def merged(into: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings, replace everything else, and remove what is null, as a JSON merge patch does."""
    values = {**into}
    for name, value in patch.items():
        if value is None:
            values.pop(name, None)
        elif isinstance(value, Mapping):
            below = values.get(name)
            values[name] = merged(below if isinstance(below, Mapping) else {}, value)
        else:
            values[name] = value
    return values


def _check_names(document: Document, where: str) -> None:
    seen: dict[str, int] = {}
    for place, step in enumerate(document.steps):
        if step.name in seen:
            raise BadDefinition(
                f"{where}: steps[{place}].name is {step.name}, as is steps[{seen[step.name]}].name",
                where=f"steps[{place}].name",
                next="give one of them another name",
            )
        seen[step.name] = place


def _complaint(error: Any) -> str:
    parts = [part for part in error["loc"] if not _is_of_a_union(part)]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")
    match error["type"]:
        case "extra_forbidden":
            return f"{place} is not known; {did_you_mean(str(parts[-1]), _names_beside(parts))}"
        case "missing":
            return f"{place} is missing"
        case "string_type" if place == "version":
            return "version is not in quotes, so YAML reads 1.10 as the number 1.1; write it as '1.10'"
        case _:
            message = error["msg"].removeprefix("Value error, ")
            return f"{place}: {message[0].lower()}{message[1:]}"


def _is_of_a_union(part: Any) -> bool:
    """Return whether a part of a place names an alternative of the schema, not a field of the document."""
    return isinstance(part, str) and ("[" in part or part in {"str", "int", "float", "list", "constrained-str"})


def _names_beside(parts: Sequence[Any]) -> list[str]:
    """List the known names at the place of an unknown one."""
    models = {"steps": StepPart, "backoff": BackoffPart, "environments": EnvironmentPart}
    model: Any = models.get(parts[0] if len(parts) > 1 else "", Document)
    return list((DelaysPart if "reenqueue_delays" in parts[:-1] else model).model_fields)
