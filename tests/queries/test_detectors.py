"""Detectors find planted problems and nothing below their thresholds; a measure counts only its subject."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import date, datetime, time, timedelta
from importlib import resources
from itertools import count, product
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import Lake
from data.signals import BITS
from data.visits import AI_CATEGORIES
from queries import (
    CRAWLER_PLAN,
    DETECTORS,
    JOB_KINDS,
    Finding,
    OwnSql,
    Scope,
    Warehouse,
    days_before,
    detect,
    left_out,
    measure_all,
    share_detected,
    template,
)
from queries.detectors import Detector
from queries.findings import GUESSES, REDIRECTED
from tests import recount
from tests.faults.trials import tried
from tests.recount import FINDERS, MEASURED, find, measured
from tests.support.lakes import files_of
from tests.support.sql import rows
from tests.support.tables import examples, tables
from tests.support.visits import Visit, land, links, visit

AS_OF = date(2026, 3, 30)
FILES = sorted(
    file.name.removesuffix(".sql")
    for file in resources.files("queries").joinpath("jobs").iterdir()
    if file.name.endswith(".sql")
)
KINDS: dict[str, dict[str, Any]] = {
    "person": {},
    "assistant": {
        "bot_category": "ai_assistant", "agent_kind": "assistant_fetch", "ai_source": "ChatGPT",
        "agent": "ChatGPT-User", "operator": "OpenAI", "confidence": "high",
    },
    "referred": {
        "bot_category": "ai_referral", "agent_kind": "referral", "ai_source": "ChatGPT", "confidence": "high",
    },
    "crawler": {
        "bot_category": "ai_training", "agent_kind": "training", "ai_source": "ByteDance", "agent": "Bytespider",
        "operator": "ByteDance", "confidence": "medium",
    },
    "impostor": {
        "bot_category": "other_bot", "agent_kind": "other", "agent": "GPTBot", "confidence": "contradicted",
    },
    "other": {"bot_category": "search_crawler", "agent_kind": "search", "agent": "Googlebot", "operator": "Google"},
    "scanner": {"bot_category": "other_bot", "agent_kind": "scanner", "agent": "zgrab", "is_malicious": True},
}  # fmt: skip
"""The classification of each kind of visit."""
LINKS = [{"short_code": "launch", "target_url": "https://shop.example/"}]
Stream = tuple[str, int, tuple[int, int], Mapping[str, Any]]
"""Kind, number of visits, the days before AS_OF over which they are spread (the newest, the oldest), columns."""


def visits_of(streams: Iterable[Stream]) -> list[Visit]:
    found = []
    for kind, number, (newest, oldest), columns in streams:
        for turn in range(number):
            day = AS_OF - timedelta(newest + turn % (oldest - newest + 1))
            moment = datetime.combine(day, time(turn // 60 % 24, turn % 60, 7, 250_000))
            browser = {} if "agent" in KINDS[kind] else {"user_agent": f"Mozilla/5.0 ({turn % 4})"}
            found.append(visit(**KINDS[kind] | browser | {"visitor": turn} | columns, visited_at=moment))
    return found


def as_row(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the recount in the format of a finding."""
    return {
        name: f"{value.replace(microsecond=0).isoformat()}Z" if isinstance(value, datetime) else value
        for name, value in found.items()
    }


