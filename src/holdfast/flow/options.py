"""What a flow and its steps say of themselves beside what they do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from holdfast.errors import BadTask
from holdfast.flow.backoff import StepRetry
from holdfast.kernel.registry import RetryPolicy

NAMESPACE = "default"
VERSION = "0.1.0"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Title:
    """What a flow is called."""

    name: str
    namespace: str = NAMESPACE
    version: str = VERSION
    description: str | None = None

    def __post_init__(self) -> None:
        for what, name in (("flow", self.name), ("namespace", self.namespace)):
            if not _NAME.fullmatch(name):
                raise BadTask(f"{name!r} cannot name a {what}; take letters, digits, _ and -, a letter first")
        if not self.version or not self.version.isprintable():
            raise BadTask(f"flow {self.name}: {self.version!r} is no version; take one such as 1.0.0")

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
    config: Mapping[str, Any] = field(default_factory=dict)


def check_step_name(flow: str, name: str) -> None:
    """Refuse a name that could not be that of a parameter: by its name a step's result is passed on."""
    if not name.isidentifier() or not name.isascii():
        raise BadTask(f"{name!r} cannot name a step of flow {flow}; take a name that a parameter could have")
    if name == "item":
        raise BadTask(f"a step of flow {flow} cannot be called item: so a mapped step calls its own; take another name")
