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
# The database does not tell which row: under row-level security it keeps the detail to itself.
_CONSTRAINTS: dict[str, tuple[type[errors.RefusedError], str, str]] = {
    "run_step_names": (errors.BadInput, "two steps of the run have the same name", "give each step its own name"),
    "steps_open_key": (errors.KeyConflict, "a task of that unique_key is not over", "wait for it, or use another key"),
    "due_in_a_year_of_four_digits": (errors.BadInput, "the due time is out of range", "use a year from 1900 to 9998"),
    "steps_pkey": (errors.BadInput, "a step has that id already", "take ids from holdfast.reserve_step_ids()"),
    "known_worker_state": (errors.BadInput, "a worker has no such state", "leave it out, or name one such as polling"),
    "waits_for_another": (errors.CycleFound, "a step would wait for itself", "remove that edge"),
}


@dataclass(frozen=True, slots=True)
class ServerError:
    """The fields of an error that every driver reports; `sqlstate` is empty where the driver itself refused."""

    sqlstate: str
    message: str
    column: str | None = None
    constraint: str | None = None
    hint: str | None = None

    @property
    def may_be_a_misfit(self) -> bool:
        """Whether an argument of the wrong type may be the cause: the server reports it as a missing function."""
        return self.sqlstate in {"", _UNDEFINED_FUNCTION} or self.sqlstate.startswith(DATA)


def translate(error: ServerError) -> errors.HoldfastError | None:
    """Find our error; None where there is none and the driver's speaks for itself."""
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
    return _trouble_of_the_server(state, message)


def _trouble_of_the_server(state: str, message: str) -> errors.DatabaseError | None:
    if state in _NOT_MIGRATED:
        return errors.NotMigrated(message, next="run `holdfast db migrate`")
    if state == _NO_RIGHT:
        return errors.PermissionMissing(message, next="grant the login one of the hf_ roles")
    if state == _READ_ONLY:
        return errors.ReadOnly(message, next="name the writer, or all servers and target_session_attrs=read-write")
    if state == _DISK_FULL:
        return errors.DiskFull(message, next="nothing was changed: make room on the server, and try again")
    return None