class World:
    """One lake; every case gets its own organization, so that all other organizations are strangers."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.warehouse = Warehouse(lake)
        self._numbers = count()

    def organization(self, visits: Iterable[Visit]) -> str:
        name = f"organization-{next(self._numbers)}"
        land(self.lake, name, visits)
        links(self.lake, name, LINKS)
        self.lake.manifest.behaviour.switch(name, on=False)  # otherwise only judged days count
        return name

    def found(self, job_type: str, organization: str, as_of: date = AS_OF) -> list[Finding]:
        return detect(self.warehouse, DETECTORS[job_type], organization, as_of)

    def found_in_memory(self, job_type: str, organization: str, as_of: date = AS_OF) -> list[Finding]:
        """Return what `found` returns, but from visits that are read once for all detectors."""
        shared = share_detected(self.warehouse, organization, as_of)
        return detect(self.warehouse, DETECTORS[job_type], organization, as_of, shared=shared)


@pytest.fixture(scope="module")
def world(shared_lake: Lake) -> Iterator[World]:
    world = World(shared_lake)
    yield world
    world.warehouse.close()


def owned(visits: Iterable[Visit], organization: str) -> list[Visit]:
    return [{**row, "organization": organization} for row in visits]


def check(world: World, job_type: str, visits: list[Visit], organization: str, as_of: date = AS_OF) -> list[Finding]:
    """Compare a detector's rows and each subject's measures with a recount, and return the findings."""
    found, mine = world.found_in_memory(job_type, organization, as_of), owned(visits, organization)
    expected = find(job_type, mine, organization, as_of, [{**link, "organization": organization} for link in LINKS])
    assert [repr(finding.row) for finding in found] == [repr(as_row(row)) for row in expected]
    subjects, days = [finding.subject for finding in found], (date(2026, 1, 1), AS_OF)
    expected = [measured(job_type, mine, organization, subject) for subject in subjects]
    assert measure_all(world.warehouse, DETECTORS[job_type], organization, subjects, *days) == expected
    if len(subjects) > 1:
        assert measure_all(world.warehouse, DETECTORS[job_type], organization, subjects[:1], *days) == expected[:1]
    return found


# Findings


@examples("job_type", "what", "streams", "number")
def test_detectors_find_only_what_reaches_their_thresholds(world, job_type, what, streams, number):
    visits = visits_of(streams)
    found = check(world, job_type, visits, world.organization(visits))
    assert len(found) == number
    for finding in found:
        assert finding.type == job_type
        assert finding.subject == {name: finding.row[name] for name in DETECTORS[job_type].subject}
        assert finding.weight > 0


CASES = tables(__file__)["test_detectors_find_only_what_reaches_their_thresholds"]
STREAMS = {(job_type, what): streams for job_type, what, streams, _ in CASES}
POSITIVES = {job_type: streams for job_type, _, streams, number in reversed(CASES) if number}


@examples("job_type", "what", "reason")
def test_the_first_unmet_condition_is_the_reason(world, job_type, what, reason):
    organization = world.organization(visits_of(STREAMS[job_type, what]))
    left = left_out(world.warehouse, DETECTORS[job_type], organization, AS_OF)
    assert reason in [said for _, said in left]


@pytest.mark.parametrize("job_type", DETECTORS)
def test_found_subjects_are_not_listed_as_left_out(world, job_type):
    organization = world.organization(visits_of(POSITIVES[job_type]))
    found = [finding.subject for finding in world.found(job_type, organization)]
    left = [finding.subject for finding, _ in left_out(world.warehouse, DETECTORS[job_type], organization, AS_OF)]
    assert [subject for subject in found if subject in left] == []


@pytest.mark.parametrize("job_type", DETECTORS)
def test_every_detector_has_reasons_for_leaving_out_subjects(job_type):
    reasons = tables(__file__)["test_the_first_unmet_condition_is_the_reason"]
    assert {reason for kind, _, reason in reasons if kind == job_type} <= {*DETECTORS[job_type].reasons} != set()


def test_every_detector_has_positive_and_negative_cases():
    assert {(job_type, number > 0) for job_type, _, _, number in CASES} == set(product(DETECTORS, (True, False)))


def test_every_detector_has_a_recount():
    assert FINDERS.keys() == DETECTORS.keys()


def test_every_kind_of_job_has_a_recounted_measure():
    assert MEASURED.keys() == JOB_KINDS.keys()


class Case(NamedTuple):
    """An organization with a detector's findings, and with visits that have no complete subject."""

    job_type: str
    organization: str
    visits: list[Visit]
    found: list[Finding]


@pytest.fixture(scope="module", params=DETECTORS)
def positive(world, request):
    """A case for each detector, to which no test adds visits."""
    unidentified = visits_of([("assistant", 5, (1, 3), {"domain": None, "path": None})])
    visits = visits_of(POSITIVES[request.param]) + unidentified
    organization = world.organization(visits)
    found = world.found(request.param, organization)
    assert found != []
    return Case(request.param, organization, visits, found)


def test_findings_are_repeatable(world, positive):
    job_type, organization, _, found = positive
    assert found == world.found(job_type, organization) == world.found_in_memory(job_type, organization)


def test_an_organization_without_visits_has_no_findings(world, positive):
    stranger = world.organization([])
    assert world.found(positive.job_type, stranger) == world.found_in_memory(positive.job_type, stranger) == []


