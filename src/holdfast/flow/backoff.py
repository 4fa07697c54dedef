"""The backoff of a flow's failed steps: settings, formulas, and the policy in SQL."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any

from holdfast.durations import Duration, duration
from holdfast.errors import BadDefinition
from holdfast.kernel import calls
from holdfast.kernel.call import Call

LONGEST_SECONDS = 10**9  # some thirty years; nobody waits longer
LONGEST_LIST = 1000
FALLBACK_SECONDS = Decimal(30)  # the cap of the preset law of flow.sql, 2 ^ n seconds
_POWERS = Context(prec=17)  # the least number of digits that PostgreSQL's power() returns
DURATIONS = ("max_backoff_seconds", "default_reenqueue_delay", "buffer_seconds")
_SWITCHES = ("jitter_enabled", "enabled", "monotonic", "bypass")


@dataclass(frozen=True, slots=True)
class ReenqueueDelays:
    """The seconds until the next pass over a run, by its execution status."""

    has_ready_steps: float = 0
    waiting_for_dependencies: float = 45
    processing: float = 10

    if TYPE_CHECKING:  # durations are accepted in any form, and stored as seconds

        def __init__(
            self, has_ready_steps: Duration = 0, waiting_for_dependencies: Duration = 45, processing: Duration = 10
        ) -> None: ...

    def __post_init__(self) -> None:
        for each in fields(self):
            seconds = _seconds(f"reenqueue_delays.{each.name}", getattr(self, each.name))
            object.__setattr__(self, each.name, seconds)


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delays between tries of failed steps; frozen, so that flows may share one. Durations are stored as seconds.

    After failure n the delay is the nth of `default_backoff_seconds`, beyond them n ^ `backoff_multiplier` in whole
    seconds. It is at most `max_backoff_seconds`, which also limits a Retry-After, and varies by up to
    `jitter_max_percentage`. With `monotonic` no delay is shorter than the one before it. Without `enabled` the database
    waits 2, 4, 8, … 30 seconds. `bypass` removes all delays, for tests.
    """

    default_backoff_seconds: Sequence[float] = (1, 2, 4, 8, 16, 32)
    max_backoff_seconds: float = 300
    backoff_multiplier: float = 2.0
    jitter_enabled: bool = True
    jitter_max_percentage: float = 0.1
    reenqueue_delays: ReenqueueDelays = field(default_factory=ReenqueueDelays)
    default_reenqueue_delay: float = 30
    buffer_seconds: float = 5
    enabled: bool = True
    monotonic: bool = False
    bypass: bool = False

    if TYPE_CHECKING:  # as above

        def __init__(
            self,
            *,
            default_backoff_seconds: Sequence[Duration] = (1, 2, 4, 8, 16, 32),
            max_backoff_seconds: Duration = 300,
            backoff_multiplier: float = 2.0,
            jitter_enabled: bool = True,
            jitter_max_percentage: float = 0.1,
            reenqueue_delays: ReenqueueDelays = ...,
            default_reenqueue_delay: Duration = 30,
            buffer_seconds: Duration = 5,
            enabled: bool = True,
            monotonic: bool = False,
            bypass: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "default_backoff_seconds", _listed(self.default_backoff_seconds))
        for name in DURATIONS:
            object.__setattr__(self, name, _seconds(name, getattr(self, name)))
        _check(self)
        if self.enabled and not self.bypass and not self.monotonic:
            _warn_of_shrinking(self)

    def calculate_backoff_seconds(self, attempt_number: int, chance: float | None = None) -> float:
        """Return the delay after a failure, as the database computes it; `chance`, from 0 to 1, is drawn by default."""
        if attempt_number <= 0 or self.bypass:
            return 0
        if not self.enabled:
            return float(min(Decimal(2) ** min(attempt_number, 100), FALLBACK_SECONDS))
        drawn = random.random() if chance is None else chance  # noqa: S311 - it spreads delays and protects nothing
        wait = self.base_backoff_seconds(attempt_number)
        return float(_spread(wait, self.jitter, drawn) if self.jitter else wait)

    def base_backoff_seconds(self, attempt_number: int) -> Decimal:
        """Return the delay before jitter."""
        listed = self.default_backoff_seconds
        if attempt_number <= len(listed):
            wait = _exact(listed[attempt_number - 1])
        else:
            wait = _whole_power(attempt_number, self.backoff_multiplier)
        if self.monotonic and listed:
            wait = max(wait, _exact(max(listed[:attempt_number])))
        return min(wait, _exact(self.max_backoff_seconds))

    def reenqueue_delay(self, status: str, earliest_retry_in: float | None = None) -> float:
        """Return the seconds until the next pass over a run of this execution status.

        `earliest_retry_in`: seconds until the first of its failed steps is retried, if one waits.
        """
        delays = self.reenqueue_delays
        match status:
            case "has_ready_steps":
                delay = delays.has_ready_steps
            case "waiting_for_dependencies" if earliest_retry_in is not None:
                delay = max(0, earliest_retry_in) + self.buffer_seconds
            case "waiting_for_dependencies":
                delay = delays.waiting_for_dependencies + self.buffer_seconds
            case "processing":
                delay = delays.processing + self.buffer_seconds
            case _:
                delay = self.default_reenqueue_delay
        return min(delay, self.max_backoff_seconds)

    @property
    def jitter(self) -> float:
        """The share by which a delay may vary."""
        return self.jitter_max_percentage if self.jitter_enabled else 0


