"""Describes errors of object stores: the object or bucket, the response, and the remedy."""

import re
from datetime import timedelta
from typing import Final

from data.errors import TrafficError

_CAUSE: Final = re.compile(r"status code: (?P<status>\d{3}[^:\n]*)|<Code>(?P<code>\w+)</Code>")
_KEYS: Final = "check the AWS variables with its keys, and what they may do there"
_REMEDIES: Final = {
    "AccessDenied": "the keys in the AWS variables are known there, but may not do this: allow it to them",
    "InvalidObjectState": "it is archived: restore it there, and it is read then",
    "NoSuchBucket": "the bucket does not exist: create it, or correct its name, region or endpoint",
    "SlowDown": "the store asks to be asked less often",
    **dict.fromkeys(("401", "403"), _KEYS),
}
"""The remedy, by the error code of a response or by its status."""
_ONE_OBJECT: Final = frozenset({"AccessDenied", "InvalidObjectState", "NoSuchKey"})
"""Codes that may concern a single object."""


class TargetUnavailable(TrafficError):
    """A target cannot be reached, or refuses what is asked of it. A retry may work."""


class ObjectUnavailable(TargetUnavailable):
    """One object cannot be read. Others may."""


def unavailable(name: str, key: str, error: str, timeout: timedelta) -> TargetUnavailable:
    """The exception for an error of the client or an answer of a store; the message has only its status and code."""
    causes = [*_CAUSE.finditer(error)]
    status = next((cause["status"] for cause in causes if cause["status"]), "")
    code = next((cause["code"] for cause in causes if cause["code"]), "")
    if "169.254.16" in error or "169.254.17" in error:  # where machines and containers ask for their roles
        reason = "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give it a role"
    elif status or code:
        remedy = _REMEDIES.get(code) or _REMEDIES.get(status[:3], "")
        reason = ", ".join(filter(None, (status, code))) + (f"; {remedy}" if remedy else "")
        if key and code in _ONE_OBJECT:
            return ObjectUnavailable(f"{name}/{key} cannot be used: {reason}.")
    elif "kind: Timeout" in error:
        reason = f"it does not answer within {timeout.total_seconds():g} seconds"
    else:
        reason = "it does not answer, or not as S3 does"
    return TargetUnavailable(f"{name} cannot be used: {reason}.")
