"""Request headers captured by HAProxy. Its log lines hold them by position, without names."""

import re
from typing import Final

from data.errors import BadInput

HEADERS: Final = (
    "host", "user-agent", "referer", "sec-fetch-mode", "sec-fetch-dest", "sec-purpose", "accept-language",
    "signature-agent", "x-forwarded-for", "x-forwarded-proto", "sec-fetch-site", "x-firefox-ai", "signature-input",
    "accept",
)  # fmt: skip
"""The headers that are read, in lower case. Others are ignored."""
RECOMMENDED: Final = HEADERS[:10]
"""The default captures of a log, without --captures: the headers in the order that README.md recommends."""

_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
"""A header's name, or the dash. Evidence: https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2"""


def parse_captures(text: str) -> tuple[str, ...]:
    """Return the names in a list such as `Host,User-Agent,-,Referer`, in lower case. Raises BadInput for an invalid
    name.
    """
    names = tuple(name.strip().lower() for name in text.split(","))
    for name in names:
        if not _NAME.fullmatch(name):
            raise BadInput(
                f"--captures: {name!r} is not the name of a header; separate names by commas, like "
                "Host,User-Agent,-,Referer, and write - for a capture that is not needed."
            )
        if name != "-" and names.count(name) > 1:
            raise BadInput(f"--captures names {name} twice; write - for the capture to ignore.")
    return names


def positions(names: tuple[str, ...]) -> dict[str, int]:
    """The position of each of HEADERS among the captures that have these names, from 1; 0 for none."""
    return {header: names.index(header) + 1 if header in names else 0 for header in HEADERS}