@dataclass(frozen=True, slots=True)
class StepRetry:
    """How a flow's step is retried: the number of executions, and the delays between them."""

    limit: int = 3  # 0 counts as 1: a planned step is executed
    backoff: Backoff = field(default_factory=Backoff)
    retryable: bool = True

    def __post_init__(self) -> None:
        if not _is_count(self.limit):
            raise BadDefinition(
                f"retry must be a number of executions, got {self.limit!r}", where="retry", next="use 3 for three"
            )
        backoff: Any = self.backoff
        if not isinstance(backoff, Backoff):
            raise BadDefinition(
                f"backoff must be a Backoff, got {backoff!r}",
                where="backoff",
                next="use Backoff(max_backoff_seconds=60)",
            )
        self.definition("")  # so that a list that would be too long raises here

    @property
    def tries(self) -> int:
        """The highest number of executions."""
        return max(1, self.limit) if self.retryable else 1

    def definition(self, policy: str) -> Call[None]:
        """Return the call that defines it in the database under a name."""
        backoff, limit = self.backoff, max(1, self.limit)
        server = timedelta(seconds=0 if backoff.bypass else backoff.max_backoff_seconds)
        if backoff.bypass or not backoff.enabled:
            base, longest = (0, 0) if backoff.bypass else (2, int(FALLBACK_SECONDS))
            return calls.define_policy(
                policy, tries=limit, base=timedelta(seconds=base), longest=timedelta(seconds=longest), jitter=0,
                longest_retry_after=server, retryable=self.retryable,
            )  # fmt: skip
        return calls.define_policy(
            policy, tries=limit, waits=self._waits(), base=timedelta(0), growth=backoff.backoff_multiplier,
            law="power", longest=server, jitter=backoff.jitter, jitter_in_seconds=True, longest_retry_after=server,
            retryable=self.retryable,
        )  # fmt: skip

    def without_waits(self) -> StepRetry:
        """Return the same policy without delays."""
        return replace(self, backoff=replace(self.backoff, bypass=True))

    def _waits(self) -> list[timedelta]:
        """List the delays that differ from the power law, until it exceeds the longest of them."""
        backoff = self.backoff
        listed = backoff.default_backoff_seconds
        if not backoff.monotonic or not listed:
            return [timedelta(seconds=seconds) for seconds in listed]
        waits: list[timedelta] = []
        top = min(max(map(_exact, listed)), _exact(backoff.max_backoff_seconds))
        for failure in range(1, self.limit):
            if failure > len(listed) and _whole_power(failure, backoff.backoff_multiplier) >= top:
                break
            if failure > LONGEST_LIST:
                raise BadDefinition(
                    (
                        f"monotonic: {self.limit} executions with a backoff_multiplier of {backoff.backoff_multiplier} "
                        f"need more than {LONGEST_LIST} delays"
                    ),
                    where="backoff_multiplier",
                    next="use a larger backoff_multiplier or a lower limit",
                )
            waits.append(timedelta(seconds=float(backoff.base_backoff_seconds(failure))))
        return waits


