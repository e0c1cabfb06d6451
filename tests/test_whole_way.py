"""From a log to every answer: `traffic import` and `traffic query` agree with a recount in plain Python.

Reports that are parts of the dashboard are requested with it, and with `TRAFFIC_FAULTS=all` also separately.
"""

import datetime as dt
import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from data.rules.releases import BrowserReleases
from queries import ENDPOINTS, ENTRIES, Scope
from service.commands import app
from service.core.encoding import encode
from service.demo.sample import Sample
from tests.faults.trials import IS_LONG
from tests.recount import judged, recount
from tests.support.lakes import opened, rows_of
from tests.support.relog import read_log

REAL_LOG = Path(__file__).parent.parent.parent / "shared/data/apache_access.log.gz"
PARTS = () if IS_LONG else {entry.name for _, entry in ENTRIES["dashboard"].members}
NAMES = [name for name in ENDPOINTS if name not in PARTS]
DAYS_OF_CHANGES = dt.date(2026, 3, 8), dt.date(2026, 4, 5)  # with 23 and 25 hours in Los Angeles and Auckland
REAL_DAYS = dt.date(2015, 5, 17), dt.date(2015, 5, 20)
MADE_UP_DAYS = dt.date(2026, 1, 25), dt.date(2026, 2, 27)


def traffic(*arguments: object) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


def asked(name: str, lake: Path, scope: Scope, capfdbinary) -> bytes:
    days = "--start-date", scope.start_date, "--end-date", scope.end_date
    capfdbinary.readouterr()
    traffic("query", name, "--org", scope.organization, *days, "--format", "json", "--lake", lake)
    return capfdbinary.readouterr().out


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    if not REAL_LOG.exists():
        pytest.skip("the real log is missing; it is kept outside the repository")
    lake = tmp_path_factory.mktemp("real") / "lake"
    traffic("import", REAL_LOG, "--org", "acme", "--domain", "semicomplete.com", "--lake", lake)
    return lake, judged(read_log(REAL_LOG, "acme", "semicomplete.com"), BrowserReleases())


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made-up")
    Sample(3_000, dt.date(2026, 3, 1), days=40, links=60).write(folder / "access.log")
    traffic("import", folder / "access.log", "--org", "acme", "--lake", folder / "lake")
    return folder / "lake", judged(read_log(folder / "access.log", "acme", None), BrowserReleases())


ZONES = {
    "la": "America/Los_Angeles", "kolkata": "Asia/Kolkata", "auckland": "Pacific/Auckland",
    "lord-howe": "Australia/Lord_Howe",
}  # fmt: skip


@pytest.fixture(scope="module")
def zoned(tmp_path_factory):
    """A log of the weeks in which clocks change, imported for organizations in four time zones."""
    folder = tmp_path_factory.mktemp("zoned")
    log, lake = folder / "access.log", folder / "lake"
    Sample(1_000, dt.date(2026, 4, 8), days=40, links=60).write(log)
    for organization, zone in ZONES.items():
        traffic("zone", "set", zone, "--org", organization, "--lake", lake)
        traffic("import", log, "--org", organization, "--lake", lake)
    releases = BrowserReleases()
    return lake, {name: judged(read_log(log, name, None, zone=zone), releases) for name, zone in ZONES.items()}


@pytest.mark.parametrize("organization", ZONES)
def test_answers_use_days_and_hours_in_the_organizations_zone(organization, zoned, capfdbinary):
    lake, visits = zoned
    for first, last in [(dt.date(2026, 3, 1), dt.date(2026, 4, 7)), *[(day, day) for day in DAYS_OF_CHANGES]]:
        scope = Scope(organization, first, last)
        for name in (name for name in NAMES if first != last or "activity" in name):
            assert asked(name, lake, scope, capfdbinary) == encode(recount(name, visits[organization], scope)), name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("log", "days"), [("real", REAL_DAYS), ("made_up", MADE_UP_DAYS)], ids=["real", "made up"])
def test_an_answer_about_a_log_equals_its_recount(name, log, days, request, capfdbinary):
    lake, visits = request.getfixturevalue(log)
    scope = Scope("acme", *days)
    assert asked(name, lake, scope, capfdbinary) == encode(recount(name, visits, scope))


def test_visits_and_bytes_of_a_real_log_agree_with_goaccess(real):
    lake, visits = real
    assert len(visits) == 10_000
    repeats = Counter(
        (v["visited_at"], v["visitor"], v["path"], v["method"], v["status"], v["referrer"]) for v in visits
    )
    assert sum(repeats.values()) - len(repeats) >= 19
    with opened(lake) as opened_lake:
        landed = sum(visit["bytes_sent"] or 0 for visit in rows_of(opened_lake))
    assert landed == 2_747_282_740  # general.bandwidth of GoAccess 1.7, --log-format COMBINED


