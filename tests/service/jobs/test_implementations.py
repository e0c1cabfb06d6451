"""Valid implementations of a job: content of exact types, addresses, and rules that redirect only the job's path."""

import json
from dataclasses import replace

import pytest

from data import BadInput
from service.jobs.implementations import MAX_CONTENT_BYTES, MAX_URL_LENGTH, RULE, Draft, check_draft
from service.jobs.records import Job
from service.jobs.states import TooLarge
from tests.support.tables import examples_at_once

JOB = Job(
    "job_1", "acme", "broken_link", "approved", "t", "2026-03-01T00:00:00", "2026-03-01T00:00:00",
    domain="go.example.com", path="/café", subjects='[{"domain": "go.example.com", "path": "/café"}]',
)  # fmt: skip


def checked(job=JOB, rule=None, **draft):
    """Return the bytes of a draft, or of a redirect rule with these changes."""
    if rule is not None:
        text = json.dumps({**RULE, "domain": "go.example.com", "from": "/café", **rule})
        draft = {"implementation_type": "patch", "content_type": "application/json", "content": text}
    return check_draft(Draft(**draft), job)


@examples_at_once("draft")
def test_a_valid_draft_is_accepted(draft):
    (draft,) = draft
    content = draft.get("content")
    assert checked(**draft) == (content.encode() if content else None)


@examples_at_once("rule")
def test_a_valid_redirect_rule_is_accepted(rule):
    assert checked(rule=rule[0])


@examples_at_once("draft", "problem")
def test_an_invalid_draft_or_redirect_rule_is_rejected(draft, problem):
    with pytest.raises(BadInput, match=problem):
        checked(**draft)


def test_a_job_without_a_path_accepts_a_rule_from_any_path():
    job = replace(JOB, path=None, domain=None, subjects="[]")
    assert checked(job, {"from": "/any", "domain": "any.example"})
    assert checked(job, {"from": "/any", "domain": "*"})
    for changes, problem in (({"domain": "not a host"}, "domain"), ({"from": "/a%0A"}, "printable")):
        with pytest.raises(BadInput, match=problem):
            checked(job, changes)


def test_deeply_nested_content_is_not_json():
    with pytest.raises(BadInput, match="content is not JSON"):
        checked(implementation_type="patch", content_type="application/json", content="[" * 100_000)


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f600"])
def test_content_is_limited_in_bytes(letter):
    page = {"implementation_type": "edge_page", "content_type": "text/html"}
    most = MAX_CONTENT_BYTES // len(letter.encode())
    assert checked(**page, content=letter * most)
    with pytest.raises(TooLarge, match="content"):
        checked(**page, content=letter * (most + 1))


@pytest.mark.parametrize(
    ("field", "start", "most"), [("url", "https://git.example.com/", MAX_URL_LENGTH), ("note", "", 2_000)]
)
def test_the_url_and_the_note_are_limited_in_characters(field, start, most):
    assert checked(implementation_type="manual", **{field: start.ljust(most, "x")}) is None
    with pytest.raises(TooLarge, match=field):
        checked(implementation_type="manual", **{field: start.ljust(most + 1, "x")})
