"""Log lines with fields instead of sentences: JSON for programs, aligned text for people.

A worker process calls `configure`, which also takes over standard `logging`: whatever a handler logs becomes one line
that names the handler's step. In a process that does not call it, our lines go through standard `logging`, under the
logger `holdfast` and that process's own settings.

structlog is imported with the first log line, because most commands log nothing and it takes a third of their start.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from holdfast import masking

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor

Logger: TypeAlias = "FilteringBoundLogger"
Format = Literal["auto", "json", "console"]
Level = Literal["debug", "info", "warning", "error"]
STEP_FIELDS = ("step_id", "run_id", "kind", "attempt")
HANDLER = "handler"  # the name that ctx.log logs under
SILENT = logging.CRITICAL + 1
_OF_RECORDS = frozenset(vars(logging.makeLogRecord({}))) | set(STEP_FIELDS)


class Step(Protocol):
    """The step that a handler works on, as its log lines name it."""

    @property
    def step_id(self) -> int: ...
    @property
    def run_id(self) -> object: ...
    @property
    def kind(self) -> str: ...
    @property
    def attempt(self) -> int: ...


class Settings(NamedTuple):
    """The arguments of `configure`; a process that runs handlers gets the same."""

    level: Level
    form: Format


working_on: ContextVar[Step | None] = ContextVar("working_on", default=None)
_settings: list[Settings] = []


def configure(level: Level = "info", form: Format = "auto") -> None:
    """Write our lines and those of standard `logging` to stderr, once for the whole process."""
    import structlog

    _settings[:] = [Settings(level, form)]
    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    last: Processor = (
        structlog.processors.JSONRenderer(default=str)
        if as_json
        else structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _add_step,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,  # without the values of variables: they may be payloads
            _mask,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_number(level)),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # a line is one write: processes may share a file
        cache_logger_on_first_use=False,
    )
    _take_over_standard_logging(level)
    _mask_uncaught()


def settings() -> Settings | None:
    """Return the arguments that `configure` was called with in this process."""
    return _settings[0] if _settings else None


def get(name: str) -> Logger:
    """Return the logger of a part: structlog's if it is configured, else one of standard `logging`."""
    import structlog

    if structlog.is_configured():
        logger: Logger = structlog.get_logger().bind(part=name)
        return logger
    standard: Logger = structlog.wrap_logger(
        logging.getLogger(f"holdfast.{name}"),
        processors=[
            structlog.stdlib.filter_by_level,
            _add_step,
            _mask,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
    ).bind()
    return standard


def is_on(logger: Logger, level: Level) -> bool:
    """Return whether lines of a level are written, so that callers need not build lines in vain."""
    for name in ("is_enabled_for", "isEnabledFor"):
        ask = getattr(logger, name, None)
        if ask is not None:
            return bool(ask(_number(level)))
    return True


@contextmanager
def only(level: Level | None) -> Iterator[None]:
    """Pass our lines of a level to standard `logging` inside the block, by default to stderr; None passes no line.

    Blocks in several threads may overlap: the last one to end restores what was set before the first.
    """
    number = SILENT if level is None else _number(level)
    shown = logging.StreamHandler(sys.stderr) if level is not None and not _overrides.ours.hasHandlers() else None
    own = _overrides.add(number)
    if shown is not None:
        _overrides.ours.addHandler(shown)
    try:
        yield
    finally:
        _overrides.remove(own)
        if shown is not None:
            _overrides.ours.removeHandler(shown)


class _Overrides:
    """The levels that blocks of `only` have set and not taken back; the newest applies."""

    def __init__(self) -> None:
        self.ours, self._handlers = logging.getLogger("holdfast"), logging.getLogger(f"holdfast.{HANDLER}")
        self._lock = threading.Lock()
        self._levels: dict[object, int] = {}
        self._before = (self.ours.level, self._handlers.level)

    def add(self, level: int) -> object:
        own = object()
        with self._lock:
            if not self._levels:
                self._before = (self.ours.level, self._handlers.level)
                self._handlers.setLevel(self.ours.getEffectiveLevel())  # ctx.log is the handler's, and not silenced
            self._levels[own] = level
            self.ours.setLevel(level)
        return own

    def remove(self, own: object) -> None:
        with self._lock:
            del self._levels[own]
            if self._levels:
                self.ours.setLevel([*self._levels.values()][-1])
                return
            self.ours.setLevel(self._before[0])
            self._handlers.setLevel(self._before[1])


_overrides = _Overrides()


def _number(level: Level) -> int:
    return logging.getLevelNamesMapping()[level.upper()]


def _add_step(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    step = working_on.get()
    if step is not None:
        for name in STEP_FIELDS:
            if event.get(name) is None and (value := getattr(step, name)) is not None:
                event[name] = value
    return event


def _mask(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    masked: MutableMapping[str, Any] = masking.known.shown(event)
    return masked


class _Forwarded(logging.Handler):
    """Writes the records of standard `logging` as our log lines."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; a record that cannot be formatted is reported as `logging` does."""
        import structlog

        try:
            fields: dict[str, Any] = {"logger": record.name}
            if record.exc_info:
                fields["exc_info"] = record.exc_info
            structlog.get_logger().bind(**fields).log(max(record.levelno, logging.DEBUG), record.getMessage())
        except Exception:  # noqa: BLE001 - a line that cannot be written must not fail the handler that logged it
            self.handleError(record)


def _take_over_standard_logging(level: Level) -> None:
    root = logging.getLogger()
    root.setLevel(_number(level))
    for handler in root.handlers[:]:
        if isinstance(handler, _Forwarded):
            root.removeHandler(handler)
    if not root.handlers:  # else the user's own settings apply, which can use the step's fields
        root.addHandler(_Forwarded())
    make = logging.getLogRecordFactory()
    if not getattr(make, "adds_step", False):
        logging.setLogRecordFactory(_adding_step(make))
    for handler in root.handlers:
        if not isinstance(handler, _Forwarded) and _mask_record not in handler.filters:
            handler.addFilter(_mask_record)


def _mask_record(record: logging.LogRecord) -> bool:
    """Mask a record of standard `logging` before a handler of the user's own formats it."""
    try:
        message = record.getMessage()
        if (masked := masking.known.shown(message)) != message:
            record.msg, record.args = masked, None
        extra = {name: value for name, value in vars(record).items() if name not in _OF_RECORDS}
        vars(record).update(masking.known.shown(extra))
        if record.exc_info and (text := _traceback(record)) != (masked := masking.known.shown(text)):
            record.exc_info, record.exc_text = None, masked
    except Exception:  # noqa: BLE001 - the handler itself reports a record that cannot be formatted
        return True
    return True


def _mask_uncaught() -> None:
    """Mask what Python prints about an exception that nobody caught, in any thread; a user's own hooks stay."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_masked
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = lambda failed: (
            None
            if failed.exc_type is SystemExit
            else _print_masked(failed.exc_type, failed.exc_value, failed.exc_traceback)
        )


def _print_masked(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    sys.stderr.write(masking.known.shown("".join(traceback.format_exception(kind, error, trace))))


def _traceback(record: logging.LogRecord) -> str:
    return record.exc_text or logging.Formatter().formatException(record.exc_info)  # type: ignore[arg-type]


def _adding_step(make: Any) -> Any:
    """Add `step_id`, `run_id`, `kind` and `attempt` to every record, for the user's own formats."""

    def record(*arguments: Any, **named: Any) -> logging.LogRecord:
        made: logging.LogRecord = make(*arguments, **named)
        step = working_on.get()
        for name in STEP_FIELDS:
            if not hasattr(made, name):
                setattr(made, name, getattr(step, name, None))
        return made

    record.adds_step = True  # type: ignore[attr-defined]
    return record
