"""Request headers captured by HAProxy. Its log lines contain them in a fixed order, without names."""

import re
from typing import Final

from data.errors import BadInput

HEADERS: Final = (
    "host", "user-agent", "referer", "sec-fetch-mode", "sec-fetch-dest", "sec-purpose", "accept-language",
    "signature-agent", "x-forwarded-for", "x-forwarded-proto", "sec-fetch-site", "x-firefox-ai", "signature-input",
    "accept",
)  # fmt: skip
"""The headers that are read, in lower case. Other headers are ignored."""
RECOMMENDED: Final = HEADERS[:10]
"""The captures that are assumed without --captures: the headers in the order that README.md recommends."""

_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
"""The name of a header, or a dash. Evidence: https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2"""


def parse_captures(text: str) -> tuple[str, ...]:
    """Parse header names such as `Host,User-Agent,-,Referer`, and return them in lower case. Raises BadInput."""
    names = tuple(name.strip().lower() for name in text.split(","))
    for name in names:
        if not _NAME.fullmatch(name):
            raise BadInput(
                f"--captures: {name!r} is not a header name; separate names with commas, as in "
                "Host,User-Agent,-,Referer, and write - for a capture that is not needed."
            )
        if name != "-" and names.count(name) > 1:
            raise BadInput(f"--captures names {name} twice; replace one of them with -, which ignores a capture.")
    return names


def positions(names: tuple[str, ...]) -> dict[str, int]:
    """Return the position, from 1, of each of HEADERS among captures with these names; 0 if it is not captured."""
    return {header: names.index(header) + 1 if header in names else 0 for header in HEADERS}
