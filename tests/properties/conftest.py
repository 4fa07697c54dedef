"""How long Hypothesis looks: HYPOTHESIS_PROFILE is `ci` (always the same examples), `dev` (new ones) or `long`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "ci",
    max_examples=60,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=SLOW,
)
settings.register_profile("dev", settings.get_profile("ci"), derandomize=False)
settings.register_profile("long", settings.get_profile("dev"), max_examples=2000, stateful_step_count=60)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
