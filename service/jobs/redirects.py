"""Redirects of dead paths: guessed targets, redirect rules, and the links that they become."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Final, NamedTuple
from urllib.parse import unquote

import orjson
from msgspec import Meta, Struct, structs

from data import BadInput
from data.links.links import Link, new_link
from queries import Engine, guess_targets
from service.core.clock import Time
from service.jobs.implementations import (
    EVERY_DOMAIN,
    RULE_TYPE,
    Draft,
    check_draft,
    implementation_of,
    paths_of,
    rules_in,
)
from service.jobs.records import Change, Count, Implementation, Job
from service.jobs.texts import percent_encoded, sanitized

ADD_REDIRECT: Final = "add_redirect"
"""The action of jobs that a redirect resolves."""


class ShippedRedirect(Struct, frozen=True, forbid_unknown_fields=True, rename={"path": "from", "target": "to"}):
    """A redirect that was shipped and not withdrawn, for edge workers that poll."""

    domain: Annotated[str, Meta(description="the host that it is for; * for every host")]
    path: Annotated[str, Meta(description="the exact path; compare paths after percent-decoding both")]
    target: Annotated[str, Meta(description="an http or https address")]
    status: Annotated[int, Meta(description="301, 302, 307 or 308")]
    job_id: str
    number: Annotated[int, Meta(ge=1, description="number of the job's implementation")]
    shipped_at: Time


class Rule(NamedTuple):
    """The members of a redirect rule, as they are stored."""

    domain: str
    path: str
    target: str
    status: int


class RedirectGuess(Struct, frozen=True, forbid_unknown_fields=True):
    """A redirect target guessed from the spelling of a job's path."""

    redirect_to: Annotated[str, Meta(description="the target of the link, or the address of the path")]
    path: Annotated[str, Meta(description="the path of the link, or a path with successful requests; percent-encoded")]
    similarity: Annotated[float, Meta(description="Jaro-Winkler similarity of the two paths, 0.9 to 1")]
    visits: Count


def with_rule(draft: Draft, job: Job) -> Draft:
    """Return the draft with a redirect rule from each of its paths to `redirect_to`; unchanged if that is None. Raises
    BadInput.
    """
    if draft.redirect_to is None:
        return draft
    if draft.implementation_type != "patch" or any((draft.content_type, draft.content, draft.url)):
        raise BadInput("redirect_to replaces the content: send it in a patch without content, content_type or url.")
    paths = paths_of(draft, job)
    if not paths:
        raise BadInput("redirect_to needs a job that is about a path.")
    if any("*" in path for path in paths):
        raise BadInput("redirect_to needs paths without *; for such a pattern, attach a patch, url or note.")
    domain, target = job.domain or EVERY_DOMAIN, draft.redirect_to
    rules = [
        {"type": "redirect", "domain": domain, "from": percent_encoded(path), "to": target, "status": 302}
        for path in paths
    ]
    content = orjson.dumps(rules if len(rules) > 1 else rules[0]).decode()
    return structs.replace(draft, content_type=RULE_TYPE, content=content)


def rules_of(content_type: str | None, content: bytes | None) -> list[Rule]:
    """Return the redirect rules in checked content; none for other content types."""
    if content_type != RULE_TYPE or content is None:
        return []
    return [Rule(rule["domain"], rule["from"], rule["to"], rule["status"]) for rule in rules_in(content)]


def link_of(job: Job, redirect_to: str, now: datetime) -> Link | None:
    """Return the link that redirects a job's path; None if the path is not a short code. Raises BadInput."""
    if not job.short_code or job.path != f"/{job.short_code}":
        return None
    return new_link(job.short_code, job.domain or "", redirect_to, now)


class CheckedDraft(NamedTuple):
    """An implementation to attach, with its content, and the redirect rules and the link derived from it."""

    implementation: Implementation
    """The number is assigned when the draft is attached."""
    content: bytes | None
    rules: Sequence[Rule]
    link: Link | None


def checked_draft(draft: Draft, job: Job, change: Change) -> CheckedDraft:
    """Check a draft for a job, and derive its redirect rules and its link. Raises BadInput or TooLarge."""
    whole = with_rule(draft, job)
    content = check_draft(whole, job)
    link = link_of(job, draft.redirect_to, change.now) if draft.redirect_to else None
    rules = rules_of(whole.content_type, content)
    return CheckedDraft(implementation_of(whole, content, 1, change), content, rules, link)


def with_redirects(links: Sequence[Link], redirects: Sequence[ShippedRedirect]) -> list[Link]:
    """Return the redirects from paths that no link has, as links, followed by the links."""
    taken = {(unquote(link.short_code), link.domain) for link in links}
    added = [
        Link(one.path[1:], "" if one.domain == EVERY_DOMAIN else one.domain, one.target, one.shipped_at)
        for one in redirects
    ]
    return [*(link for link in added if (unquote(link.short_code), link.domain) not in taken), *links]


def redirect_guesses(engine: Engine, job: Job, as_of: date) -> list[RedirectGuess]:
    """Return up to three working links and paths that are spelled like a job's dead path, most similar first; none
    unless a redirect of a single path resolves the job.

    Raises the same exceptions as `detect`.
    """
    if job.action_id != ADD_REDIRECT or not job.path or "*" in job.path:
        return []
    domain, found = job.domain, list[RedirectGuess]()
    for row in guess_targets(engine, job.organization, {"domain": domain, "path": job.path}, as_of):
        path = percent_encoded(str(row["path"]))
        target = row["target_url"] or (f"https://{domain}{path}" if domain else None)
        if target:
            found.append(RedirectGuess(str(target), str(sanitized(path)), float(row["similarity"]), int(row["visits"])))
    return found
