"""What the rules draw from: few values, so that they meet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from holdfast.models import Continue, Done, Fail, Outcome, Release, Retry, Snooze
from properties.database import WORKERS
from properties.documents import KINDS


def seconds(*choices: float) -> st.SearchStrategy[timedelta]:
    return st.sampled_from([timedelta(seconds=s) for s in choices])


workers = st.sampled_from(WORKERS)
kinds = st.sampled_from(sorted(KINDS))
some_kinds = st.none() | st.lists(kinds, min_size=1, max_size=2, unique=True)
few_kinds = st.lists(kinds, max_size=3)
queues = st.sampled_from(["default", "pages", "mails"])
priorities = st.sampled_from([0, 0, 0, 1, 5, 9])
keys = st.sampled_from([None, None, None, "k1", "k2"])
contents = st.sampled_from([{}, {"n": 1}])
batches = st.sampled_from([1, 2, 3, 20, 20])
lease_spans = st.none() | seconds(10, 60)
levels = st.sampled_from(["debug", "info", "warn", "error"])
places = st.integers(0, 19)  # which of those that there are
some_places = st.lists(places, min_size=1, max_size=3)
coins = st.booleans()
wishes = st.sampled_from(["cancel", "retry", "retry", "resolve"])
seldom = st.sampled_from([True, False, False])
mostly = st.sampled_from([True, True, True, False])
errors = st.sampled_from([None, {"type": "Timeout"}])
cursors = st.sampled_from([None, {"page": 1}, {"page": 2}])
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Done, st.sampled_from([None, {"sent": 1}])),
    st.builds(Retry, errors, st.none() | seconds(0, 7, 10_000)),
    st.builds(Fail, errors),
    st.builds(Snooze, seconds(0, 30)),
    st.builds(Continue, cursors, cursors),
    st.just(Release()),
)
few_outcomes = st.lists(outcomes, max_size=2)
placed_outcomes = st.lists(st.tuples(places, outcomes), min_size=1, max_size=4)


@st.composite
def plans(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A small DAG: each step waits for some of those before it."""
    plan: list[dict[str, Any]] = []
    for name in ["s1", "s2", "s3", "s4", "s5"][: draw(st.integers(1, 5))]:
        after = [part["name"] for part in plan if draw(st.booleans())]
        plan.append({"name": name, "kind": draw(kinds), "after": after, "priority": draw(priorities)})
    return plan
