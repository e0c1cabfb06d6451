"""Recognizes requests for files, which a page loads as parts of itself, by the path's suffix or the response."""

from typing import Final

SUFFIXES: Final = (
    "avif", "bmp", "gif", "ico", "jpe?g", "png", "svgz?", "tiff?", "webp",  # images and icons
    "css", "m?js", "map",  # stylesheets, scripts, source maps
    "eot", "[ot]tf", "woff2?",  # fonts
)  # fmt: skip
"""The suffixes of files, as patterns (RE2)."""
FILE_PATTERN: Final = rf"(?i)^[^?#]*\.(?:{'|'.join(SUFFIXES)})(?:[?#]|$)"
"""An RE2 pattern for the paths and URLs of files."""
UPGRADED: Final = 101
"""The status of a connection that a page has upgraded to a WebSocket."""
