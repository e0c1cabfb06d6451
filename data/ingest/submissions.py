"""Live visits on their way from a request to the manifest. They are parsed and classified in short steps, so that other
requests do not wait.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from data.errors import BadInput
from data.logs.reported import RefusedVisit, ReportedVisit, Submission, parse_reported
from data.rules.classifier import Origin
from data.rules.exclusions import Exclusion
from data.rules.own_rules import OwnRules
from data.store.packing import PackedVisits
from data.visits import Classification

MAX_DAYS: Final = 366
"""Maximum number of days in one request, because each day becomes a file."""
CHUNK: Final = 20
"""Number of visits parsed and classified together; a step ends only after a whole chunk."""
STEP_SECONDS: Final = 0.005
"""Duration of a step. Visits that are ready to be stored have to wait until the current step ends."""
PACK: Final = 500
"""Number of visits packed together; more would take longer than a step."""

SharedKey = tuple[Classification, Classification, str, Origin]
"""A combination of values in the shared columns: classification by user agent and by referral, kind of path, origin."""
VisitRow = tuple[Any, ...]
"""A visit's values in the columns stored for each visit, followed by a number from ClassifiedVisits.shared."""


class IngestResult(NamedTuple):
    """The number of visits accepted from a submission, and the rejected visits."""

    accepted: int
    refused: list[RefusedVisit]


class ClassifiedVisits:
    """Visits of one organization that are not packed yet, dated in its zone and checked against its exclusions."""

    def __init__(self, zone: str, own: OwnRules, rules_version: str) -> None:
        self.zone = zone
        self.own = own
        self.rules_version = rules_version  # the version of the rules when the first visit was classified
        self.rows: list[VisitRow] = []
        self.shared: dict[SharedKey, int] = {}
        self.excluded = Counter[Exclusion]()  # number of visits set aside, by rule of their owner


class PreparedVisits:
    """A submission, and its visits as far as LiveIngest has prepared them."""

    def __init__(self, submission: Submission) -> None:
        self.submission = submission
        self.accepted = 0
        self.refused: list[RefusedVisit] = []
        self.classified: ClassifiedVisits | None = None
        """The latest classified visits, if they are not packed yet."""
        self.packs: list[PackedVisits] = []
        self._read = 0
        self._days = set[date]()

    @property
    def is_complete(self) -> bool:
        """Whether all visits are prepared."""
        return self._read == len(self.submission.rows)

    @property
    def result(self) -> IngestResult:
        """The result of storing these visits."""
        return IngestResult(self.accepted, self.refused)

    def parse(self, now: datetime) -> Sequence[ReportedVisit]:
        """Return the valid visits among the next CHUNK visits; the others are rejected. `now` is naive, in UTC."""
        facts = []
        for index in range(self._read, min(self._read + CHUNK, len(self.submission.rows))):
            try:
                fact = parse_reported(self.submission.rows[index], now)
                if len(self._days) == MAX_DAYS and fact.visited_at.date() not in self._days:
                    reason = f"the request contains visits from more than {MAX_DAYS} days; send fewer days per request"
                    raise BadInput(reason)
            except BadInput as error:
                self.refused.append(RefusedVisit(index, str(error)))
            else:
                facts.append(fact)
                self._days.add(fact.visited_at.date())
            self._read = index + 1
        self.accepted += len(facts)
        return facts
