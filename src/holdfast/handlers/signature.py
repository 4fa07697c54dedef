"""Converts JSON to a handler's arguments and its result to JSON, both checked by its annotations."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from collections.abc import Set as AbstractSet
from types import UnionType
from typing import Annotated, Any, NotRequired, Union, cast, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, PydanticSchemaGenerationError, Strict, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from typing_extensions import TypedDict

from holdfast.errors import BadDefinition, BadInput, InputRefused, ResultMismatch
from holdfast.handlers.batch import Batch
from holdfast.handlers.context import Ctx
from holdfast.handlers.secret_parameters import refuse_secret_value, refuse_stored, secret_parameters
from holdfast.kernel import finite
from holdfast.models import Json

NULL = Json("null")
_SEQUENCES = {list, set, frozenset, tuple, Iterable, Sequence, MutableSequence, AbstractSet}
_MAPPINGS = {dict, Mapping, MutableMapping}
TRACE = "$trace"  # the key of the trace context in an input, next to the arguments
_REFUSED_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional only",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of arguments",
    inspect.Parameter.VAR_KEYWORD: "takes any names",
}
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # escaped as in JSON; PostgreSQL cannot store NUL


class ResultRefused(Exception):
    """A result that is not JSON, or not of the handler's return type."""


class Signature:
    """The arguments and the result of one handler."""

    def __init__(self, function: Callable[..., Any]) -> None:
        _check(function)
        self._name = getattr(function, "__qualname__", repr(function))
        self._signature = inspect.signature(function)
        hints = self._hints(function)
        self.ctx_name = self._find_ctx(hints)
        self.secrets = secret_parameters(self._name, self._signature.parameters, hints)
        self._supplied = {self.ctx_name, *(each.name for each in self.secrets)}  # by the worker, not by callers
        self._placed = self.names(by_place=True)
        self._arguments = self._adapter(self._arguments_type(hints))
        refuse_stored(self._name, self._arguments, "an input")
        strict = {name: strict_scalars(hint) for name, hint in hints.items()}
        self._given = self._arguments if strict == hints else self._adapter(self._arguments_type(strict))
        result = self._result_type(hints)
        self._result = None if result in {None, type(None)} else self._adapter(result)
        if self._result is not None:
            refuse_stored(self._name, self._result, "a result")
        # Not through the adapter, which wraps each call in Python.
        self.read: Callable[[str | bytes], Any] = self._arguments.validator.validate_json

    def check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Check the arguments of a caller."""
        if self.secrets:
            self._refuse_secrets(kwargs)
        arguments = self._by_name(args, kwargs) if args else {**kwargs}
        try:
            checked: dict[str, Any] = self._given.validator.validate_python(arguments)
        except ValidationError as error:
            raise InputRefused(
                f"the arguments do not fit {self._name}: {validation_text(error)}",
                where=first_place(error),
                next=self.usage(),
            ) from None
        return checked

    def _by_name(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._placed):
            raise InputRefused(f"{self._name} got {len(args)} positional arguments", next=self.usage())
        arguments = dict(zip(self._placed, args, strict=False))
        if twice := arguments.keys() & kwargs.keys():
            raise InputRefused(
                f"{self._name} got {', '.join(sorted(twice))} twice",
                where=", ".join(sorted(twice)),
                next="pass it by name or by position, not both",
            )
        return {**arguments, **kwargs}

    def read_given(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check arguments in JSON form, where a date is text, and return them as Python values."""
        try:
            return cast("dict[str, Any]", self.read(json.dumps(dict(arguments))))
        except ValidationError as error:
            raise InputRefused(
                f"the arguments do not fit {self._name}: {validation_text(error)}", next=self.usage()
            ) from None

    def names(self, *, by_place: bool = False) -> list[str]:
        """List the arguments; with `by_place` only those that can be positional."""
        parameters = self._signature.parameters.items()
        return [n for n, p in parameters if n not in self._supplied and not (by_place and p.kind is p.KEYWORD_ONLY)]

    def write(self, checked: Mapping[str, Any]) -> Json:
        """Return checked arguments as JSON."""
        return Json(self.write_text(checked))

    def write_text(self, checked: Mapping[str, Any]) -> str:
        """Return checked arguments as the text of their JSON, for a bulk start."""
        try:
            text = self._arguments.serializer.to_json(checked).decode()
        except (PydanticSerializationError, UnicodeEncodeError, ValueError) as error:
            raise InputRefused(
                f"the arguments of {self._name} cannot be written as JSON: {error}", next=self.usage()
            ) from None
        if reason := finite.complaint(self._arguments, checked, text, "input"):
            raise BadInput(
                f"{self._name} cannot be started: {reason}", next="JSON cannot hold it, so pass None or text"
            )
        refuse_secret_value(self._name, text)
        return text

    def write_result(self, result: Any) -> Json:
        """Return a handler's result as JSON, checked against its return type."""
        if result is None and self._result is None:
            return NULL
        if self._result is None:
            raise ResultRefused(f"{self._name} is annotated to return None, but returned {type(result).__name__}")
        try:
            checked = self._result.validate_python(result)
            text = self._result.dump_json(checked).decode()
        except ValidationError as error:
            raise ResultRefused(
                f"the result of {self._name} does not fit its return type: {validation_text(error)}"
            ) from None
        except (PydanticSerializationError, UnicodeEncodeError, ValueError, RecursionError) as error:
            raise ResultRefused(f"the result of {self._name} cannot be written as JSON: {error}") from None
        if checked is not None and (reason := finite.complaint(self._result, checked, text, "the result")):
            raise ResultRefused(f"{self._name}: {reason}; JSON cannot hold it, so return None or text")
        if "\\u0000" in text and _NUL.search(text):
            raise ResultRefused(f"the result of {self._name} has a NUL character, which PostgreSQL cannot store")
        return Json(text)

    def read_result(self, stored: Any, place: str) -> Any:
        """Convert a stored result to the declared type; `place` names its owner in an error."""
        if self._result is None:
            return None
        try:
            return self._result.validate_python(stored)
        except ValidationError:
            pass
        try:
            return self._result.validate_json(json.dumps(stored))  # a strict type accepts dates as text only from JSON
        except ValidationError as error:
            raise ResultMismatch(
                f"the stored result of {place} does not fit the return type of {self._name}: {validation_text(error)}",
                where=place,
                next="other code or a person stored it: correct the annotation, or resolve the step with one that fits",
            ) from error

    def usage(self) -> str:
        """Return the parameters, for messages."""
        parameters = [p for n, p in self._signature.parameters.items() if n not in self._supplied]
        return f"it takes ({', '.join(map(str, parameters))})"

    def _refuse_secrets(self, kwargs: Mapping[str, Any]) -> None:
        for each in self.secrets:
            if each.name in kwargs:
                raise InputRefused(
                    f"{self._name} does not take {each.name} from its callers, because inputs are stored",
                    where=each.name,
                    next=f"leave it out: the worker reads it from {each.env.name}",
                )

    def _hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        try:
            return get_type_hints(function, include_extras=True)
        except (NameError, TypeError, AttributeError) as error:
            raise BadDefinition(
                f"an annotation of {self._name} cannot be read: {error}",
                next="import what it names at the top of the module, not under TYPE_CHECKING",
            ) from error

    def _find_ctx(self, hints: dict[str, Any]) -> str | None:
        for name in self._signature.parameters:
            if hints.get(name) is Batch:
                raise BadDefinition(
                    f"{self._name} takes {name}: Batch, but has no batch",
                    where=name,
                    next="add batch=250, or take a Ctx",
                )
        named = [name for name in self._signature.parameters if _is_context(hints.get(name))]
        if len(named) > 1:
            raise BadDefinition(f"{self._name} takes two contexts, {' and '.join(named)}", next="remove one of them")
        if named and named[0] != next(iter(self._signature.parameters)):
            self._refuse_late_ctx(named[0])
        return named[0] if named else None

    def _refuse_late_ctx(self, name: str) -> None:
        """Raise unless `ctx` comes first: only then can type checkers remove it from the signature of `start`."""
        parameters = self._signature.parameters
        others = inspect.Signature([p.replace(annotation=p.empty) for n, p in parameters.items() if n != name])
        raise BadDefinition(
            f"{self._name} takes {name}: Ctx after other parameters",
            where=name,
            next=f"put it first: def {self._name.rpartition('.')[2]}({name}: Ctx, {str(others)[1:]}",
        )

    def _arguments_type(self, hints: dict[str, Any]) -> Any:
        fields: dict[str, Any] = {TRACE: NotRequired[Any]}
        for name, parameter in self._signature.parameters.items():
            if name in self._supplied:
                continue
            if parameter.kind in _REFUSED_KINDS:
                raise BadDefinition(
                    f"{self._name}: the parameter {name} {_REFUSED_KINDS[parameter.kind]}",
                    where=name,
                    next="inputs are JSON objects, so give each argument its own name",
                )
            hint = hints.get(name, Any)
            fields[name] = hint if parameter.default is parameter.empty else NotRequired[hint]
        model = cast("Any", TypedDict)("arguments", fields)
        model.__pydantic_config__ = ConfigDict(extra="forbid")
        return model

    def _result_type(self, hints: dict[str, Any]) -> Any:
        return hints.get("return", Any)

    def _adapter(self, hint: Any) -> TypeAdapter[Any]:
        try:
            return TypeAdapter(hint)
        except PydanticSchemaGenerationError as error:
            raise BadDefinition(
                f"{self._name} has a type that cannot be stored as JSON: {str(error).splitlines()[0]}",
                next="use a pydantic model, a dataclass or plain JSON types",
            ) from error


