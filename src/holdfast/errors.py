"""Everything that can go wrong, as one small tree; each SQLSTATE that our SQL raises is one leaf.

HoldfastError
├── RefusedError            the database said no to what was asked; nothing was changed
│   ├── IllegalTransition   RN001  the row's machine has no such move
│   ├── LeaseLost           RN002  the lease is another's by now, or was never the caller's
│   ├── KeyConflict         RN003  the key was used before, with another input
│   ├── NotFound            RN004  no run, step or queue of that name
│   ├── BadInput            RN005  an argument that makes no sense
│   ├── CycleFound          RN006  steps that would wait for each other
│   ├── NotInitial          RN007  a row cannot begin in that state
│   ├── AppendOnly          RN008  the journal and the notes are never changed
│   ├── TenantRefused       RN009  the login may not act for that tenant, or not for all of them
│   ├── WrongState          RN010  what was wished for is not possible in the row's state
│   └── TooLarge            RN011  an input, result or payload beyond the limit
├── TaskError               what a caller meets who defines, starts or waits for work
│   ├── BadDefinition             a definition that cannot work
│   ├── InputRefused        arguments that are not what the handler's types ask for
│   ├── AppNotFound         the app that was named cannot be imported
│   ├── RunFailed           what was waited for failed
│   ├── RunPartial          what was waited for ended partly: some of its steps succeeded, others failed
│   ├── RunCancelled        what was waited for was cancelled
│   ├── ResultMismatch      a stored result does not fit the type that the handler declares
│   └── WaitTimedOut        what was waited for is not over yet
├── BadSetting              a setting, HOLDFAST_…, whose value cannot be used
├── OutsideError            what an outside system answered a handler; it says itself whether the step is tried again
│   ├── RateLimited         asked to come back later; tried again, no sooner than it said
│   ├── Unavailable         it could not answer; tried again
│   └── Rejected            it will not have it, now or later; failed for good
└── DatabaseError           the database could not be used at all
    ├── BadAddress          the DSN cannot be read
    ├── Unreachable         no server answered; nothing was done
    ├── TooManyConnections  the server, the database or the login has no connection left to give
    ├── CommitUnknown       the connection broke before the answer came: it may have been done or not
    ├── ReadOnly            the server takes no writes: a standby, or one that is set so
    ├── DiskFull            the server has no room left
    ├── LoginRefused        a server answered and refused the login
    ├── PermissionMissing   the login lacks a right that the command needs
    ├── ServerTooOld        the server is older than PostgreSQL 15
    ├── NotMigrated         the database has no Holdfast schema, or an older one
    ├── SchemaTooNew        the database was migrated by a newer Holdfast
    ├── ForeignSchema       a schema of one of our names that is not ours
    └── EmbeddedFailed      the embedded PostgreSQL could not be started or stopped
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID


class HoldfastError(Exception):
    """The root of all our errors: `what` happened, `where` (a field or an id), and what to do `next`.

    `exit_code` is what the command line ends with.
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
        """What happened, with the value at fault."""
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


class TaskError(HoldfastError):
    exit_code = 2


class BadDefinition(TaskError):
    pass


class InputRefused(TaskError):
    pass


class AppNotFound(TaskError):
    pass


class RunFailed(TaskError):
    """What failed and why. `step` is the name of the step that failed; None for a task."""

    exit_code = 1

    def __init__(
        self,
        *what: object,
        where: str | None = None,
        next: str | None = None,  # noqa: A002 - the word is that of the other errors
        run_id: int | UUID | None = None,
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
    """How many of a run's steps there were, succeeded and failed."""

    exit_code = 3

    def __init__(
        self,
        *what: object,
        where: str | None = None,
        next: str | None = None,  # noqa: A002
        run_id: int | UUID | None = None,
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
    """`reason` is what the person said who cancelled it."""

    exit_code = 1

    def __init__(
        self,
        *what: object,
        where: str | None = None,
        next: str | None = None,  # noqa: A002
        run_id: int | UUID | None = None,
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


class OutsideError(HoldfastError):
    """What an outside system answered: `status`, `code` and `headers` are its own, where it gave any.

    `retry_after` is the duration that it asked for; without it the policy says when.
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
    ) -> None:
        super().__init__(*what, where=where, next=next)
        self.retry_after = retry_after
        self.status = status
        self.code = code
        self.headers = headers or {}


class RateLimited(OutsideError):
    """`retry_after` also closes those of the step's limits that have a rate or a breaker, for all workers."""


class Unavailable(OutsideError):
    pass


class Rejected(OutsideError):
    pass


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
