"""Implementations of jobs: content of known types, or a URL."""

import hashlib
import sqlite3
from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final
from urllib.parse import unquote, urlsplit

import orjson
from msgspec import Meta, Struct, convert

from data import BadInput
from data.hosts import normalized_host
from data.text import plural
from service.jobs.records import Change, Implementation, Job, conflict
from service.jobs.states import IMPLEMENTATION_TRANSITIONS, IMPLEMENTATION_TYPES, ImplementationType, TooLarge
from service.jobs.subjects import chosen
from service.jobs.texts import check_text, percent_encoded

MAX_CONTENT_BYTES: Final = 256 << 10
MAX_URL_LENGTH: Final = 2_048
MAX_NOTE_LENGTH: Final = 2_000
MAX_IMPLEMENTATIONS: Final = 10
"""Maximum number of implementations per job, including withdrawn ones."""
MAX_STORED_BYTES: Final = 32 << 20
"""Maximum bytes of content in an organization's implementations. Withdrawn content is deleted to make room, oldest
first."""
MAX_SHIPPED_REDIRECTS: Final = 1_000
"""Maximum number of shipped redirects per organization."""
CONTENT_TYPES: Final = {
    "patch": ("application/json", "text/x-diff", "text/html", "text/plain"),
    "edge_page": ("text/html", "text/markdown", "text/plain"),
    "manual": (),
    "agent_hook": (),
}
"""Content types that each implementation type accepts. A type without content types takes only a note and a url."""
RULE: Final = {
    "type": "redirect", "domain": "go.example.com", "from": "/old", "to": "https://example.com/", "status": 308,
}  # fmt: skip
"""An example of a redirect rule. A patch in JSON is such a rule, or a list of them."""
RULE_TYPE: Final = "application/json"
MAX_RULES: Final = 100
"""Maximum number of rules in an implementation."""
EVERY_DOMAIN: Final = "*"
"""The domain in a rule for a job from a log without hosts."""
REDIRECT_STATUSES: Final = (301, 302, 307, 308)

Note = Annotated[str, Meta(extra_json_schema={"maxLength": MAX_NOTE_LENGTH})]
Url = Annotated[str, Meta(extra_json_schema={"maxLength": MAX_URL_LENGTH})]
"""Notes and URLs: the schema states their maximum length; `check_note` and `check_url` raise TooLarge beyond it."""


class Draft(Struct, frozen=True, forbid_unknown_fields=True):
    """An implementation to attach."""

    implementation_type: Annotated[str, Meta(extra_json_schema={"enum": list(IMPLEMENTATION_TYPES)})]
    content_type: Annotated[
        str | None, Meta(description=", ".join(sorted({one for types in CONTENT_TYPES.values() for one in types})))
    ] = None
    content: Annotated[str | None, Meta(description=f"at most {MAX_CONTENT_BYTES:,} bytes of UTF-8")] = None
    url: Url | None = None
    note: Note | None = None
    redirect_to: Annotated[
        Url | None,
        Meta(description="for a patch: the new target of its paths, from which redirect rules are made"),
    ] = None
    subject: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="number of the job's subject that the implementation is about; default: all"),
    ] = None


@dataclass(frozen=True)
class Approval:
    """The implementation that an approval chooses: a type other than the job's own, or an earlier implementation."""

    implementation_type: str | None = None
    implementation_number: int | None = None


def check_draft(draft: Draft, job: Job) -> bytes | None:
    """Check a draft for a job and return its content as bytes; None without content. Raises BadInput or TooLarge."""
    kind = draft.implementation_type
    if kind not in IMPLEMENTATION_TYPES:
        raise BadInput(f"implementation_type is {kind!r}; use {', '.join(IMPLEMENTATION_TYPES)}.")
    check_note(draft.note)
    paths = {percent_encoded(path) for path in paths_of(draft, job)}
    if draft.url is not None:
        check_url(draft.url)
    if draft.content is None and draft.content_type is None:
        if CONTENT_TYPES[kind] and draft.url is None:
            raise BadInput(f"implementation_type {kind!r} needs content and content_type, or the url of the content.")
        return None
    if draft.content_type not in CONTENT_TYPES[kind]:
        allowed = ", ".join(CONTENT_TYPES[kind]) or "no content, but a url or a note"
        raise BadInput(f"content_type is {draft.content_type!r}; implementation_type {kind!r} takes {allowed}.")
    content = _checked_content(draft)
    if draft.content_type == RULE_TYPE:
        for rule in rules_in(content):
            _check_rule(rule, job, paths)
    return content


def implementation_of(draft: Draft, content: bytes | None, number: int, change: Change) -> Implementation:
    """Return a checked draft as the implementation with this number."""
    return Implementation(
        number=number,
        implementation_type=convert(draft.implementation_type, ImplementationType),
        content_type=draft.content_type,
        sha256=hashlib.sha256(content).hexdigest() if content else None,
        bytes=len(content) if content else None,
        url=draft.url,
        status="attached",
        note=draft.note,
        subject=draft.subject,
        attached_by=change.actor.name,
        attached_at=change.now,
        shipped_at=None,
    )