def _check(function: Callable[..., Any]) -> None:
    """Raise for anything that cannot be a handler, whatever its annotations."""
    if not inspect.isroutine(function) or not hasattr(function, "__qualname__"):
        raise BadDefinition(
            f"a handler must be a function, got {function!r}", next="write @hf.task, or @hf.task(name=…), above a def"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadDefinition(
            f"a handler must not be a generator, got {function.__qualname__}",
            where=function.__qualname__,
            next="return a value instead of yielding several",
        )


def _is_context(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Ctx)


def strict_scalars(hint: Any) -> Any:
    """Return the type with strict numbers and booleans: "2" is rejected for an int, and 1 for a bool.

    Everything else converts as pydantic does, so that dates, enums and models may be passed in their JSON form. Types
    with fields (models, dataclasses) keep their own rules.
    """
    if hint is int or hint is float or hint is bool:
        return Annotated[hint, Strict()]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[strict_scalars(inner[0]), *inner[1:]]
    if origin in {Union, UnionType}:
        return Union[tuple(map(strict_scalars, inner))]  # noqa: UP007 - its members are known only at run time
    if origin in _SEQUENCES:
        return origin[tuple(each if each is ... else strict_scalars(each) for each in inner)]
    if origin in _MAPPINGS:
        return origin[inner[0], strict_scalars(inner[1])]
    return hint


def first_place(error: ValidationError) -> str | None:
    """Return the first argument that does not fit."""
    places = (each["loc"] for each in error.errors(include_url=False, include_context=False, include_input=False))
    return next((str(place[0]) for place in places if place), None)


def validation_text(error: ValidationError) -> str:
    """Return what does not fit, without the values, which may be secrets."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, e['loc'])) or 'input'}: {e['msg']}" for e in errors[:5]).replace("; ", ", ")
