"""The operations of all rooms, without the reports, in the order in which the OpenAPI document lists them."""

from itertools import chain
from typing import Final

from starlette.responses import Response

from service.access import api as access
from service.core.http.compression import GZIP, VARY, compress, wants_gzip
from service.core.http.operations import Call, Json, Operation, Operations
from service.core.http.responses import JsonResponse
from service.exclusions import api as exclusions
from service.hooks import api as hooks
from service.intake import link_api, live_visits
from service.jobs import api as jobs
from service.mcp import api as mcp
from service.ops import monitoring


class Document:
    """The encoded OpenAPI document, and its compressed form."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.compressed = compress(body)


OF_DOCUMENT: Final = Operations[Document]()


@OF_DOCUMENT.handles(Operation("GET /openapi.json", "openapi", "This document.", {"200": Json}, is_public=True))
async def _document(document: Document, call: Call) -> Response:
    if wants_gzip(call.request.scope["headers"], document.body):
        return JsonResponse(document.compressed, headers=GZIP)
    return JsonResponse(document.body, headers=VARY)


OPERATIONS: Final = tuple(
    chain(
        jobs.OPERATIONS, hooks.OPERATIONS, live_visits.OPERATIONS, mcp.OPERATIONS, link_api.OPERATIONS,
        exclusions.OPERATIONS, access.OPERATIONS, monitoring.OPERATIONS, OF_DOCUMENT,
    )
)  # fmt: skip
PUBLIC_PATHS: Final = frozenset(one.route.split()[1] for one in OPERATIONS if one.is_public)
"""Paths that need no token."""
