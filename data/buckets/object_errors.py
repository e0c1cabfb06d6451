"""Describes errors from object stores: the object or bucket, the response, and the remedy."""

import re
from datetime import timedelta
from typing import Final

from data.errors import TrafficError

_CAUSE: Final = re.compile(r"status code: (?P<status>\d{3}[^:\n]*)|<Code>(?P<code>\w+)</Code>")
_KEYS: Final = "check the keys in the AWS variables, and their permissions"
_REMEDIES: Final = {
    "AccessDenied": "the keys in the AWS variables lack the permission for this: grant it",
    "InvalidObjectState": "it is archived: restore it first",
    "NoSuchBucket": "the bucket does not exist: create it, or correct its name, region or endpoint",
    "SlowDown": "the store is throttling requests: try again later",
    **dict.fromkeys(("401", "403"), _KEYS),
}
"""The remedy, by the error code of a response or by its status."""
_ONE_OBJECT: Final = frozenset({"AccessDenied", "InvalidObjectState", "NoSuchKey"})
"""Error codes that may concern a single object."""


class TargetUnavailable(TrafficError):
    """A bucket or folder cannot be reached, or refuses a request. A retry may succeed."""


class ObjectUnavailable(TargetUnavailable):
    """A single object cannot be used."""


def unavailable(name: str, key: str, error: str, timeout: timedelta) -> TargetUnavailable:
    """Return the exception for a client error or a store's error response. Its message quotes only the status and error
    code.
    """
    causes = [*_CAUSE.finditer(error)]
    status = next((cause["status"] for cause in causes if cause["status"]), "")
    code = next((cause["code"] for cause in causes if cause["code"]), "")
    if "169.254.16" in error or "169.254.17" in error:  # the metadata services for roles of machines and containers
        reason = "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this host a role"
    elif status or code:
        remedy = _REMEDIES.get(code) or _REMEDIES.get(status[:3], "")
        reason = ", ".join(filter(None, (status, code))) + (f"; {remedy}" if remedy else "")
        if key and code in _ONE_OBJECT:
            return ObjectUnavailable(f"{name}/{key} cannot be used: {reason}.")
    elif "kind: Timeout" in error:
        reason = f"no response within {timeout.total_seconds():g} seconds"
    else:
        reason = "no response, or not an S3 response"
    return TargetUnavailable(f"{name} cannot be used: {reason}.")
