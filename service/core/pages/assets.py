"""The stylesheet, the script and the icon of the pages.

A first view takes two requests: one for the page and one for its stylesheet, which is compressed once, and named by a
hash of its content so that browsers cache it forever. The script and the icon are small enough to be part of each page.
The page shown when the rate limit refuses a request has a short style of its own.
"""

import base64
import gzip
import hashlib
from pathlib import Path
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from service.core.http.compression import GZIP, VARY, wants_gzip
from service.core.http.errors import NotFound

FOLDER: Final = Path(__file__).parent / "static"
_STYLE: Final = (FOLDER / "app.css").read_bytes()
_COMPRESSED_STYLE: Final = gzip.compress(_STYLE, 9, mtime=0)
STYLESHEET: Final = f"app.{hashlib.sha256(_STYLE).hexdigest()[:12]}.css"
"""The name under which the stylesheet is served."""
REFUSED_STYLE: Final = (FOLDER / "refused.css").read_text("utf-8")
"""The inline style of the page shown when the rate limit refuses a request: the limit refuses the stylesheet, too."""
SCRIPT: Final = (FOLDER / "app.js").read_text("utf-8")
ICON: Final = f"data:image/svg+xml,{quote((FOLDER / 'icon.svg').read_text('utf-8').strip(), safe=' /:=')}"
_CACHE_CONTROL: Final = "public, max-age=31536000, immutable"


def source_of(text: str) -> str:
    """Return the source of an inline style or script for a Content-Security-Policy: the hash of its text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


async def stylesheet(request: Request) -> Response:
    """Return the stylesheet, which browsers may cache for a year. Raises NotFound for another name."""
    if request.path_params["name"] != STYLESHEET:
        raise NotFound
    body, how = (_COMPRESSED_STYLE, GZIP) if wants_gzip(request.scope["headers"], _STYLE) else (_STYLE, VARY)
    return Response(body, headers={"Cache-Control": _CACHE_CONTROL, **how}, media_type="text/css")
