"""Receives live visits. Requests are collected into batches and acknowledged only when their visits are durable."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect, Request

from data import BadInput, OutdatedManifest
from data.logs.reported import MAX_ROWS, Row, Submission, TooManyRows, split_rows
from service.http.errors import BodyTooLarge, InvalidBody, Overloaded, StorageUnavailable
from service.threads import in_thread

if TYPE_CHECKING:
    from data.ingest.live import IngestResult, LiveIngest

_LOG: Final = logging.getLogger(__name__)
MAX_BODY_BYTES: Final = 4 << 20
MAX_PENDING_BYTES: Final = 64 << 20
"""Total size of the bodies in memory; further requests are answered with Overloaded."""


@dataclass(frozen=True)
class _PendingRequest:
    """The visits of one request, and the future that the request waits for."""

    submission: Submission
    landed: "asyncio.Future[IngestResult]"


class VisitReceiver:
    """Stores the visits of concurrent requests in batches, one commit each. Belongs to one event loop."""

    def __init__(self, make_intake: "Callable[[], LiveIngest]") -> None:
        self._make_intake = make_intake  # called with the first visits: it is slow, because it loads the rules
        self._intake: LiveIngest | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="intake")
        self._pending: list[_PendingRequest] = []
        self._buffered_bytes = 0
        self.accepted = 0
        """Number of visits stored since the start."""
        self._work: asyncio.Task[None] | None = None

    async def receive(self, request: Request, organization: str) -> "IngestResult":
        """Store the visits of one request. Raises InvalidBody, BodyTooLarge, Overloaded or StorageUnavailable."""
        if any(encoding.lower() != "identity" for encoding in request.headers.getlist("content-encoding")):
            raise InvalidBody("The body has a Content-Encoding.", "Send it without Content-Encoding.")
        body = bytearray()
        try:
            await self._read_body(body, request)
            landed = await self._land_in_batch(Submission(organization, _parse_rows(bytes(body))))
            self.accepted += landed.accepted
            return landed
        finally:
            self._buffered_bytes -= len(body)

    async def _read_body(self, body: bytearray, request: Request) -> None:
        """Append the body of a request to `body`. Raises as soon as a limit is exceeded."""
        async for chunk in body_chunks(request):
            self._buffered_bytes += len(chunk)
            body += chunk
            if self._buffered_bytes > MAX_PENDING_BYTES:
                raise Overloaded
            if len(body) > MAX_BODY_BYTES:
                raise BodyTooLarge(f"The body is larger than {MAX_BODY_BYTES >> 20} MiB.")

    async def _land_in_batch(self, submission: Submission) -> "IngestResult":
        waiting = _PendingRequest(submission, asyncio.get_running_loop().create_future())
        self._pending.append(waiting)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._land_batches())
        return await waiting.landed

    async def close(self) -> None:
        """Wait for the batches in progress and end the thread."""
        if self._work:
            await self._work
        self._thread.shutdown()

    async def _land_batches(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            try:
                landed = await in_thread(self._thread, self._land_batch, batch)
            except Exception as error:  # noqa: BLE001  # raised in every request of the batch
                _resolve(batch, [_as_problem(error)] * len(batch))
            else:
                _resolve(batch, landed)

    def _land_batch(self, batch: list[_PendingRequest]) -> "list[IngestResult]":
        self._intake = self._intake or self._make_intake()
        return self._intake.land([waiting.submission for waiting in batch])


async def body_chunks(request: Request) -> AsyncIterator[bytes]:
    """The body of a request in chunks. Raises InvalidBody if the client disconnects before its end."""
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect as error:
        raise InvalidBody("Incomplete body: shorter than Content-Length.", "Send all of it.") from error


def _resolve(batch: list[_PendingRequest], outcomes: "Sequence[IngestResult | Exception]") -> None:
    for waiting, outcome in zip(batch, outcomes, strict=True):
        if waiting.landed.cancelled():
            continue  # its client disconnected
        if isinstance(outcome, Exception):
            waiting.landed.set_exception(outcome)
        else:
            waiting.landed.set_result(outcome)


def _as_problem(error: Exception) -> Exception:
    if not isinstance(error, OSError | sqlite3.OperationalError | OutdatedManifest):
        return error
    _LOG.warning("Live visits are not kept: %s", error)
    return StorageUnavailable(error)


def _parse_rows(body: bytes) -> Sequence[Row]:
    try:
        return split_rows(body)
    except TooManyRows as error:
        raise BodyTooLarge(f"The body holds more than {MAX_ROWS:,} visits.") from error
    except BadInput as error:
        raise InvalidBody(
            "The body is not a JSON array.", "Send an array of objects, or one object on each line."
        ) from error
