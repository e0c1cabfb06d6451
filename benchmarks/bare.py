"""The baseline for a cached answer: a bare Starlette route that returns the same bytes under the same server."""

import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


def serve(port: int, body: bytes) -> None:
    """Serve `body` at every path until the process ends."""

    async def answer(_: Request) -> Response:
        return Response(body, media_type="application/json")

    app = Starlette(routes=[Route("/{path:path}", answer)])
    uvicorn.run(
        app, port=port, http="httptools", loop="uvloop", ws="none", access_log=False, log_level="error",
        proxy_headers=False,
    )  # fmt: skip


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]).read_bytes())
