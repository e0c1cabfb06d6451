"""Live visits: organizations take turns while visits are classified; then visits are stored and acknowledged."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct, to_builtins
from starlette.requests import Request

from data import BadInput
from data.ingest.submissions import IngestResult, PreparedVisits
from data.logs.reported import MAX_ROWS, JsonObject, RefusedVisit, Reported, Submission, TooManyRows, split_rows
from data.manifest.organizations import ZoneChanged
from service.core.http.caller import Caller
from service.core.http.errors import AllRefused, BodyTooLarge, InvalidBody, StorageUnavailable
from service.core.http.group_commit import STORAGE_ERRORS, GroupCommit
from service.core.http.operations import Call, Operation, Operations, writer
from service.core.http.pools import Pool
from service.core.http.received_bodies import ReceivedBodies

if TYPE_CHECKING:
    from data.ingest.live import LiveIngest

OPERATIONS = Operations["VisitReceiver"]()
_LOG: Final = logging.getLogger(__name__)
MAX_BODY_BYTES: Final = 4 << 20
SMALL: Final = 10
"""Maximum number of visits in a submission that skips the queue, unless more than MAX_WITHOUT_TURN would skip it at the
same time."""
MAX_WITHOUT_TURN: Final = 100
"""Maximum number of visits that are classified during a commit, since classification delays other requests."""
SMALL_BYTES: Final = 65_536
"""Maximum size of a body, in bytes, that is parsed without waiting for a turn."""


class ReceivedVisits(Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of stored and rejected visits, and the reasons for the rejections."""

    accepted: int
    refused: int
    errors: list[RefusedVisit]


class VisitReceiver:
    """A receiver that stores the visits of concurrent requests in batches, one commit each. For use in one event loop.

    One thread does all the work. Between two steps of a submission, it stores prepared visits and continues with
    another organization. While other organizations' queries run, an organization rests after each step for as long as
    the step took.
    """

    def __init__(self, make_intake: "Callable[[], LiveIngest]", serves_others: Callable[[str], bool]) -> None:
        """`serves_others` returns whether other organizations' queries run or wait."""
        self._make_intake = make_intake  # called when the first visits arrive: it is slow, because it loads the rules
        self._made: LiveIngest | None = None
        self._pool = Pool(1, "intake", None, serves_others)
        self._commits = GroupCommit[PreparedVisits, IngestResult](
            lambda _, batch: self._store(batch), self._pool.executor
        )
        self._large_bodies: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Locks by organization, so that at most one large body of an organization is parsed and prepared at a time."""
        self._without_turn = 0
        """Number of visits that are being stored, or are waiting to be stored, without a turn."""
        self.accepted = 0
        """Number of visits stored since the start."""

    async def receive(self, request: Request, caller: Caller) -> ReceivedVisits:
        """Store a request's visits. Raises AllRefused, InvalidBody, BodyTooLarge, Overloaded or StorageUnavailable."""
        if any(encoding.lower() != "identity" for encoding in request.headers.getlist("content-encoding")):
            raise InvalidBody("Content-Encoding is not supported.", "Send it without Content-Encoding.")
        bodies: ReceivedBodies = request.scope["bodies"]
        too_large = BodyTooLarge(f"The body is larger than {MAX_BODY_BYTES >> 20} MiB.")
        async with bodies.receive(request, MAX_BODY_BYTES, too_large) as body:
            landed = await self._land(body, caller)
        self.accepted += landed.accepted
        if landed.refused and not landed.accepted:
            raise AllRefused(accepted=0, refused=len(landed.refused), errors=to_builtins(landed.refused))
        return ReceivedVisits(landed.accepted, len(landed.refused), landed.refused)

    async def close(self) -> None:
        """Wait for the batches in progress and end the thread."""
        await self._commits.close()

    async def _land(self, body: bytes, caller: Caller) -> IngestResult:
        organization, is_share = caller.turn
        is_large = len(body) > SMALL_BYTES
        async with self._large_bodies[organization] if is_large else nullcontext():
            rows = await self._pool.compute(organization, is_share, lambda: _split(body)) if is_large else _split(body)
            prepared = PreparedVisits(Submission(organization, rows))
            await self._prepare_in_turns(prepared, is_share)
        while True:
            unprepared = 0 if prepared.is_complete else len(prepared.submission.rows)
            self._without_turn += unprepared
            try:
                return await self._commits.add("", prepared)
            except ZoneChanged:  # retry with the new zone
                prepared = PreparedVisits(prepared.submission)
            finally:
                self._without_turn -= unprepared
            await self._prepare_in_turns(prepared, is_share)

    async def _prepare_in_turns(self, prepared: PreparedVisits, is_share: bool) -> None:
        """Prepare visits step by step, unless they are few enough to be prepared while they are stored."""
        organization, rows = prepared.submission.organization, prepared.submission.rows
        if len(rows) <= SMALL and self._without_turn + len(rows) <= MAX_WITHOUT_TURN:
            return
        try:
            while not prepared.is_complete:
                await self._pool.compute(organization, is_share, lambda: self._prepare(prepared))
        except STORAGE_ERRORS as error:
            raise StorageUnavailable(error) from error

    def _prepare(self, prepared: PreparedVisits) -> None:
        with self._warning():
            self._intake().prepare(prepared)

    def _store(self, batch: list[PreparedVisits]) -> Sequence[IngestResult]:
        """Store the visits of several requests, which may be from different organizations."""
        with self._warning():
            return self._intake().store(batch)

    def _intake(self) -> "LiveIngest":
        self._made = self._made or self._make_intake()
        return self._made

    @contextmanager
    def _warning(self) -> Iterator[None]:
        """Log a disk error that is raised in the `with` block."""
        try:
            yield
        except STORAGE_ERRORS as error:
            _LOG.warning("Live visits cannot be stored: %s", error)
            raise


@OPERATIONS.handles(
    Operation(
        "POST /visits", "visits",
        "Send live visits. They are durable once acknowledged, and included in answers computed 12 s later.",
        {"202": ReceivedVisits}, writer,
        {"application/json": Annotated[list[Reported], Meta(max_length=MAX_ROWS)], "application/x-ndjson": str},
        description="Rejected visits are reported by their index; the others are stored. If all are rejected, the "
        "response is 400. Visits sent twice count twice. Visits of a request that timed out may or may not be stored.",
    )
)  # fmt: skip
async def receive(receiver: VisitReceiver, call: Call) -> ReceivedVisits:
    return await receiver.receive(call.request, call.caller)


def _split(body: bytes) -> Sequence[JsonObject]:
    """Return the rows of a body. Raises BodyTooLarge or InvalidBody."""
    try:
        return split_rows(body)
    except TooManyRows as error:
        raise BodyTooLarge(f"The body contains more than {MAX_ROWS:,} visits.") from error
    except BadInput as error:
        fix = "Send an array of objects, or one object on each line."
        raise InvalidBody("The body is not a valid JSON array.", fix) from error
