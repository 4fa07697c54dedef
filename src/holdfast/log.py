"""Log lines with fields instead of sentences: JSON where a program reads, aligned text where a person does.

A worker process calls `configure`, which also takes over standard `logging`: what a handler logs by either is one line
with the step that the handler works on. A process that does not call it gets our lines through standard `logging`,
under `holdfast`, as its own settings have it.

structlog is imported when the first line is logged: most commands log none, and it takes a third of their start.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor

Logger: TypeAlias = "FilteringBoundLogger"
Format = Literal["auto", "json", "console"]
Level = Literal["debug", "info", "warning", "error"]
STEP_FIELDS = ("step_id", "run_id", "kind", "attempt")
HANDLER = "handler"  # the part that ctx.log writes as
SILENT = logging.CRITICAL + 1


class Step(Protocol):
    """What a handler works on, as far as its log lines name it."""

    @property
    def step_id(self) -> int: ...
    @property
    def run_id(self) -> object: ...
    @property
    def kind(self) -> str: ...
    @property
    def attempt(self) -> int: ...


class Settings(NamedTuple):
    """What `configure` was called with; a process that handlers run in is given the same."""

    level: Level
    form: Format


working_on: ContextVar[Step | None] = ContextVar("working_on", default=None)
_settings: list[Settings] = []


def configure(level: Level = "info", form: Format = "auto") -> None:
    """Write our lines and those of standard `logging` to stderr, once for the whole process."""
    import structlog

    _settings[:] = [Settings(level, form)]
    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    last: list[Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
        if as_json  # a traceback shows no values of variables in either form: they may be payloads
        else [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _add_step,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_number(level)),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # a line is one write: processes may share a file
        cache_logger_on_first_use=False,
    )
    _take_over_standard_logging(level)


def settings() -> Settings | None:
    """Return what `configure` was called with in this process."""
    return _settings[0] if _settings else None


def get(name: str) -> Logger:
    """Give the logger of a part: structlog's where somebody configured it, else one of standard `logging`."""
    import structlog

    if structlog.is_configured():
        logger: Logger = structlog.get_logger().bind(part=name)
        return logger
    standard: Logger = structlog.wrap_logger(
        logging.getLogger(f"holdfast.{name}"),
        processors=[
            structlog.stdlib.filter_by_level,
            _add_step,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
    ).bind()
    return standard


def is_on(logger: Logger, level: Level) -> bool:
    """Whether lines of a level are written: where many would be made, they are not even put together."""
    for name in ("is_enabled_for", "isEnabledFor"):
        ask = getattr(logger, name, None)
        if ask is not None:
            return bool(ask(_number(level)))
    return True


@contextmanager
def only(level: Level | None) -> Iterator[None]:
    """Let our lines of a level through standard `logging` for a while, to stderr if nobody else takes them; or none."""
    ours, handlers = logging.getLogger("holdfast"), logging.getLogger(f"holdfast.{HANDLER}")
    before, handlers_before = ours.level, handlers.level
    handlers.setLevel(ours.getEffectiveLevel())  # what a handler says by ctx.log is its own, and not ours to silence
    ours.setLevel(SILENT if level is None else _number(level))
    shown = logging.StreamHandler(sys.stderr) if level is not None and not ours.hasHandlers() else None
    if shown is not None:
        ours.addHandler(shown)
    try:
        yield
    finally:
        ours.setLevel(before)
        handlers.setLevel(handlers_before)
        if shown is not None:
            ours.removeHandler(shown)


def _number(level: Level) -> int:
    return logging.getLevelNamesMapping()[level.upper()]


def _add_step(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    step = working_on.get()
    if step is not None:
        for name in STEP_FIELDS:
            if event.get(name) is None and (value := getattr(step, name)) is not None:
                event[name] = value
    return event


class _Forwarded(logging.Handler):
    """Writes the records of standard `logging` as lines of ours."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; a handler that cannot be formatted is reported as `logging` does it."""
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
    if not root.handlers:  # else somebody has settings of their own, which have the step's fields to use
        root.addHandler(_Forwarded())
    make = logging.getLogRecordFactory()
    if not getattr(make, "adds_step", False):
        logging.setLogRecordFactory(_adding_step(make))


def _adding_step(make: Any) -> Any:
    """Let every record have `step_id`, `run_id`, `kind` and `attempt`, for formats of the user's own."""

    def record(*arguments: Any, **named: Any) -> logging.LogRecord:
        made: logging.LogRecord = make(*arguments, **named)
        step = working_on.get()
        for name in STEP_FIELDS:
            if not hasattr(made, name):
                setattr(made, name, getattr(step, name, None))
        return made

    record.adds_step = True  # type: ignore[attr-defined]
    return record