def test_a_subject_has_no_measures_in_another_organization(world, positive):
    subjects, stranger = [positive.found[0].subject], world.organization([])
    assert measure_all(world.warehouse, DETECTORS[positive.job_type], stranger, subjects, *days_before(AS_OF))[0] == []


def test_a_measure_without_a_subject_has_no_rows(world, positive):
    snapshot = world.warehouse.snapshot(Scope(positive.organization, *days_before(AS_OF)))
    assert world.warehouse.answer(DETECTORS[positive.job_type].measure, snapshot) == []


def test_measures_of_an_incomplete_subject_match_the_recount(world, positive):
    job_type, organization, visits, _ = positive
    detector = DETECTORS[job_type]
    unknown = dict.fromkeys(detector.subject)
    told = measure_all(world.warehouse, detector, organization, [unknown], *days_before(AS_OF))
    assert told == [measured(job_type, owned(visits, organization), organization, unknown)]


@pytest.mark.parametrize("job_type", DETECTORS)
def test_visits_on_the_current_day_change_no_finding(world, job_type):
    organization = world.organization(visits_of(POSITIVES[job_type]))
    found = world.found(job_type, organization)
    today: list[Stream] = [(kind, 300, (0, 0), columns) for kind, _, _, columns in POSITIVES[job_type]]
    land(world.lake, organization, visits_of(today))
    assert world.found(job_type, organization) == found != []


ABOUT_PROBES = {"exposed_path", "catch_all", "flood", "impersonated_agent", "login_attack"}


def with_columns(job_type: str, **columns: Any) -> list[Visit]:
    """Return visits in which a detector finds problems, with other values in some columns."""
    return visits_of((kind, number, days, values | columns) for kind, number, days, values in POSITIVES[job_type])


@pytest.mark.parametrize("job_type", sorted(DETECTORS.keys() - ABOUT_PROBES))
@pytest.mark.parametrize("signal", ["probed", "scanned"])
def test_detectors_ignore_visitors_who_probe(world, job_type, signal):
    assert world.found(job_type, world.organization(with_columns(job_type, signals=BITS[signal]))) == []


@pytest.mark.parametrize("job_type", sorted(ABOUT_PROBES))
def test_detectors_about_probes_count_visitors_who_probe(world, job_type):
    assert len(world.found(job_type, world.organization(with_columns(job_type, signals=BITS["probed"])))) == 1


@pytest.mark.parametrize("job_type", ["blocked_agent", "broken_link", "training_without_return"])
def test_detectors_count_a_verified_agent_that_probes(world, job_type):
    visits = with_columns(job_type, signals=BITS["probed"], confidence="verified")
    assert len(world.found(job_type, world.organization(visits))) == 1


@pytest.mark.parametrize("job_type", ["blocked_agent", "broken_link", "training_without_return"])
def test_detectors_ignore_a_contradicted_agent(world, job_type):
    visits = with_columns(job_type, confidence="contradicted")
    assert world.found(job_type, world.organization(visits)) == []


def test_detectors_find_nothing_four_weeks_later(world, positive):
    assert world.found(positive.job_type, positive.organization, AS_OF + timedelta(29)) == []


def test_the_hundred_heaviest_findings_of_each_type_are_returned(world):
    paths = [{"path": f"/{number:03}", "status": 404} for number in range(101)]
    streams: list[Stream] = [("assistant", 10, (1, 2), columns) for columns in paths]
    streams += [("assistant", 1, (1, 1), paths[100])]
    streams += [("referred", 2, (1, 2), {"path": "/made-up", "status": 404})]
    visits = visits_of(streams)
    organization = world.organization(visits)
    found = check(world, "broken_link", visits, organization)
    assert [finding.subject["path"] for finding in found] == ["/100", *(f"/{number:03}" for number in range(99))]
    assert [finding.subject["path"] for finding in check(world, "invented_link", visits, organization)] == ["/made-up"]


def test_a_person_weighs_as_much_as_ten_requests(world):
    streams = [
        ("assistant", 8, (1, 2), {"path": "/a", "status": 404}),
        ("referred", 4, (1, 2), {"path": "/a", "status": 404}),
    ]
    (found,) = world.found("invented_link", world.organization(visits_of(streams)))
    assert found.weight == 8 / 4 + 10 * 4 / 4


