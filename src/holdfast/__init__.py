"""Holdfast: work that must not be lost, must not be done twice, and must be explainable afterwards."""

from holdfast.app import Holdfast
from holdfast.errors import HoldfastError, LeaseLost, RunCancelled, RunFailed, WaitTimedOut
from holdfast.kernel.context import Ctx
from holdfast.kernel.registry import RetryPolicy
from holdfast.models import Continue, Fail, Retry, Snooze

__all__ = [
    "Continue",
    "Ctx",
    "Fail",
    "Holdfast",
    "HoldfastError",
    "LeaseLost",
    "Retry",
    "RetryPolicy",
    "RunCancelled",
    "RunFailed",
    "Snooze",
    "WaitTimedOut",
]