def approved_as(connection: sqlite3.Connection, job: Job, approval: Approval) -> Job:
    """Return the job with the type and the implementation that its approval names. Raises BadInput, or JobConflict for
    an implementation that was shipped or withdrawn, since no outcome would be measured.
    """
    kind, number = approval.implementation_type, approval.implementation_number
    if kind not in (None, *IMPLEMENTATION_TYPES):
        raise BadInput(f"implementation_type is {kind!r}; use {', '.join(IMPLEMENTATION_TYPES)}.")
    if number is not None:
        rows = connection.execute(
            "SELECT implementation_type, status FROM implementations WHERE job_id = ? AND number = ?", [job.id, number]
        ).fetchall()
        if not rows or kind not in (None, rows[0][0]):
            of_type = " of this type" if kind else ""
            raise BadInput(f"implementation_id is {number}; the job has no implementation {number}{of_type}.")
        kind, status = rows[0]
        if "shipped" not in IMPLEMENTATION_TRANSITIONS[status]:
            problem = f"cannot be approved with implementation {number}, which is {status}: approve it without"
            raise conflict(job, f"{problem} implementation_id, then attach a new one")
    return replace(
        job,
        implementation_type=kind or job.implementation_type,
        implementation_number=job.implementation_number if number is None else number,
    )


def check_note(note: str | None) -> None:
    """Check an editor's note. Raises BadInput or TooLarge."""
    if note is not None:
        check_text("note", note, MAX_NOTE_LENGTH)


def check_url(url: str) -> None:
    """Check an https URL, such as the URL of a pull request. Raises BadInput or TooLarge."""
    if len(url) > MAX_URL_LENGTH:
        raise TooLarge(f"url has {len(url):,} characters; the maximum is {MAX_URL_LENGTH:,}.")
    if not _is_url(url, ("https",)):
        raise BadInput(f"url is {url[:100]!r}; it must be an https address without a user name.")


def paths_of(draft: Draft, job: Job) -> list[str]:
    """Return the job's paths that a draft is about. Raises BadInput if the job has no subject with its number."""
    subjects = orjson.loads(job.subjects)
    if draft.subject is not None and draft.subject > len(subjects):
        raise BadInput(f"subject is {draft.subject}; the job has {plural(len(subjects), 'subject')}, numbered from 1.")
    return [path for one in chosen(subjects, draft.subject) if (path := one.get("path"))]


def _checked_content(draft: Draft) -> bytes:
    content = check_text("content", draft.content or "", MAX_CONTENT_BYTES).encode()
    if not content:
        raise BadInput("content is empty; send the implementation's text.")
    if len(content) > MAX_CONTENT_BYTES:
        raise TooLarge(f"content has {len(content):,} bytes; the maximum is {MAX_CONTENT_BYTES:,}.")
    return content


def rules_in(content: bytes) -> list[Any]:
    """Return the redirect rules in the content of an implementation: 1 to MAX_RULES. Raises BadInput."""
    try:
        rules = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"content is not JSON: {error}.") from error
    listed = rules if isinstance(rules, list) else [rules]
    if not 1 <= len(listed) <= MAX_RULES:
        raise BadInput(f"content has {len(listed)} redirect rules; send 1 to {MAX_RULES}.")
    return listed


def _check_rule(rule: object, job: Job, paths: Set[str]) -> None:
    """Check a redirect rule. Its domain must be the job's, or any if the job has none; its path must be one of `paths`,
    or any if there are none. Raises BadInput.
    """
    example = f"send a rule like {orjson.dumps(RULE).decode()}"
    if not isinstance(rule, dict) or rule.keys() != RULE.keys() or rule["type"] != "redirect":
        raise BadInput(f"content is not a redirect rule with exactly five members; {example}.")
    domain, source, target = rule["domain"], rule["from"], rule["to"]
    is_every = domain == EVERY_DOMAIN and job.domain is None
    is_host = isinstance(domain, str) and normalized_host(domain) == domain and job.domain in (None, domain)
    if not is_every and not is_host:
        raise BadInput("the rule's `domain` must be the job's domain; if the job has none, a host or *.")
    if not isinstance(source, str) or not source.startswith("/"):
        raise BadInput("the rule's `from` must be a path that begins with /.")
    if len(source) > MAX_URL_LENGTH or not unquote(source).isprintable():
        raise BadInput(f"the rule's `from` must be printable, and at most {MAX_URL_LENGTH:,} characters.")
    if paths and percent_encoded(source) not in paths:
        raise BadInput(f"the rule's `from` must be {'the path' if len(paths) == 1 else 'a path'} of the job.")
    if not isinstance(target, str) or len(target) > MAX_URL_LENGTH or not _is_url(target, ("http", "https")):
        raise BadInput(f"the rule's `to` must be an http or https address without a user name; {example}.")
    to = urlsplit(target)
    if (to.hostname, unquote(to.path) or "/") == (domain, unquote(source)):
        raise BadInput("the rule's `to` is the path itself; name another address.")
    if not isinstance(rule["status"], int) or rule["status"] not in REDIRECT_STATUSES:
        raise BadInput(f"the rule's status must be one of {', '.join(map(str, REDIRECT_STATUSES))}; {example}.")


def _is_url(text: str, schemes: tuple[str, ...]) -> bool:
    """Return whether a string is an absolute URL with one of these schemes, a host and no user name."""
    if not text.isascii() or not text.isprintable() or any(letter in text for letter in ' "<>\\^`{|}'):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in schemes and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:  # such as a port with letters
        return False
