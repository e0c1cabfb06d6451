"""One attempt to deliver a message by HTTP, with a deadline, to a checked address."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from service.core.setting_values import Network
from service.outgoing.connection import OutgoingError
from service.outgoing.http import request

DEADLINE_SECONDS: Final = 15.0
"""Time limit from resolving the host to the last header of the response. The body is not read."""


class Attempt(NamedTuple):
    """The outcome of one attempt to deliver a message."""

    status_code: int | None  # of the response; None if there was none
    error: str | None  # one of outgoing.connection.ERRORS if there was no response
    ms: int  # duration of the attempt
    retry_after: timedelta | None = None  # the pause requested by the receiver

    @property
    def is_success(self) -> bool:
        """True if the receiver accepted the message. Only the status counts; the body is not read."""
        return self.status_code is not None and 200 <= self.status_code < 300


async def post(
    url: str, headers: Mapping[str, str], body: bytes, now: datetime, networks: tuple[Network, ...]
) -> Attempt:
    """Send a message to a hook's URL. Redirects are not followed; dates in Retry-After are compared to `now`.

    Addresses in `networks` may be reached, too, even over plain http; public addresses only over https.
    """
    started_at = time.monotonic()
    status_code, error, retry_after = None, None, None
    sent = {"Content-Type": "application/json", **headers}
    try:
        response = await request(
            "POST", url, seconds=DEADLINE_SECONDS, max_bytes=0, body=body, headers=sent, networks=networks
        )
    except OutgoingError as failure:
        error = failure.error
    else:
        status_code, retry_after = response.status, parse_retry_after(response.headers.get("retry-after"), now)
    return Attempt(status_code, error, round(1000 * (time.monotonic() - started_at)), retry_after)


def parse_retry_after(text: str | None, now: datetime) -> timedelta | None:
    """Return the pause that a receiver's Retry-After header requests; None if the header is missing or invalid."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=int(text[:9]))  # nine digits are thirty years
    try:
        moment = parsedate_to_datetime(text)
        return max(timedelta(0), moment.replace(tzinfo=moment.tzinfo or UTC) - now)
    except (ValueError, OverflowError):
        return None
