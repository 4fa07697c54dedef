"""Reads the secrets of a worker's handlers before it begins, so that a missing one is noticed at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from psycopg.conninfo import conninfo_to_dict

from holdfast import log, masking
from holdfast.errors import SecretMissing
from holdfast.handlers.registry import Handler, Registry


def check_secrets(dsn: str, registry: Registry, queues: Collection[str]) -> None:
    """Raise if a handler of these queues lacks a secret; log which secrets are too short to be masked.

    Handlers of other queues may lack theirs: a worker needs only the secrets of its own queues.
    """
    faults: dict[str, SecretMissing] = {}
    values = {"the password of the DSN": str(conninfo_to_dict(dsn).get("password") or "")}
    for handler in _handlers(registry):
        for secret in handler.signature.secrets:
            if (fault := secret.fault()) is None:
                values[secret.env.name] = secret.env.find() or ""
            elif handler.queue in queues:
                faults[f"{handler.kind} takes {secret.name}, but {fault.what}"] = fault
    for name, value in values.items():
        if value and not masking.is_maskable(value):
            why = f"a value of fewer than {masking.LEAST} characters is not masked"
            log.get("worker").warning("secret.too_short", name=name, why=why)
    if faults:
        raise _missing(faults)


def _handlers(registry: Registry) -> Iterator[Handler]:
    return (handler for kind in registry.kinds() for handler in registry.versions(kind))


def _missing(faults: dict[str, SecretMissing]) -> SecretMissing:
    (what, first), *others = faults.items()
    error = SecretMissing(what, where=first.where, next=first.next)
    for other, _ in others:
        error.add_note(f"also: {other}")
    return error