def _exact(seconds: float) -> Decimal:
    """Parse seconds with the precision of an interval, a microsecond."""
    return Decimal(timedelta(seconds=seconds) // timedelta(microseconds=1)) / 10**6


def _whole_power(attempt_number: int, multiplier: float) -> Decimal:
    return Decimal(int(_POWERS.power(Decimal(attempt_number), Decimal(str(multiplier)))))


def _spread(wait: Decimal, jitter: float, chance: float) -> Decimal:
    """Vary a delay by chance: whole seconds by whole seconds, others by milliseconds; never below a second."""
    with localcontext(prec=60):
        share = Decimal(str(jitter))
        if wait == int(wait) and wait >= 1:
            reach = (wait * share).quantize(Decimal(1), ROUND_HALF_UP)
            return max(Decimal(1), wait - reach + math.floor(chance * float(2 * reach + 1)))
        drawn = Decimal(f"{chance:.15g}")  # PostgreSQL's cast of a double
        moved = wait * (1 + share * (2 * drawn - 1))
        return max(Decimal(int(wait >= 1)), Decimal(int(moved * 1000)) / 1000)


def _check(backoff: Backoff) -> None:
    if backoff.max_backoff_seconds == 0:
        raise BadDefinition(
            "max_backoff_seconds must be above 0, got 0",
            where="max_backoff_seconds",
            next="use a longer one, or bypass=True in tests",
        )
    _check_number("backoff_multiplier", backoff.backoff_multiplier, most=100)
    _check_number("jitter_max_percentage", backoff.jitter_max_percentage, most=1)
    if not isinstance(backoff.reenqueue_delays, ReenqueueDelays):
        raise BadDefinition(
            f"reenqueue_delays must be a ReenqueueDelays, got {backoff.reenqueue_delays!r}",
            where="reenqueue_delays",
            next="use ReenqueueDelays(processing=5)",
        )
    for name in _SWITCHES:
        if not isinstance(getattr(backoff, name), bool):
            raise BadDefinition(
                f"{name} must be True or False, got {getattr(backoff, name)!r}", where=name, next="use True or False"
            )


def _listed(given: Any) -> tuple[float, ...]:
    name = "default_backoff_seconds"
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) > LONGEST_LIST:
        raise BadDefinition(
            f"{name} must be a list of at most {LONGEST_LIST} durations, got {given!r:.50}",
            where=name,
            next='use [1, 2, 4] or ["1s", "1m"]',
        )
    return tuple(_seconds(f"{name}[{place}]", each) for place, each in enumerate(given))


def _seconds(name: str, given: Any) -> float:
    """Parse a duration; numbers stay unchanged."""
    is_number = isinstance(given, (int, float))
    seconds: float = given if is_number else duration(given, name, error=BadDefinition).total_seconds()
    _check_number(name, seconds)
    return seconds


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _check_number(name: str, value: Any, *, most: float = LONGEST_SECONDS) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= most:
        raise BadDefinition(
            f"{name} must be a number from 0 to {most}, got {value!r}", where=name, next="use a number in that range"
        )


def _warn_of_shrinking(backoff: Backoff) -> None:
    listed = len(backoff.default_backoff_seconds)
    if listed == 0:
        return
    last, beyond = backoff.base_backoff_seconds(listed), backoff.base_backoff_seconds(listed + 1)
    if beyond < last:
        warnings.warn(
            f"after {listed} failures the delay shrinks from {last} s to {beyond} s, "
            f"{listed + 1} to the power of a backoff_multiplier of {backoff.backoff_multiplier}; "
            "use a larger backoff_multiplier, a longer default_backoff_seconds, or monotonic=True",
            stacklevel=4,
        )
