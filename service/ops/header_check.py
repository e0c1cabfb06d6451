"""What `traffic doctor` says of the headers in the logs of a lake."""

from typing import Final

import pyarrow.compute as pc
import pyarrow.parquet as pq

from data import Lake
from data.disk.files import READ_ERRORS
from data.signals import BITS
from data.text import plural

_TOLD: Final = BITS["fetch_sent"] | BITS["fetch_absent"]


def headers_in_words(lake: Lake) -> str:
    """A sentence about the newest visits of each organization: whether their log has the headers `Sec-Fetch-*`."""
    told = {name: _has_fetch_metadata(lake, name) for name in lake.manifest.organizations.names()}
    without = [name for name, has_some in told.items() if has_some is False]
    if not without:
        return "the newest visits were logged with Sec-Fetch-*." if any(told.values()) else "no visits yet."
    which = without[0] if len(without) == 1 else f"{plural(len(without), 'organization')} (such as {without[0]})"
    return (
        f"the newest visits of {which} were logged without Sec-Fetch-*, so files are known by their paths alone; "
        "data/logs/README.md#the-line-to-write adds them."
    )


def _has_fetch_metadata(lake: Lake, organization: str) -> bool | None:
    """Whether one file of an organization's newest day tells of them; None without visits, or if it is damaged."""
    span = lake.manifest.files.span(organization)
    for file in lake.manifest.files.live(organization, span[1], span[1])[:1] if span else ():
        try:
            signals = pq.read_table(lake.root / file.path, columns=["signals"], partitioning=None)["signals"]
        except READ_ERRORS:
            return None  # `traffic verify` reports it
        return bool(pc.any(pc.not_equal(pc.bit_wise_and(pc.fill_null(signals, 0), _TOLD), 0)).as_py())
    return None
