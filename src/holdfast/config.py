"""One frozen Config, from arguments and HOLDFAST_*, checked once."""

from __future__ import annotations

import difflib
import os
import re
import warnings
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import platformdirs
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import BeforeValidator, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from holdfast import durations, log, masking
from holdfast.errors import BadAddress, BadSetting

PREFIX = "HOLDFAST_"
# Read only by tests, or set for the programs of ops runs.
NOT_OURS = re.compile(
    r"HOLDFAST_(SEEDS|FAILPOINT|TEST_.*|SELF_TEST_.*|OUTPUT|SUMMARY|RUN_ID|KIND|PROJECT|ENV|ENV_ID|GIT_SHA|GIT_REF)"
)


def _positive(given: Any) -> timedelta:
    if parsed := durations.parse(given):
        return parsed
    raise ValueError(f"must be longer than 0, got {given!r}")


Duration = Annotated[timedelta, BeforeValidator(_positive)]


class Config(BaseSettings):
    """The settings. Each field is read from HOLDFAST_<NAME>, a secret also from the file in HOLDFAST_<NAME>_FILE."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, env_ignore_empty=True, extra="forbid")

    dsn: SecretStr | None = Field(None, description="DSN of the PostgreSQL to use; the embedded one when unset")
    home: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("holdfast"),
        description="folder of the embedded PostgreSQL",
    )
    app: str | None = Field(None, description="the app that `holdfast worker` serves, as module:name")
    artifacts: Path | None = Field(
        None, description="folder for the files that runs keep, such as whole logs; when unset, artifacts in home"
    )
    lease: Duration | None = Field(
        None, description="how long a step stays leased without a renewal; its kind's lease when unset"
    )
    recovery_interval: Duration = Field(
        timedelta(seconds=30), description="time between sweeps for steps of lost workers"
    )
    poll_min: Duration = Field(timedelta(seconds=0.2), description="first sleep of a worker that finds no due step")
    poll_factor: Annotated[float, Field(ge=1)] = Field(2.0, description="factor by which each further sleep grows")
    poll_max: Duration = Field(timedelta(seconds=10), description="longest sleep of an idle worker")
    error_wait: Duration = Field(timedelta(seconds=5), description="pause after an error in the worker itself")
    call_deadline: Duration = Field(
        timedelta(seconds=30), description="longest time that the database may take to answer a call"
    )
    grace: Duration = Field(timedelta(seconds=25), description="time for running handlers to finish after SIGTERM")
    listen: bool = Field(default=True, description="whether workers listen for wake-up hints; they also poll")
    prepare_statements: bool = Field(
        default=True, description="turn off for a pooler that does not support prepared statements"
    )
    faces: str | None = Field(None, description="your own faces, as name=module, separated by commas")
    log_level: log.Level = Field("info", description="debug, info, warning or error")
    log_format: log.Format = Field("auto", description="json, console, or auto: console on a terminal, else json")

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise _refusal(error.errors()) from None

    @model_validator(mode="before")
    @classmethod
    def _read_files(cls, given: dict[str, Any]) -> dict[str, Any]:
        return {name: _from_file(name) for name in secrets() if name not in given and _file_of(name)} | given

    @field_validator("home", "artifacts")
    @classmethod
    def _is_absolute(cls, home: Path | None) -> Path | None:
        try:
            return None if home is None else home.expanduser().absolute()
        except RuntimeError as error:  # ~user for a user who does not exist
            raise ValueError(str(error)) from None

    @field_validator("dsn")
    @classmethod
    def _is_readable(cls, dsn: SecretStr | None) -> SecretStr | None:
        if dsn is not None:
            check_dsn(dsn.get_secret_value())
        return dsn


def load() -> Config:
    """Read the settings from the environment, and warn about unknown names."""
    for name in unknown_names(os.environ):
        close = difflib.get_close_matches(name, known_names(), n=1)
        meant = f"did you mean {close[0]}?" if close else "`holdfast config` lists all settings"
        warnings.warn(f"unknown setting {name}: {meant}", stacklevel=2)
    return Config()


def _refusal(faults: list[ErrorDetails]) -> BadSetting:
    """Return an error for the first invalid setting, with a note for each of the others."""
    field, *_ = faults[0]["loc"]
    sentence, *others = map(_sentence, faults)
    error = BadSetting(sentence, where=variable(str(field)), next=f"correct it, or unset {variable(str(field))}")
    for other in others:
        error.add_note(f"also: {other}")
    return error


def _sentence(fault: ErrorDetails) -> str:
    field = str(fault["loc"][0])
    if field not in Config.model_fields:
        return f"{variable(field)} is not a setting"
    return f"{variable(field)} must be {_expected(field)}, got {fault['input']!r}"


def _expected(field: str) -> str:
    annotation = Config.model_fields[field].annotation
    if get_origin(annotation) is Literal:
        *others, last = get_args(annotation)
        return f"{', '.join(others)} or {last}"
    if "timedelta" in str(annotation):
        return "a duration above 0, such as 30, 500ms, 30s, 5m, 2h or 1d"
    expected = {bool: "true or false", float: "a number, 1 or more", Path: "the path of a folder"}
    return next((text for kind, text in expected.items() if annotation is kind), "text")


def known_names() -> list[str]:
    """List the environment variables of all settings."""
    return [variable(field) for field in Config.model_fields]


def variable(field: str) -> str:
    """Return the environment variable of a field."""
    return PREFIX + field.upper()


def secrets() -> list[str]:
    """List the fields that hold secrets, which may be read from files."""
    fields = Config.model_fields.items()
    return [name for name, field in fields if SecretStr in (field.annotation, *get_args(field.annotation))]


def source(field: str) -> Literal["default", "environment", "file"]:
    """Return where a setting comes from; a variable takes precedence over a file."""
    if os.environ.get(variable(field)):
        return "environment"
    return "file" if field in secrets() and _file_of(field) else "default"


def unknown_names(environment: Iterable[str]) -> list[str]:
    """Find variables that look like settings but are not: mostly typing errors."""
    known = {*known_names(), *(f"{variable(name)}_FILE" for name in secrets())}
    return sorted(n for n in environment if n.startswith(PREFIX) and n not in known and not NOT_OURS.fullmatch(n))


def _file_of(field: str) -> str | None:
    return os.environ.get(f"{variable(field)}_FILE") or None


def _from_file(field: str) -> str:
    name, path = f"{variable(field)}_FILE", Path(_file_of(field) or "")
    try:
        text = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadAddress(
            f"{name} names {path}, which cannot be read: {reason}", where=name, next=f"fix the file, or unset {name}"
        ) from error
    if not text:
        raise BadAddress(
            f"{name} names {path}, which is empty", where=name, next=f"write the value into it, or unset {name}"
        )
    return text


def to_writer(dsn: str) -> str:
    """Choose the writable server of several hosts, unless the DSN says which: a standby would reject every call."""
    check_dsn(dsn)
    options = conninfo_to_dict(dsn)
    hosts = str(options.get("host") or options.get("hostaddr") or "")
    if "," not in hosts or "target_session_attrs" in options or "PGTARGETSESSIONATTRS" in os.environ:
        return dsn
    if "://" in dsn:  # it stays a URL
        return f"{dsn}{'&' if '?' in dsn else '?'}target_session_attrs=read-write"
    return make_conninfo(dsn, target_session_attrs="read-write")


def check_dsn(dsn: str) -> None:
    """Raise BadAddress if the DSN cannot be parsed; its password is masked from now on."""
    form = "write it as postgresql://user@host:5432/database or host=… user=… dbname=…"
    if not isinstance(dsn, str):
        raise BadAddress(f"a DSN must be text, got {type(dsn).__name__}", where="dsn", next=form)
    try:
        masking.known.add(str(conninfo_to_dict(dsn).get("password") or ""))
    except (psycopg.ProgrammingError, UnicodeEncodeError) as error:
        reason = re.sub(r'"[^"]*"', '"…"', str(error)).strip()  # the quoted part may be the password
        raise BadAddress(
            f"HOLDFAST_DSN cannot be read: {reason}",
            where="HOLDFAST_DSN",
            next=form,
        ) from None
