"""All errors of Holdfast, as one small tree; each SQLSTATE that our SQL raises is one leaf.

HoldfastError
├── RefusedError            the database rejected the request; nothing was changed
│   ├── IllegalTransition   RN001  the row's machine does not allow this move
│   ├── LeaseLost           RN002  the lease belongs to another worker, or was never the caller's
│   ├── KeyConflict         RN003  the key was already used with a different input
│   ├── NotFound            RN004  there is no run, step or queue of that name
│   ├── BadInput            RN005  an argument is invalid
│   ├── CycleFound          RN006  steps would wait for each other
│   ├── NotInitial          RN007  a row cannot start in that state
│   ├── AppendOnly          RN008  the journal and the notes cannot be changed
│   ├── TenantRefused       RN009  the login may not act for that tenant, or for all tenants
│   ├── WrongState          RN010  the row's state does not allow the action
│   ├── TooLarge            RN011  an input, result or payload exceeds the limit
│   └── Pruned              RN012  the task or run ended long ago, and retention removed it
├── TaskError               defining, starting or waiting for work failed
│   ├── BadDefinition       a definition is invalid
│   ├── InputRefused        the arguments do not fit the handler's types
│   ├── AppNotFound         the named app cannot be imported
│   ├── RunFailed           the task or run failed
│   ├── RunPartial          the run ended with some steps succeeded and others failed
│   ├── RunCancelled        the task or run was cancelled
│   ├── ResultMismatch      a stored result does not fit the handler's declared type
│   └── WaitTimedOut        the task or run did not end within the timeout
├── BadSetting              a HOLDFAST_… setting has an invalid value
├── SecretMissing           a secret is not set in the environment of the process that needs it
├── OutsideError            an outside system failed a handler; the class decides whether the step retries
│   ├── RateLimited         the system asked us to slow down; retried, no earlier than it asked
│   ├── Unavailable         the system could not answer; retried
│   ├── Rejected            the system will never accept the request; fails for good
│   └── ProgramFailed       a program ended with another exit code than 0, or ran out of time; retried in place
└── DatabaseError           the database could not be used
    ├── BadAddress          the DSN cannot be read
    ├── Unreachable         no server answered; nothing was done
    ├── TooManyConnections  the server, the database or the login has no free connection
    ├── CommitUnknown       the connection broke before the answer came; the change may or may not be stored
    ├── ReadOnly            the server accepts no writes: it is a standby or set to read-only
    ├── DiskFull            the server has no disk space left
    ├── LoginRefused        a server answered and refused the login
    ├── PermissionMissing   the login lacks a privilege that the command needs
    ├── ServerTooOld        the server is older than PostgreSQL 15
    ├── NotMigrated         the database has no Holdfast schema, or an older one
    ├── SchemaTooNew        the database was migrated by a newer Holdfast
    ├── ForeignSchema       a schema with one of our names belongs to somebody else
    └── EmbeddedFailed      the embedded PostgreSQL could not be started or stopped
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID


class HoldfastError(Exception):
    """The root of all our errors: `what` happened, `where` (a field or an id), and what to do `next`.

    The command line exits with `exit_code`.
    """

    exit_code = 70
    where: str | None = None
    next: str | None = None

    def __init__(self, *what: object, where: str | None = None, next: str | None = None) -> None:  # noqa: A002
        super().__init__(*what)
        self.where = where
        self.next = next

    @property
    def what(self) -> str:
        """What happened, with the offending value."""
        return super().__str__()

    def __str__(self) -> str:
        return self.what if self.next is None else f"{self.what}; {self.next}"


class RefusedError(HoldfastError):
    sqlstate = ""
    exit_code = 5


class IllegalTransition(RefusedError):
    sqlstate = "RN001"


class LeaseLost(RefusedError):
    sqlstate = "RN002"


class KeyConflict(RefusedError):
    sqlstate = "RN003"


class NotFound(RefusedError):
    sqlstate = "RN004"
    exit_code = 4


class BadInput(RefusedError):
    sqlstate = "RN005"
    exit_code = 2


class CycleFound(RefusedError):
    sqlstate = "RN006"
    exit_code = 2


class NotInitial(RefusedError):
    sqlstate = "RN007"


class AppendOnly(RefusedError):
    sqlstate = "RN008"
    exit_code = 6


class TenantRefused(RefusedError):
    sqlstate = "RN009"
    exit_code = 6


class WrongState(RefusedError):
    sqlstate = "RN010"


class TooLarge(RefusedError):
    sqlstate = "RN011"
    exit_code = 2


class Pruned(RefusedError):
    """Retention removed a task or run. `rule` is the rule, `outcome` how it had ended, as far as they are known."""

    sqlstate = "RN012"
    exit_code = 4

    def __init__(
        self,
        *what: object,
        where: str | None = None,
        next: str | None = None,  # noqa: A002 - the word is that of the other errors
        outcome: str | None = None,
        finished_at: datetime | None = None,
        pruned_at: datetime | None = None,
        rule: str | None = None,
    ) -> None:
        super().__init__(*what, where=where, next=next)
        self.outcome = outcome
        self.finished_at = finished_at
        self.pruned_at = pruned_at
        self.rule = rule


class TaskError(HoldfastError):
    exit_code = 2


class BadDefinition(TaskError):
    pass


class InputRefused(TaskError):
    pass


class AppNotFound(TaskError):
    pass


class RunFailed(TaskError):
    """A task or run failed. `step` is the name of the failed step; None for a task."""

    exit_code = 1

    def __init__(
        self,
        *what: object,
        where: str | None = None,
        next: str | None = None,  # noqa: A002 - the word is that of the other errors
        run_id: int | UUID | str | None = None,
        step: str | None = None,
        error_type: str | None = None,
        message: str | None = None,
        attempts: int | None = None,
        traceback: str | None = None,
    ) -> None:
        super().__init__(*what, where=where, next=next)
        self.run_id = run_id
        self.step = step
        self.error_type = error_type
        self.message = message
        self.attempts = attempts
        self.traceback = traceback


class RunPartial(TaskError):
    """A run ended partly. `total`, `succeeded` and `failed` count its steps."""

    exit_code = 3

    def __init__(
        self,
        *what: object,
        where: str | None = None,
        next: str | None = None,  # noqa: A002
        run_id: int | UUID | str | None = None,
        total: int | None = None,
        succeeded: int | None = None,
        failed: int | None = None,
    ) -> None:
        super().__init__(*what, where=where, next=next)
        self.run_id = run_id
        self.total = total
        self.succeeded = succeeded
        self.failed = failed


class RunCancelled(TaskError):
    """A task or run was cancelled. `reason` is the one given with the cancel."""

    exit_code = 1

    def __init__(
        self,
        *what: object,
        where: str | None = None,
        next: str | None = None,  # noqa: A002
        run_id: int | UUID | str | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(*what, where=where, next=next)
        self.run_id = run_id
        self.reason = reason


class ResultMismatch(TaskError):
    exit_code = 1


class WaitTimedOut(TaskError):
    exit_code = 8


class BadSetting(HoldfastError):
    exit_code = 2


class SecretMissing(HoldfastError):
    exit_code = 2


class OutsideError(HoldfastError):
    """An outside system's answer. `status`, `code` and `headers` are those of its response, if there was one.

    `retry_after` is the delay that the system asked for; without it the retry policy decides. `retryable` is what the
    system itself said about another try. `is_sent` is False if the request surely did not reach the system.
    """

    exit_code = 1

    def __init__(
        self,
        *what: object,
        where: str | None = None,
        next: str | None = None,  # noqa: A002 - the word is that of the other errors
        retry_after: timedelta | float | str | None = None,
        status: int | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        retryable: bool | None = None,
        is_sent: bool = True,
    ) -> None:
        super().__init__(*what, where=where, next=next)
        self.retry_after = retry_after
        self.status = status
        self.code = code
        self.headers = headers or {}
        self.retryable = retryable
        self.is_sent = is_sent


class RateLimited(OutsideError):
    """`retry_after` also closes those of the step's limits that have a rate or a breaker, for all workers."""


