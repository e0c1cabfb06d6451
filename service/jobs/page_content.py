"""The content of a job's page: its evidence as a table, the query, and its outcome in words and as a chart."""

import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import orjson
from markupsafe import Markup

from queries import DETECTORS, ENTRIES, template
from service.core.pages import formats
from service.core.pages.columns import TableColumn, cell, column_of
from service.jobs.outcome import DAYS_BEFORE, LAST_DAY
from service.jobs.records import Evidence, EvidenceScope, Job, JobOutcome, JobRecord
from service.jobs.texts import cut, sanitized
from service.reports.filters import ALL_GROUPS

DayCount = tuple[date, int, int]
"""A day, with its events and visits."""


class MeasureWords(NamedTuple):
    """The labels for the counts of a measure: its events, its other visits, and all its visits."""

    events: str
    others: str
    visits: str

    @property
    def are_apart(self) -> bool:
        """Whether the events are not among the visits."""
        return self.others == self.visits


_FAILED: Final = MeasureWords("500 to 599", "Other answers", "All visits")
_MISSING: Final = MeasureWords("404 or 410", "Other answers", "All requests")
_SUCCEEDED: Final = MeasureWords("200 to 299", "Other answers", "All requests")
WORDS: Final = {
    "ai_attention_gap": MeasureWords("People sent", "Fetches by assistants", "Fetches by assistants"),
    "blocked_agent": MeasureWords("Refused", "Other answers", "All requests"),
    "broken_link": _MISSING,
    "crawler_file": _MISSING,
    "crawler_inside": _SUCCEEDED,
    "crawler_plan": MeasureWords("By agents of the plan, not refused", "Other crawlers and AI agents", "All visits"),
    "dead_path": _MISSING,
    "error_days": _FAILED,
    "exposed_path": _SUCCEEDED,
    "flood": MeasureWords("By the agent or browser", "Other visits", "All visits"),
    "impersonated_agent": MeasureWords("By others under its name, not refused", "Other visits", "All visits"),
    "login_attack": MeasureWords("Attempts not by people", "Other POST requests", "All POST requests"),
    "referral_drop": MeasureWords("Sent to the link by the product", "Others sent by AI", "All people sent by AI"),
    "refused_people": MeasureWords("403, 429 or 499", "Other answers", "All requests"),
    "search_errors": _FAILED,
    "server_errors": _FAILED,
    "training_without_return": MeasureWords("By its training crawlers", "Other crawlers and AI agents", "All visits"),
}
"""The labels in the outcome's chart and table, by the name of the measure's SQL file."""
_UNTRUSTED: Final = Markup("<code>%s</code>")
_LONG_TEXT: Final = Markup("<details><summary><code>%s…</code></summary><code>%s</code></details>")
_MAX_UNCUT: Final = 60
"""Maximum length of an untrusted string, such as a user agent, that is shown in full; longer ones are truncated."""
_ENTRIES: Final = {one.entry.name: one.entry for one in DETECTORS.values()} | ENTRIES
"""The catalog entries with rows that may be evidence, by name."""
_NOTHING: Final = Markup('<data value="">–</data>')


def evidence_of(record: JobRecord, command: Callable[..., str]) -> dict[str, Any] | None:
    """Return a record's evidence for the template; None for a job without evidence.

    Columns with untrusted text have the kind "untrusted". `sql` is "" if the query has been removed. `command` formats
    a command line, as PageContext.command does.
    """
    evidence = record.evidence
    if evidence is None:
        return None
    names = list(evidence.rows[0]) if evidence.rows else []
    columns = [_column(evidence.template, name, name in evidence.untrusted) for name in names]
    rows = [[_cell(column, row.get(column.field)) for column in columns] for row in evidence.rows]
    name, start, end = evidence.template, evidence.scope.start_date, evidence.scope.end_date
    sql = template(name) if name in _ENTRIES else ""
    query = name if name in ENTRIES else f"queries/{name}.sql"
    return {
        "name": name,
        "columns": columns,
        "rows": rows,
        "span": formats.span(start, end),
        "sql": sql,
        "has_changed": hashlib.sha256(sql.encode()).hexdigest() != evidence.sql_sha256,
        "replay": command(*shlex.split(evidence.replay)[1:]),
        "query": command("query", query, "--org", record.organization, "--start-date", start, "--end-date", end),
    }


