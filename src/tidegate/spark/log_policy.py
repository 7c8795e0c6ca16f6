"""What of a policy a log must honour itself, or must be fit for: checked before anything runs."""

from __future__ import annotations

from tidegate import errors
from tidegate.eventtime.instants import micros
from tidegate.logs.log import Description, Log
from tidegate.logs.store_log import StoreLog
from tidegate.planning.policy import OF_STREAM, Policy, Strategy


def described(stream: str, log: Log, policy: Policy) -> Description:
    """A log as it travels, under a policy.

    `max_future` is judged by the log, where a row meets its clock. Who goes by processing time must
    read a stream whose rows are timed by their commit.
    """
    if policy.watermark is Strategy.PROCESSING and isinstance(log, StoreLog):
        column = log.store.describe(log.name).config.event_column
        if column is not None:
            raise errors.processing_needs_commit_time(stream, column)
    description = log.describe()
    if policy.max_future is OF_STREAM:
        return description
    if "max_future" not in description:
        raise errors.future_is_the_writers(stream)
    far = policy.max_future
    return {**description, "max_future": None if far is None else micros(far)}
