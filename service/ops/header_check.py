"""The `traffic doctor` check for headers in a lake's logs."""

from typing import Final

from data import Lake
from data.signals import BITS
from data.text import plural

_TOLD: Final = BITS["fetch_sent"] | BITS["fetch_absent"]


def headers_in_words(lake: Lake) -> str:
    """Return a sentence on whether the newest visits of each organization were logged with `Sec-Fetch-*`."""
    told = {name: _has_fetch_metadata(lake, name) for name in lake.manifest.organizations.names()}
    without = [name for name, has_some in told.items() if has_some is False]
    if not without:
        return "the newest visits were logged with Sec-Fetch-*." if any(told.values()) else "no visits yet."
    which = without[0] if len(without) == 1 else f"{plural(len(without), 'organization')} (such as {without[0]})"
    return (
        f"the newest visits of {which} were logged without Sec-Fetch-*, so files are recognized only by their paths; "
        "data/logs/README.md#recommended-log-formats explains how to log them."
    )


def _has_fetch_metadata(lake: Lake, organization: str) -> bool | None:
    """Return whether a log of an organization's newest day has `Sec-Fetch-*`; None if there are no visits."""
    files = lake.manifest.files
    span = files.span(organization)
    newest = files.facts_by_day(organization, span[1], span[1]) if span else {}
    return any(bits & _TOLD for bits in newest.values()) if newest else None
