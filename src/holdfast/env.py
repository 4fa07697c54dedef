"""A secret by the name of its environment variable: read where it is used, shown by name only, and never stored."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from holdfast import log, masking
from holdfast.errors import BadDefinition, SecretMissing

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_too_short: set[str] = set()  # names of secrets that a warning was logged for


class _Supplied:
    """The default of a parameter that the worker supplies; a direct call has to pass a value instead."""

    def __repr__(self) -> str:
        return "Env.supplied"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise SecretMissing(
            "a secret was not passed to a handler that was called directly",
            next='pass it, as in charge(7, api_key=SecretStr("test"))',
        )


@dataclass(frozen=True, slots=True)
class Env:
    """A secret in an environment variable, or in the file that `<NAME>_FILE` names; the variable takes precedence.

    As an annotation it marks a parameter that the worker supplies: `api_key: Annotated[SecretStr, Env("STRIPE_KEY")]`.
    The parameter is not part of the input. Its default `Env.supplied` tells type checkers that callers leave it out.
    """

    name: str
    supplied: ClassVar[Any] = _Supplied()

    def __post_init__(self) -> None:
        given: Any = self.name
        if not isinstance(given, str) or not _NAME.fullmatch(given):
            raise BadDefinition(
                f"Env must name an environment variable, got {given!r}",
                where="name",
                next='use letters, digits and _, as in Env("STRIPE_KEY")',
            )

    def __repr__(self) -> str:
        return f"Env({self.name!r})"

    def read(self) -> str:
        """Return the secret, which is masked from now on; raise SecretMissing if it is not set."""
        if (value := self.find()) is None:
            raise SecretMissing(
                f"neither {self.name} nor {self.name}_FILE is set", where=self.name, next=f"set {self.name}"
            )
        return value

    def find(self) -> str | None:
        """Return the secret, which is masked from now on; None if it is not set."""
        value = os.environ.get(self.name) or self._in_file()
        if value is not None and not masking.known.add(value, self.name) and self.name not in _too_short:
            _too_short.add(self.name)
            why = f"a value of fewer than {masking.LEAST} characters is not masked"
            log.get("env").warning("secret.too_short", name=self.name, why=why)
        return value

    def _in_file(self) -> str | None:
        """Read the file each time, so that a secret can be replaced while the worker runs."""
        variable = f"{self.name}_FILE"
        if not (path := os.environ.get(variable)):
            return None
        try:
            value = Path(path).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise SecretMissing(
                f"{variable} names {path}, which cannot be read: {reason}",
                where=self.name,
                next=f"fix the file, or unset {variable} and set {self.name}",
            ) from None
        if not value:
            raise SecretMissing(
                f"{variable} names {path}, which is empty", where=self.name, next="write the secret into the file"
            )
        return value
