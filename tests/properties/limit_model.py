"""What limits promise, reckoned from the steps themselves and in fractions: the oracle of test_limits.py.

It knows nothing of how the kernel goes about it. It keeps no counters: who holds a limit is counted anew each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction

Key = tuple[str, str]  # a limit's name, and the tenant whose rule it is: '*' for all
COUNTED = ("RateLimited", "Unavailable")
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Rule:
    concurrency: int | None = None
    rate: int | None = None  # tokens per `per` seconds
    per: int | None = None
    burst: int | None = None
    breaker_after: int | None = None
    breaker_for: int | None = None


@dataclass
class Step:
    id: int
    queue: str
    priority: int
    tenant: str
    names: tuple[str, ...]
    weight: int
    due: datetime
    lease: int | None = None
    until: datetime | None = None
    is_over: bool = False
    charges: dict[Key, int] = field(default_factory=dict)  # of its last claim
    holds: set[Key] = field(default_factory=set)

    def all_names(self) -> list[str]:
        return [*self.names, f"queue:{self.queue}", "kind:k", f"tenant:{self.tenant}"]

    def order(self) -> tuple[int, datetime, int]:
        return (-self.priority, self.due, self.id)


@dataclass
class Bucket:
    tokens: Fraction
    at: datetime


@dataclass
class Breaker:
    failures: int = 0
    open_until: datetime | None = None
    open_for: timedelta = timedelta(0)
    probe: int | None = None


class Limits:
    def __init__(self, now: datetime) -> None:
        self.now = now
        self.rules: dict[Key, Rule] = {}
        self.steps: dict[int, Step] = {}
        self.buckets: dict[Key, Bucket] = {}
        self.breakers: dict[Key, Breaker] = {}
        self.pauses: dict[Key, datetime] = {}

    def rule_of(self, key: Key) -> Rule | None:
        name, tenant = key
        return self.rules.get(key) or self.rules.get((f"{name.partition(':')[0]}:*", tenant) if ":" in name else key)

    def keys_of(self, step: Step) -> list[Key]:
        """List the limits that a step is under: those that have a rule, or were paused."""
        keys = [(name, tenant) for name in step.all_names() for tenant in (step.tenant, "*")]
        return [key for key in keys if self.rule_of(key) or key in self.pauses]

    def held(self, key: Key) -> list[Step]:
        return [step for step in self.steps.values() if step.lease is not None and key in step.holds]

    def tokens(self, key: Key, rule: Rule | None = None) -> Fraction | None:
        rule = rule or self.rule_of(key)
        if rule is None or rule.rate is None:
            return None
        assert rule.per is not None
        assert rule.burst is not None
        bucket = self.buckets.get(key)
        if bucket is None:
            return Fraction(rule.burst)
        gone = Fraction((self.now - bucket.at) // timedelta(microseconds=1), 1_000_000)
        return min(Fraction(rule.burst), bucket.tokens + gone * rule.rate / rule.per)

    def is_shut(self, key: Key) -> bool:
        """Whether a pause or a breaker keeps everything out."""
        family = (f"{key[0].partition(':')[0]}:*", key[1])
        paused = [self.pauses.get(key)]
        if key not in self.rules and ":" in key[0]:
            paused.append(self.pauses.get(family))
        breaker = self.breakers.get(key, Breaker())
        is_open = breaker.open_until is not None and (breaker.open_until > self.now or breaker.probe is not None)
        return any(until is not None and until > self.now for until in paused) or is_open

    def admits(self, key: Key, step: Step) -> bool:
        rule = self.rule_of(key)
        if self.is_shut(key):
            return False
        if rule is None:
            return True
        if rule.concurrency is not None and len(self.held(key)) >= rule.concurrency:
            return False
        tokens = self.tokens(key)
        return tokens is None or tokens >= min(step.weight, rule.burst or 0)

    def waiting(self, queue: str) -> list[Step]:
        """List what is due in a queue and not held, in the order of priority and due time."""
        free = [s for s in self.steps.values() if not s.is_over and s.lease is None and s.queue == queue]
        return sorted((s for s in free if s.due <= self.now), key=Step.order)

    def runnable(self, queue: str) -> list[Step]:
        """List the steps that are first in line at all of their limits, which all admit them."""
        found, met = [], set[Key]()
        for step in self.waiting(queue):
            keys = set(self.keys_of(step))
            if not keys & met and all(self.admits(key, step) for key in keys):
                found.append(step)
            met |= keys
        return found

    def claim(self, step: Step, lease: int, until: datetime) -> None:
        """Take a step that the kernel claimed, and insist that each of its limits had room for it."""
        keys = self.keys_of(step)
        assert all(self.admits(key, step) for key in keys), f"{step} was claimed, its limits do not admit it"
        step.charges = {}
        for key in keys:
            tokens, breaker = self.tokens(key), self.breakers.get(key)
            if tokens is not None:
                self.buckets[key] = Bucket(tokens - step.weight, self.now)
                step.charges[key] = step.weight
            if breaker is not None and breaker.open_until is not None:
                breaker.probe = step.id
        step.lease, step.until, step.holds = lease, until, set(keys)

    def end(self, step: Step, event: str, error: str | None = None) -> None:
        """Let a step's lease end: breakers count how."""
        for key in step.holds:
            rule = self.rule_of(key)
            if rule is not None and rule.breaker_after is not None:
                self._judge(key, rule, step, event, error)
        step.lease = step.until = None

    def _judge(self, key: Key, rule: Rule, step: Step, event: str, error: str | None) -> None:
        assert rule.breaker_after is not None
        assert rule.breaker_for is not None
        breaker = self.breakers.setdefault(key, Breaker())
        failed, succeeded = event in ("retried", "failed", "expired"), event in ("succeeded", "continued")
        if succeeded:
            breaker.failures = 0
        elif failed and error in COUNTED:
            breaker.failures += 1
        if breaker.probe == step.id:
            breaker.probe = None
            if succeeded:
                self.breakers[key] = Breaker()
            elif failed:
                breaker.open_for = min(2 * breaker.open_for, max(breaker.open_for, DAY))
                breaker.open_until = self.now + breaker.open_for
        elif breaker.open_until is None and breaker.failures >= rule.breaker_after:
            breaker.open_for = timedelta(seconds=rule.breaker_for)
            breaker.open_until = self.now + breaker.open_for

    def refund(self, step: Step) -> None:
        for key, charge in step.charges.items():
            rule, tokens = self.rule_of(key), self.tokens(key)
            if rule is not None and tokens is not None and key in self.buckets:
                self.buckets[key] = Bucket(min(Fraction(rule.burst or 0), tokens + charge), self.now)

    def charge(self, key: Key, weight: int) -> None:
        tokens = self.tokens(key)
        if tokens is not None:
            self.buckets[key] = Bucket(tokens - weight, self.now)

    def pause(self, key: Key, until: datetime) -> None:
        self.pauses[key] = max(until, self.pauses.get(key, until))

    def change(self, key: Key, rule: Rule | None) -> None:
        """Define or forget a rule: buckets keep their tokens, breakers go with their rule, holders are counted."""
        name, tenant = key
        touched = {k for k in self._met() if k[1] == tenant and (k[0] == name or self._is_of(k[0], name))}
        before = {k: (self.rule_of(k), self.tokens(k)) for k in touched}
        if rule is None:
            self.rules.pop(key, None)
            for k in touched | {key}:
                self.pauses.pop(k, None)
        else:
            self.rules[key] = rule
        for k, (old, tokens) in before.items():
            new = self.rule_of(k)
            if new is None or new.rate is None or old is None or old.rate is None or k not in self.buckets:
                self.buckets.pop(k, None)
                self._forget_charges(k)
            else:
                assert tokens is not None
                self.buckets[k] = Bucket(min(tokens, Fraction(new.burst or 0)), self.now)
            if new is None or new.breaker_after is None:
                self.breakers.pop(k, None)
        if rule is not None:
            for step in self.steps.values():
                if step.lease is not None and tenant in ("*", step.tenant):
                    step.holds |= {(n, tenant) for n in step.all_names() if n == name or self._is_of(n, name)}

    def _forget_charges(self, key: Key) -> None:
        for step in self.steps.values():
            step.charges.pop(key, None)

    def _met(self) -> set[Key]:
        held = {key for step in self.steps.values() for key in step.holds}
        return {*self.buckets, *self.breakers, *self.pauses, *held}

    @staticmethod
    def _is_of(name: str, family: str) -> bool:
        return family.endswith(":*") and name.startswith(family[:-1]) and name != family