def test_a_visitor_to_600_links_in_20_minutes_is_not_a_person(tmp_path, capfdbinary):
    log, lake = tmp_path / "access.log", tmp_path / "lake"
    day = dt.datetime.now(dt.UTC).date() - dt.timedelta(1)
    agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/79.0.3945.88 Safari/537.36"
    moments = (dt.datetime.combine(day, dt.time(9)) + dt.timedelta(seconds=2 * number) for number in range(600))
    log.write_text("".join(
        f'203.0.113.5 - - [{moment:%d/%b/%Y:%H:%M:%S} +0000] "GET /l{number} HTTP/1.1" 302 0 "-" "{agent}"\n'
        for number, moment in enumerate(moments)
    ))  # fmt: skip
    traffic("import", log, "--org", "acme", "--domain", "go.example.com", "--lake", lake)
    people = {}
    for switch in ("on", "off"):
        traffic("behaviour", switch, "--org", "acme", "--lake", lake)
        told = json.loads(asked("traffic-overview", lake, Scope("acme", day, day), capfdbinary))
        people[switch] = told["human_clicks"], told["total_visits"]
    assert people == {"on": (0, 600), "off": (600, 600)}


def test_probes_in_a_real_log_are_neither_people_nor_links(real, capfdbinary):
    lake, visits = real
    probe = re.compile(r"(?i)/wp-(login|admin)|/admin\.php|/administrator/index|fckeditor|/robots\.txt|/sitemap")
    probes = [visit for visit in visits if probe.search(visit["path"])]
    assert len(probes) > 50
    assert {visit["bot_category"] for visit in probes} & {"human", "ai_referral"} == set()
    links = json.loads(asked("top-links", lake, Scope("acme", *REAL_DAYS), capfdbinary))
    assert {link["short_code"] for link in links} == {
        "about", "articles", "blog", "files", "images", "kibana", "logging", "misc", "presentations", "projects",
        "scripts",
    }  # fmt: skip

    rows = json.loads(asked("referrers", lake, Scope("acme", *REAL_DAYS), capfdbinary))
    own = [row for row in rows if row["referrer"].endswith("semicomplete.com")]
    assert sum(row["visits"] for row in own) > 3_900
    assert {row["referrer_type"] for row in own} == {"internal"}


def test_the_lines_of_a_log_imported_repeatedly_count_once(real, tmp_path, capfdbinary):
    whole = gzip.decompress(REAL_LOG.read_bytes())
    head = b"".join(whole.splitlines(keepends=True)[:6_000])
    (tmp_path / "head.log").write_bytes(head)
    (tmp_path / "whole.log").write_bytes(whole)
    lake = tmp_path / "lake"
    for file in ("head.log", "whole.log", "whole.log"):
        traffic("import", tmp_path / file, "--org", "acme", "--domain", "semicomplete.com", "--lake", lake)
    traffic("import", REAL_LOG, "--org", "acme", "--domain", "semicomplete.com", "--lake", lake)
    scope = Scope("acme", *REAL_DAYS)
    assert asked("traffic-overview", lake, scope, capfdbinary) == asked("traffic-overview", real[0], scope, capfdbinary)


def test_generated_logs_resemble_real_traffic(made_up):
    _, visits = made_up
    shares = Counter(visit["bot_category"] for visit in visits)
    assert set(shares) == {
        "human", "ai_assistant", "ai_training", "ai_coding_agent", "ai_referral", "search_crawler", "other_bot",
    }  # fmt: skip
    assert 0.4 < shares["human"] / len(visits) < 0.75
    nights = sum(visit["visited_at"].hour < 5 for visit in visits if visit["bot_category"] == "human")
    assert nights / shares["human"] < 0.08
    half = [
        sum(v["bot_category"].startswith("ai_") and (v["visited_at"].month == 1) == first for v in visits)
        for first in (True, False)
    ]
    assert half[1] > half[0]
    codes = Counter(visit["short_code"] for visit in visits if visit["short_code"])
    assert codes.most_common(1)[0][1] > 20 * len(visits) / 60 / 10


def test_the_same_seed_gives_the_same_sample():
    one, two = (list(Sample(500, dt.date(2026, 3, 1), days=5, links=9).lines()) for _ in range(2))
    assert one == two
    assert len(one) == 500
