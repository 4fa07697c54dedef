"""Log lines with fields instead of sentences: JSON where a program reads, aligned text where a person does.

structlog is imported when the first line is logged: most commands log none, and it takes a third of their start.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor

Logger: TypeAlias = "FilteringBoundLogger"
Format = Literal["auto", "json", "console"]
Level = Literal["debug", "info", "warning", "error"]


def configure(level: Level = "info", form: Format = "auto") -> None:
    """Write to stderr, once for the whole process."""
    import structlog

    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    last: Processor = structlog.processors.JSONRenderer(default=str) if as_json else structlog.dev.ConsoleRenderer()
    shown: list[Processor] = [structlog.processors.format_exc_info] if as_json else []
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *shown,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # a line is one write: processes may share a file
        cache_logger_on_first_use=False,
    )


def get(name: str) -> Logger:
    """Give the logger of a part."""
    import structlog

    logger: Logger = structlog.get_logger().bind(part=name)
    return logger
