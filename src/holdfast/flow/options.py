"""What a flow and its steps say of themselves beside what they do."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from keyword import iskeyword
from typing import Any

from holdfast.errors import BadTask
from holdfast.flow.backoff import StepRetry
from holdfast.handlers.registry import RetryPolicy, check_name

NAMESPACE = "default"
VERSION = "0.1.0"
_TAKEN = {"item": "so a mapped step calls its own", "config": "so a step calls what its definition configures"}
_NAME = re.compile(r"[^\W\d][\w-]*")  # letters of any script, as Python has them in its own names


@dataclass(frozen=True, slots=True)
class Title:
    """What a flow is called."""

    name: str
    namespace: str = NAMESPACE
    version: str = VERSION
    description: str | None = None

    def __post_init__(self) -> None:
        for what, name in (("flow", self.name), ("namespace", self.namespace)):
            _check_form(name, f"a {what}")
            if not _NAME.fullmatch(name):
                raise BadTask(
                    f"{name!r} cannot name a {what}", where=what, next="take letters, digits, _ and -, a letter first"
                )
            check_name(what, name)
        if not self.version or not self.version.isprintable():
            raise BadTask(
                f"flow {self.name}: {self.version!r} is no version", where="version", next="take one such as 1.0.0"
            )
        check_name(f"flow {self.name}: version", self.version)

    def kind(self, step: str) -> str:
        """Name what its handlers serve. The version is not in it: who serves the flow serves older runs of it too."""
        prefix = "" if self.namespace == NAMESPACE else f"{self.namespace}."
        return f"{prefix}{self.name}.{step}"


@dataclass(frozen=True, slots=True)
class StepOptions:
    """What a step says of itself."""

    retry: int | RetryPolicy | StepRetry | None = None
    retryable: bool = True
    skippable: bool = False
    queue: str = "default"
    when: Callable[..., Any] | None = None
    timeout: timedelta | None = None
    lease: timedelta | None = None
    cpu: bool = False
    priority: int = 0
    description: str | None = None
    config: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not is_count(self.priority, most=9):
            raise BadTask(
                f"a priority of {self.priority!r} is none",
                where="priority",
                next="take a whole number from 0 to 9, 9 goes first",
            )
        queue: Any = self.queue
        if not isinstance(queue, str) or not queue:
            raise BadTask(f"{queue!r} names no queue", where="queue", next="take a name such as mail")
        _check_config(self.config)


def is_count(given: Any, *, most: int = 2**31 - 1) -> bool:
    """Whether it is a whole number from 0 up."""
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= most


def check_step_name(flow: str, name: str) -> None:
    """Refuse a name that could not be that of a parameter: by its name a step's result is passed on."""
    _check_form(name, f"a step of flow {flow}")
    if not name.isidentifier() or iskeyword(name):
        raise BadTask(
            f"{name!r} cannot name a step of flow {flow}", where=name, next="take a name that a parameter could have"
        )
    if name in _TAKEN or name.startswith("holdfast_"):
        meant = _TAKEN.get(name, "names that begin so are ours")
        raise BadTask(f"a step of flow {flow} cannot be called {name}: {meant}", where=name, next="take another name")


def _check_form(name: str, what: str) -> None:
    """Refuse a name that looks as another does: Python reads the names of parameters in one form, NFKC."""
    plain = unicodedata.normalize("NFKC", name)
    if name != plain:
        raise BadTask(
            f"{name!r} cannot name {what}: its letters are not in the form that Python reads",
            where=name,
            next=f"write {plain!r}",
        )


def _check_config(config: Any) -> None:
    if config is None:
        return
    if not isinstance(config, Mapping):
        raise BadTask(f"a config that is a {type(config).__name__} has no names", where="config", next="take a dict")
    try:
        json.dumps(config, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadTask(f"a config has to be JSON, to be kept with the definition: {error}", where="config") from None
