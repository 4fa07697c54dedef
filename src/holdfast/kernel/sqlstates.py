"""Finds our error for one of the server's by its SQLSTATE, whichever driver reported it."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast import errors

DATA = "22"  # the class of errors in values: out of range, malformed JSON, no such date
DATA_EXCEPTION = "22000"
_INTEGRITY = "23"  # the class of violated constraints
_UNDEFINED_FUNCTION = "42883"
_BAD_INPUT = frozenset({"23502", "54000", "54001"})  # not null; a key too long for its index; JSON too deep
_UNSTORABLE = frozenset({"22021", "22P05"})  # characters that the server's encoding does not have
_NOT_MIGRATED = frozenset({"3F000", "42P01", _UNDEFINED_FUNCTION})  # no such schema, table or function
_NO_RIGHT, _READ_ONLY, _DISK_FULL = "42501", "25006", "53100"
DEADLOCKS = frozenset({"40P01", "40001"})  # deadlock, serialization failure
# The database does not name the row: under row-level security it withholds the detail.
_CONSTRAINTS: dict[str, tuple[type[errors.RefusedError], str, str]] = {
    "run_step_names": (errors.BadInput, "two steps of the run have the same name", "give each step its own name"),
    "steps_open_key": (
        errors.KeyConflict,
        "a task with that unique_key has not ended",
        "wait for it, or use another key",
    ),
    "due_in_a_year_of_four_digits": (errors.BadInput, "the due time is out of range", "use a year from 1900 to 9998"),
    "steps_pkey": (errors.BadInput, "a step already has that id", "take ids from holdfast.reserve_step_ids()"),
    "known_worker_state": (
        errors.BadInput,
        "the worker's state is unknown",
        "leave it out, or name one such as polling",
    ),
    "target_items": (errors.BadInput, "an item is staged twice", "refuse its second row"),
    "something_is_written": (errors.BadInput, "a target changes nothing", "count it as unchanged"),
    "kept_is_unchanged": (
        errors.BadInput,
        "a target changes an amount that it does not write",
        "set writes_price or writes_compare_at",
    ),
    "after_is_not_negative": (errors.BadInput, "a target has a negative price", "refuse its item"),
    "waits_for_another": (errors.CycleFound, "a step would wait for itself", "remove that edge"),
}


@dataclass(frozen=True, slots=True)
class ServerError:
    """The fields of an error that every driver reports; `sqlstate` is empty if the driver itself raised it."""

    sqlstate: str
    message: str
    column: str | None = None
    constraint: str | None = None
    hint: str | None = None

    @property
    def may_be_a_misfit(self) -> bool:
        """Return whether a wrongly typed argument may be the cause, which the server reports as a missing function."""
        return self.sqlstate in {"", _UNDEFINED_FUNCTION} or self.sqlstate.startswith(DATA)


def translate(error: ServerError) -> errors.HoldfastError | None:
    """Find our error; None if there is none for this SQLSTATE."""
    state, message = error.sqlstate, error.message
    leaf = errors.BY_SQLSTATE.get(state)
    if leaf is not None:
        return leaf(message, where=error.column, next=error.hint)
    if state in _UNSTORABLE:
        return errors.BadInput(f"the text cannot be stored: {message}", next="leave NUL and lone surrogates out")
    if state.startswith(_INTEGRITY) and error.constraint in _CONSTRAINTS:
        leaf, what, then = _CONSTRAINTS[error.constraint]
        return leaf(what, next=then)
    if state in _BAD_INPUT or state.startswith(DATA):
        return errors.BadInput(message, where=error.column, next=error.hint)
    if state == _NO_RIGHT:
        return errors.PermissionMissing(message, next=error.hint or "grant the login one of the hf_ roles")
    return _trouble_of_the_server(state, message)


def _trouble_of_the_server(state: str, message: str) -> errors.DatabaseError | None:
    if state in _NOT_MIGRATED:
        return errors.NotMigrated(message, next="run `holdfast db migrate`")
    if state == _READ_ONLY:
        return errors.ReadOnly(
            message, next="name the primary in the DSN, or list all servers with target_session_attrs=read-write"
        )
    if state == _DISK_FULL:
        return errors.DiskFull(message, next="nothing was changed: free disk space on the server, then retry")
    return None
