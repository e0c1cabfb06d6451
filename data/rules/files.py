"""Recognizes requests for files, which a page loads as parts of itself, by the suffix of the path or the response."""

from typing import Final

SUFFIXES: Final = (
    "avif", "bmp", "gif", "ico", "jpe?g", "png", "svgz?", "tiff?", "webp",  # images and icons
    "css", "m?js", "map",  # stylesheets, scripts, source maps
    "eot", "[ot]tf", "woff2?",  # fonts
)  # fmt: skip
"""The suffixes of files, as patterns (RE2)."""
FILE_PATTERN: Final = rf"(?i)^[^?#]*\.(?:{'|'.join(SUFFIXES)})(?:[?#]|$)"
"""Matches paths and URLs of files (RE2)."""
UPGRADED: Final = 101
"""The status of a connection that became a WebSocket, which a page opens."""
