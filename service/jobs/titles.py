"""Titles and summaries of jobs: fixed sentences, filled with numbers, days, a checked host and a plain short code only.

Nothing else that was requested is repeated here, whatever a stranger wrote: any other path is "a path".
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from data.hosts import normalized_host
from service.jobs.records import Job
from service.jobs.texts import is_short_code

MANUAL: Final = "manual"
ERASED_TITLE: Final = "A job whose evidence was deleted"
ERASED_SUMMARY: Final = "The visits that it was about were deleted, and its evidence with them."


class _Sentences(NamedTuple):
    """Title and summary of one type. {where}: the link or the domain; other names are sums of evidence columns."""

    title: str
    summary: str


_SENTENCES: Final = {
    "broken_link": _Sentences(
        "AI products do not find {where}",
        "From {days}, it was requested by AI products ({agent_fetches}) and by people whom they sent ({ai_referrals}); "
        "each got 404 or 410, and nobody found it since.",
    ),
    "invented_link": _Sentences(
        "AI products send people to {where}, which never existed",
        "From {days}, it was requested by AI products ({agent_fetches}) and by people whom they sent ({ai_referrals}); "
        "nobody ever got an answer below 400. The address was probably made up.",
    ),
    "ai_attention_gap": _Sentences(
        "Assistants read {where}, and send nobody",
        "From {days}, assistants fetched it {agent_fetches} times; people whom they sent: {ai_referrals}. By their "
        "rates over all links, at least five were to be expected.",
    ),
    "blocked_agent": _Sentences(
        "An AI agent is refused at {domain}",
        "From {days}, {refused} of its {agent_fetches} requests were refused.",
    ),
    "impersonated_agent": _Sentences(
        "Requests under an agent's name come to {domain} from elsewhere",
        "From {days}, {visits} requests named an AI agent, but came from outside its operator's published addresses.",
    ),
    "server_errors": _Sentences(
        "{where} fails",
        "From {days}, {errors} of {visits} requests by people and AI products got a status of 500 or above.",
    ),
    "referral_drop": _Sentences(
        "An AI product sends fewer people to {where}",
        "People whom it sent in the last 14 days of {days}: {ai_referrals}; in the 14 days before: {referrals_before}.",
    ),
    "training_without_return": _Sentences(
        "A training crawler takes much of {domain}, and its operator sends nobody",
        "From {days}, {training_fetches} of {visits} requests were its; nobody came from its operator's products.",
    ),
}
_OTHER: Final = _Sentences("Something was found at {where}", "It was found from {days}; its evidence says more.")


def sentences(job: Job, rows: Sequence[Mapping[str, object]], days: tuple[str, str]) -> tuple[str, str]:
    """The title and the summary of a job, by its type and subject.

    `rows` are the rows of its evidence: numbers in them are summed up by column. `days` are the first and the last
    day, as YYYY-MM-DD.
    """
    host = job.domain if job.domain and normalized_host(job.domain) == job.domain else "a domain"
    words: dict[str, object] = {**_sums(rows), "domain": host, "days": f"{days[0]} to {days[1]}"}
    words["where"] = _where(host, job.short_code, job.path is not None)
    chosen = _SENTENCES.get(job.type, _OTHER)
    title = chosen.title.format_map(words)
    try:
        summary = chosen.summary.format_map(words)
    except KeyError:  # its evidence has no such column
        summary = _OTHER.summary.format_map(words)
    return title[:1].upper() + title[1:], summary


def _where(host: str, short_code: str | None, has_path: bool) -> str:
    """The link by its code; nothing more of a path, since whoever asks for it chooses the words."""
    if short_code and is_short_code(short_code) and not has_path:
        return f"the link {short_code} of {host}"
    return f"a path of {host}" if has_path or short_code else host


def _sums(rows: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """The sum of every column of numbers, as people write it."""
    sums: dict[str, int | float] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                sums[name] = sums.get(name, 0) + value
    return {name: f"{value:,}" for name, value in sums.items()}