class Unavailable(OutsideError):
    pass


class Rejected(OutsideError):
    pass


class ProgramFailed(OutsideError):
    """`program_exit` is its exit code, 128 and the number of the signal that ended it; None if it never ran.

    `stderr` is the end of what it wrote there, and `step` the name of the shell that ran it.
    """

    def __init__(
        self,
        *what: object,
        where: str | None = None,
        next: str | None = None,  # noqa: A002
        program_exit: int | None = None,
        step: str | None = None,
        stderr: str = "",
    ) -> None:
        super().__init__(*what, where=where, next=next)
        self.program_exit = program_exit
        self.step = step
        self.stderr = stderr


class DatabaseError(HoldfastError):
    exit_code = 7


class BadAddress(DatabaseError):
    exit_code = 10


class Unreachable(DatabaseError):
    pass


class TooManyConnections(DatabaseError):
    pass


class CommitUnknown(DatabaseError):
    pass


class ReadOnly(DatabaseError):
    pass


class DiskFull(DatabaseError):
    pass


class LoginRefused(DatabaseError):
    exit_code = 11


class PermissionMissing(DatabaseError):
    exit_code = 6


class ServerTooOld(DatabaseError):
    exit_code = 12


class NotMigrated(DatabaseError):
    exit_code = 13


class SchemaTooNew(DatabaseError):
    exit_code = 14


class ForeignSchema(DatabaseError):
    exit_code = 15


class EmbeddedFailed(DatabaseError):
    exit_code = 16


def _leaves(base: type[HoldfastError]) -> list[type[HoldfastError]]:
    children = base.__subclasses__()
    return [leaf for child in children for leaf in _leaves(child)] if children else [base]


BY_SQLSTATE: dict[str, type[RefusedError]] = {
    leaf.sqlstate: leaf for leaf in _leaves(RefusedError) if issubclass(leaf, RefusedError)
}
