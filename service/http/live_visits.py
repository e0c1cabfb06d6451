"""Receives live visits. Requests are collected into batches and acknowledged only when their visits are durable."""

import logging
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final

from msgspec import to_builtins
from starlette.requests import ClientDisconnect, Request

from data import BadInput
from data.logs.reported import MAX_ROWS, Submission, TooManyRows, split_rows
from service.http.errors import AllRefused, BodyTooLarge, InvalidBody, Overloaded
from service.http.group_commit import STORAGE_ERRORS, GroupCommit
from service.http.schemas import ReceivedVisits

if TYPE_CHECKING:
    from data.ingest.live import IngestResult, LiveIngest

_LOG: Final = logging.getLogger(__name__)
MAX_BODY_BYTES: Final = 4 << 20
MAX_PENDING_BYTES: Final = 64 << 20
"""Total size of the bodies in memory; further requests are answered with Overloaded."""


class VisitReceiver:
    """Stores the visits of concurrent requests in batches, one commit each. Belongs to one event loop."""

    def __init__(self, make_intake: "Callable[[], LiveIngest]") -> None:
        self._make_intake = make_intake  # called with the first visits: it is slow, because it loads the rules
        self._intake: LiveIngest | None = None
        self._pending = GroupCommit[Submission, "IngestResult"]("intake", lambda _, batch: self._land_batch(batch))
        self._buffered_bytes = 0
        self.accepted = 0
        """Number of visits stored since the start."""

    async def receive(self, request: Request, organization: str) -> ReceivedVisits:
        """Store a request's visits. Raises AllRefused, InvalidBody, BodyTooLarge, Overloaded or StorageUnavailable."""
        if any(encoding.lower() != "identity" for encoding in request.headers.getlist("content-encoding")):
            raise InvalidBody("Content-Encoding is not supported.", "Send it without Content-Encoding.")
        body = bytearray()
        try:
            async for chunk in body_chunks(request):
                self._buffered_bytes += len(chunk)
                body += chunk
                if self._buffered_bytes > MAX_PENDING_BYTES:
                    raise Overloaded
                if len(body) > MAX_BODY_BYTES:
                    raise BodyTooLarge(f"The body is larger than {MAX_BODY_BYTES >> 20} MiB.")
            try:
                rows = split_rows(bytes(body))
            except TooManyRows as error:
                raise BodyTooLarge(f"The body holds more than {MAX_ROWS:,} visits.") from error
            except BadInput as error:
                fix = "Send an array of objects, or one object on each line."
                raise InvalidBody("The body is not a JSON array.", fix) from error
            landed = await self._pending.add("", Submission(organization, rows))
        finally:
            self._buffered_bytes -= len(body)
        self.accepted += landed.accepted
        if landed.refused and not landed.accepted:
            raise AllRefused(accepted=0, refused=len(landed.refused), errors=to_builtins(landed.refused))
        return ReceivedVisits(landed.accepted, len(landed.refused), landed.refused)

    async def close(self) -> None:
        """Wait for the batches in progress and end the thread."""
        await self._pending.close()

    def _land_batch(self, batch: list[Submission]) -> "list[IngestResult]":
        """Land the visits of some requests, of whatever organizations."""
        try:
            self._intake = self._intake or self._make_intake()
            return self._intake.land(batch)
        except STORAGE_ERRORS as error:
            _LOG.warning("Live visits cannot be stored: %s", error)
            raise


async def body_chunks(request: Request) -> AsyncIterator[bytes]:
    """The body of a request in chunks. Raises InvalidBody if the client disconnects before its end."""
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect as error:
        raise InvalidBody("Incomplete body: shorter than Content-Length.", "Send all of it.") from error