def planted() -> list[Visit]:
    """Return visits with one problem for each detector, each on a separate domain."""
    return visits_of(
        (kind, number, days, {"domain": f"{job_type}.example"} | columns)
        for job_type, streams in POSITIVES.items()
        for kind, number, days, columns in streams
    )


def test_detectors_share_visits_unless_there_are_too_many(world, monkeypatch):
    organization = world.organization(planted())
    found = {job_type: world.found(job_type, organization) for job_type in DETECTORS}
    shared = share_detected(world.warehouse, organization, AS_OF)
    with monkeypatch.context() as patched:
        patched.setattr("queries.shared_visits.MAX_SHARED_VISITS", len(planted()) - 1)
        assert share_detected(world.warehouse, organization, AS_OF) is None
    for file in files_of(world.lake, organization):
        (world.lake.root / file.path).unlink()
    for job_type, detector in DETECTORS.items():
        assert detect(world.warehouse, detector, organization, AS_OF, shared=shared) == found[job_type] != []


def test_detector_files_return_the_same_rows_as_custom_sql(world):
    organization = world.organization(planted())
    with closing(OwnSql(world.lake, organization)) as own_sql:
        for job_type, detector in DETECTORS.items():
            own = own_sql.sql(template(detector.entry.name), Scope(organization, *days_before(AS_OF)))
            rows = [as_row(dict(zip(own.columns, row, strict=True))) for row in own.rows]
            name, value = detector.only or ("domain", rows[0]["domain"])  # two detectors share a file
            found = [finding.row for finding in world.found(job_type, organization)]
            assert found == [row for row in rows if row[name] == value] != [], job_type


PLAIN = {
    "/a/b": "/a/b",
    "/a/../b": "/b",
    "/a/b/../../c": "/c",
    "/a/../b/../c/../d": "/d",
    "/../../etc/passwd": "/etc/passwd",
    "/a//b/./c/": "/a/b/c/",
    "/..%2F%2e%2e%2fetc/passwd": "/etc/passwd",
    "/%252e%252e%252fetc/passwd": "/etc/passwd",
    "/.git/..hidden/x": "/.git/..hidden/x",
    "/a/..": "/a/..",
    "/a..b/": "/a..b/",
    "/.env.example ": "/.env.example",
    "/a b/.env%20 %20": "/a b/.env",
}


@pytest.mark.parametrize("path", PLAIN)
def test_paths_are_compared_as_a_server_resolves_them(world, path):
    assert rows(world.warehouse, f"SELECT plain_path('{path}')") == [(PLAIN[path],)]


@given(st.lists(st.sampled_from(["a", ".env", "..", ".", "", "%2e%2E", "b.c"]), max_size=5).map("/".join))
def test_plain_paths_equal_a_recount_by_hand(world, text):
    path = f"/{text}/x"
    assert rows(world.warehouse, f"SELECT plain_path('{path}')") == [(recount.plain_path(path),)]


# Against the recount