def requests_of(job: Job, evidence: Evidence | None) -> list[str]:
    """Return, for each row of evidence, the path under /app/ of a page that counts its requests; "" if no filter finds
    them.
    """
    if evidence is None:
        return []
    known = {orjson.dumps(sanitized([*one.values()])): one for one in orjson.loads(job.subjects)}
    pages = []
    for row in evidence.rows:
        subjects = [
            one for key, one in known.items() if key == orjson.dumps(sanitized([row.get(name) for name in one]))
        ]
        pages.append(_requests(subjects[0], evidence.scope) if subjects else "")
    return pages


def _requests(subject: Mapping[str, str | None], scope: EvidenceScope) -> str:
    """Return the path under /app/ of a page that counts a subject's requests; "" if no filter finds them."""
    if "*" in (subject.get("path") or "") or "/" in (subject.get("agent") or "") or subject.get("operator"):
        return ""
    names = {"path": "f_path", "agent": "f_agent", "ai_source": "f_ai_source"}
    filters = {names.get(name, name): value for name, value in subject.items() if value}
    days = {"start_date": str(scope.start_date), "end_date": str(scope.end_date), "traffic_group": ALL_GROUPS}
    return f"{'agents' if 'f_agent' in filters else 'paths'}?{urlencode(filters | days)}"


def outcome_sentences(outcome: JobOutcome) -> list[str]:
    """Return sentences that describe an outcome, the verdict first."""
    if outcome.verdict is None and outcome.status == "none":
        return ["Nothing is measured before an implementation is shipped."]
    if outcome.verdict is None:
        return ["It is too early to tell."]
    sentences = [outcome.verdict]
    if (p_value := outcome.probability) is not None:
        written = "below 0.0001" if p_value < 0.0001 else f"{p_value:.2g}"
        sentences.append(f"If nothing had changed, the probability of such a difference would be {written}.")
    if outcome.status == "waiting" and outcome.until:
        sentences.append(f"It is measured until {formats.day(outcome.until.isoformat())}.")
    if outcome.judged_by == "rate" and not outcome.resolves:
        sentences.append("This compares the days before and after; it does not prove the cause, and closes no job.")
    return sentences


def approval_of(record: JobRecord, shipped_at: datetime) -> datetime:
    """Return the time of the last approval before an implementation was shipped; if there was none, `shipped_at`."""
    approved = [line.at for line in record.history if line.action == "approve" and line.at <= shipped_at]
    return max(approved, default=shipped_at)


def days_of(approved_on: date, shipped_on: date, today: date) -> tuple[date, date]:
    """Return the first and last day of the chart, which shows the complete days that an outcome compares and the days
    from approval to shipping.
    """
    last = min(today - timedelta(1), shipped_on + timedelta(LAST_DAY))
    return approved_on - timedelta(DAYS_BEFORE), max(last, shipped_on)


def filled_days(counts: Sequence[DayCount], first: date, last: date) -> list[DayCount]:
    """Return the counts of every day from first to last; 0 on days without visits."""
    by_day = {day: (events, visits) for day, events, visits in counts}
    days = [first + timedelta(number) for number in range((last - first).days + 1)]
    return [(day, *by_day.get(day, (0, 0))) for day in days]


def expected_days(days: Sequence[DayCount], shipped_on: date, outcome: JobOutcome) -> list[float] | None:
    """Return the events expected from each day's visits at the control's rates; None without a control."""
    before, after = outcome.control_before, outcome.control_after
    if before is None or after is None:
        return None
    pairs = [(among, after if day > shipped_on else before) for day, _, among in days]
    return [round(among * control.events / control.visits, 1) for among, control in pairs]


def _column(entry: str, name: str, is_untrusted: bool) -> TableColumn:
    """Return the table column for a value in the evidence, as its query declares it."""
    fields = _ENTRIES[entry].fields if entry in _ENTRIES else ()
    declared = [column_of(field) for field in fields if field.name == name]
    column = declared[0] if declared else TableColumn(name, name.replace("_", " ").capitalize(), "text")
    return replace(column, kind="untrusted") if is_untrusted else column


def _cell(column: TableColumn, value: object) -> Markup:
    if value is None:
        return _NOTHING
    if column.kind != "untrusted":
        return cell(column, {column.field: value}, "ai", "")
    texts = map(str, value if isinstance(value, list) else [value])
    return Markup(", ").join(
        _LONG_TEXT % (cut(text, _MAX_UNCUT), text) if len(text) > _MAX_UNCUT else _UNTRUSTED % text for text in texts
    )
