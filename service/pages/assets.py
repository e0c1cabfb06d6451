"""The static files of the pages: compressed once, and named by their content so that browsers keep them for good."""

import gzip
import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from starlette.responses import Response

from service.http.errors import NotFound

FOLDER: Final = Path(__file__).parent / "static"
MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_CACHE_CONTROL: Final = "public, max-age=31536000, immutable"


class Asset(NamedTuple):
    """One static file, under the name that contains the hash of its content."""

    name: str  # such as app.3f9c1a2b.css
    media_type: str
    content: bytes
    compressed: bytes  # with gzip


class Assets:
    """All static files of the pages, in memory."""

    def __init__(self, folder: Path = FOLDER) -> None:
        assets = {path.name: _read(path) for path in sorted(folder.iterdir()) if path.suffix in MEDIA_TYPES}
        self._by_hashed_name = {asset.name: asset for asset in assets.values()}
        self._hashed_names = {name: asset.name for name, asset in assets.items()}

    def hashed_name(self, name: str) -> str:
        """The name under which a file is served. Raises KeyError if there is no such file."""
        return self._hashed_names[name]

    def response(self, hashed_name: str, is_gzip_accepted: bool) -> Response:
        """The response with a file, which browsers may keep for a year. Raises NotFound."""
        asset = self._by_hashed_name.get(hashed_name)
        if asset is None:
            raise NotFound
        headers = {"Cache-Control": _CACHE_CONTROL, "Vary": "Accept-Encoding"}
        if is_gzip_accepted:
            headers["Content-Encoding"] = "gzip"
        body = asset.compressed if is_gzip_accepted else asset.content
        response = Response(body, headers=headers)
        response.headers["Content-Type"] = asset.media_type
        return response


def _read(path: Path) -> Asset:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Asset(
        f"{path.stem}.{digest}{path.suffix}", MEDIA_TYPES[path.suffix], content, gzip.compress(content, 9, mtime=0)
    )
