"""The secrets among a handler's parameters: found by their annotations, read where it runs, refused in its input."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import Secret, SecretBytes, SecretStr, TypeAdapter

from holdfast import masking
from holdfast.env import Env
from holdfast.errors import BadDefinition, InputRefused, SecretMissing

EXAMPLE = 'Annotated[SecretStr, Env("STRIPE_KEY")]'
_SECRETS = (SecretStr, SecretBytes, Secret)


@dataclass(frozen=True, slots=True)
class SecretParameter:
    """A parameter that the worker supplies; with a default it is optional."""

    name: str
    env: Env
    wrap: Callable[[str], Any]
    default: Any

    @property
    def is_required(self) -> bool:
        """Return whether the handler cannot run without it."""
        return self.default is inspect.Parameter.empty or self.default is Env.supplied

    def read(self) -> Any:
        """Return the argument."""
        if self.is_required:
            return self.wrap(self.env.read())
        value = self.env.find()
        return self.default if value is None else self.wrap(value)

    def fault(self) -> SecretMissing | None:
        """Return why the argument cannot be supplied, or None."""
        try:
            self.read()
        except SecretMissing as error:
            return error
        return None


def secret_parameters(
    function: str, parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]
) -> tuple[SecretParameter, ...]:
    """Find the parameters that are annotated with an Env."""
    return tuple(
        SecretParameter(name, env, _wrap(function, name, hints[name]), parameters[name].default)
        for name in parameters
        if (env := env_of(hints.get(name))) is not None
    )


def env_of(hint: Any) -> Env | None:
    """Return the Env of an annotation, also if None is allowed: `Annotated[SecretStr, Env("KEY")] | None`."""
    if get_origin(hint) in {Union, UnionType}:
        return next((env for each in get_args(hint) if (env := env_of(each)) is not None), None)
    if get_origin(hint) is not Annotated:
        return None
    return next((each for each in get_args(hint)[1:] if isinstance(each, Env)), None)


def refuse_stored(function: str, adapter: TypeAdapter[Any], where: str) -> None:
    """Raise if a type that is stored contains a secret, of which pydantic would store the asterisks."""
    for path in _secret_paths(adapter.core_schema):
        place = ".".join(path) or "return"
        raise BadDefinition(
            f"{function}: {place} is a secret, and {where} is stored in the database",
            where=place,
            next=f"take it from the worker's environment: {path[-1] if path else 'key'}: {EXAMPLE}",
        )


def refuse_secret_value(what: str, written: str) -> None:
    """Raise if an input contains the value of a secret."""
    if (name := masking.known.stored_name(written)) is None:
        return
    is_of_env = name != masking.HELD
    raise InputRefused(
        f"{what} cannot be started: its input contains a secret ({name}), and inputs are stored",
        where=name,
        next=f'let the handler take it: Annotated[SecretStr, Env("{name}")]' if is_of_env else "leave it out",
    )


def _wrap(function: str, name: str, hint: Any) -> Callable[[str], Any]:
    types = set(_plain_types(hint)) - {NoneType}
    if types == {SecretStr}:
        return SecretStr
    if types == {SecretBytes}:
        return lambda value: SecretBytes(value.encode("utf-8", "surrogateescape"))
    raise BadDefinition(
        f"{function}: {name} is annotated with an Env but is not a SecretStr",
        where=name,
        next=f"write {name}: {EXAMPLE}, which does not print its value",
    )


def _plain_types(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Annotated:
        yield from _plain_types(get_args(hint)[0])
    elif get_origin(hint) in {Union, UnionType}:
        for each in get_args(hint):
            yield from _plain_types(each)
    else:
        yield hint


def _is_of_secrets(part: Any) -> bool:
    """Return whether a class or function in a schema is that of a secret type; `Secret[…]` leaves only functions."""
    if isinstance(part, type):
        return issubclass(part, _SECRETS)
    of_pydantic = getattr(part, "__module__", None) == SecretStr.__module__
    return of_pydantic and "secret" in getattr(part, "__qualname__", "").lower()


def _secret_paths(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the fields that hold secrets, by the schema that pydantic made of a type."""
    if callable(schema):
        if _is_of_secrets(schema):
            yield path
    elif isinstance(schema, dict):
        for key, each in schema.items():
            if key == "fields" and isinstance(each, dict):
                for name, field in each.items():
                    yield from _secret_paths(field, (*path, name))
            elif key not in {"metadata", "cls"} or schema.get("type") == "is-instance":
                name = (schema["name"],) if schema.get("type") == "dataclass-field" and key == "schema" else ()
                yield from _secret_paths(each, (*path, *name))
    elif isinstance(schema, (list, tuple)):
        for each in schema:
            yield from _secret_paths(each, path)