@st.composite
def traffic(draw: st.DrawFn) -> list[Stream]:
    """Draw cases at a threshold, with one visit more or fewer, among streams of visits with few domains, paths and
    agents.
    """

    def one_of(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    cases = draw(st.lists(st.sampled_from(CASES), min_size=1, max_size=2))
    streams: list[Stream] = [
        (kind, number + one_of(-1, 0, 0, 0, 1), days, columns)
        for _, _, planted, _ in cases
        for kind, number, days, columns in planted
    ]
    for _ in range(draw(st.integers(0, 6))):
        newest = one_of(0, 1, 1, 1, 6, 7, 8, 14, 15, 27)
        code = one_of(None, "launch", "gone", "GONE", "größe")
        columns = {
            "domain": one_of("go.example", "go.example", "bücher.example", None),
            "path": one_of("/gone", "/", "/robots.txt", "") if code is None else f"/{code}",
            "short_code": code,
            "bytes_sent": one_of(None, 0, 90, 100, 512, 540, 2000, 2080),
            "method": one_of("GET", "GET", "GET", "HEAD", None),
            "status": one_of(200, 302, 302, 399, 400, 401, 403, 404, 404, 410, 429, 500, 502, 599, 600, None),
            "is_malicious": one_of(False, False, False, True),
            "confidence": one_of("verified", "high", None),
            "signals": one_of(None, None, 0, BITS["probed"], BITS["scanned"] | BITS["https"]),
        }
        kind = one_of(*KINDS, "referred", "assistant")
        if kind == "impostor":
            del columns["confidence"]
        elif kind != "other" and kind != "person":
            columns["ai_source"] = one_of("ChatGPT", "ChatGPT", "ByteDance", "Claude", None)
        number = one_of(1, 4, 5, 7, 8, 10, 19, 20, 21, 40, 49, 50, 51, 100, 120)
        streams.append((kind, number, (newest, newest + one_of(0, 1, 6, 13, 27)), columns))
    return streams


@tried(5)
@given(traffic(), st.sampled_from([AS_OF, AS_OF + timedelta(1), AS_OF - timedelta(7)]))
def test_findings_and_measures_equal_an_independent_recount(world, streams, as_of):
    visits = visits_of(streams)
    organization = world.organization(visits)
    for job_type in DETECTORS:
        check(world, job_type, visits, organization, as_of)
    plan, days = {"domain": "go.example", "agent": "ChatGPT-User, GPTBot"}, (date(2026, 1, 1), AS_OF)
    expected = measured("crawler_plan", owned(visits, organization), organization, plan)
    assert measure_all(world.warehouse, CRAWLER_PLAN, organization, [plan], *days)[0] == expected


# Measures


@pytest.mark.parametrize("subject", [{}, {"path": "/gone"}, {"domain": "go.example", "path": "/", "agent": "GPTBot"}])
def test_a_subject_with_the_wrong_columns_is_rejected(world, subject):
    with pytest.raises(ValueError, match="broken_link has domain, path"):
        measure_all(world.warehouse, DETECTORS["broken_link"], "acme", [subject], *days_before(AS_OF))


def test_only_the_listed_job_types_have_special_flags():
    def having(flag):
        return {kind.type for kind in JOB_KINDS.values() if getattr(kind, flag)}

    assert having("more_is_better") == {"ai_attention_gap", "referral_drop"}
    answered = {
        "broken_link",
        "invented_link",
        "blocked_agent",
        "dead_path",
        "exposed_path",
        "catch_all",
        "crawler_file",
        "refused_people",
        "crawler_inside",
    }
    assert (having("counts_refusals"), having("closes_by_rate")) == (answered, {"server_errors"})


# Files


def test_detectors_without_failing_paths_read_visits_once(world):
    snapshot = world.warehouse.snapshot(Scope(world.organization([visit()]), *days_before(AS_OF)))
    for detector in DETECTORS.values():
        sql = template(detector.entry.name)
        ((_, plan),) = rows(world.warehouse, f"EXPLAIN {sql}", snapshot)
        assert (plan.count("READ_PARQUET") == 1) is not bool(re.search("(failing|erring)_paths", sql)), detector.type


def test_detectors_read_the_28_days_before_the_given_day():
    assert days_before(date(2026, 3, 1)) == (date(2026, 2, 1), date(2026, 2, 28))


def test_every_detector_file_has_an_entry_and_vice_versa():
    entries = {entry.name for detector in DETECTORS.values() for entry in (detector.entry, detector.measure)}
    assert entries | {GUESSES.name, REDIRECTED.name, CRAWLER_PLAN.measure.name} == {f"jobs/{name}" for name in FILES}


@pytest.mark.parametrize("name", FILES)
def test_a_detector_file_is_one_short_statement(name):
    sql = template(f"jobs/{name}")
    assert len(sql.splitlines()) <= 40
    assert sql.startswith("-- ")
    assert not re.search(r"getvariable|\$|\?|read_parquet|visits_in_days", sql)
    assert "ORDER BY" in sql
    assert sql.count(";") == 1
    assert sql.endswith(";\n")
    assert "subject" in sql if name.endswith(".measure") else re.search(r"LIMIT (100|3);|<= 100\n", sql)


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=DETECTORS)
def test_a_detector_refers_only_to_columns_that_it_has(detector: Detector):
    columns = {field.name for field in detector.entry.fields}
    assert {*detector.subject, *detector.untrusted, *filter(None, (detector.fetches, detector.people))} <= columns
    assert {"path", "short_code", "agent"} & columns <= {*detector.untrusted}
    assert [field.name for field in detector.measure.fields] == ["number", "day", "events", "visits"]


def test_ai_categories_in_detector_files_exist():
    named = {word for name in FILES for word in re.findall(r"'(ai_\w+)'", template(f"jobs/{name}"))}
    assert named <= {*AI_CATEGORIES}
