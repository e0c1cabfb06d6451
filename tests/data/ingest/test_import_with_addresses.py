"""What addresses add to an import: agents verified or contradicted, countries; and that they are kept nowhere."""

import csv
import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from ipaddress import ip_network

import pyarrow.parquet as pq
import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from data.errors import LakeDamaged
from data.ingest.importer import Importer, Options
from data.rules.geoip import CountryDatabase
from data.rules.tables import IpList
from data.store.ip_list_files import refresh
from tests.support.lakes import everything_in
from tests.support.user_agents import CHROME, GOOGLEBOT, GPTBOT

CLAUDEBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)"
ROAMING = (
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Perplexity-User/1.0; "
    "+https://perplexity.ai/perplexity-user)"
)
FETCHED = datetime(2026, 3, 15, 12, tzinfo=UTC)
ACME = Options("acme")
LISTS = {"openai-gptbot": ["20.42.10.0/24", "2603:1030::/48"], "perplexity-user": ["20.42.20.0/24"]}
SAID = ("bot_category", "agent_kind", "ai_source", "agent", "operator", "confidence", "detection_method", "device_type")


def line(path, ip, agent=GPTBOT, day="15/Mar/2026", referrer="-", after=""):
    return f'{ip} - - [{day}:10:05:03 +0000] "GET {path} HTTP/1.1" 200 5316 "{referrer}" "{agent}"{after}\n'


LOG = "".join(
    [
        line("/inside", "20.42.10.7"),
        line("/inside-too", "2603:1030::7"),
        line("/inside-mapped", "::ffff:20.42.10.7"),
        line("/outside", "5.5.5.5"),
        line("/outside-too", "2a01:4f8::7"),
        line("/private", "10.1.2.3"),
        line("/cloudflare", "104.16.0.9"),
        line("/own-proxy", "5.6.7.8"),
        line("/nobody", "-"),
        line("/named", "crawl-20-42-10-7.openai.example"),
        line("/thirty-days", "5.5.5.5", day="14/Apr/2026"),
        line("/thirty-one-days", "5.5.5.5", day="15/Apr/2026"),
        line("/inside-long-ago", "20.42.10.7", day="15/Mar/2025"),
        line("/roaming-inside", "20.42.20.7", ROAMING),
        line("/roaming", "5.5.5.5", ROAMING),
        line("/without-list", "5.5.5.5", CLAUDEBOT),
        line("/search", "5.5.5.5", GOOGLEBOT),
        line("/person", "5.5.5.5", CHROME),
        line("/person-inside", "20.42.10.7", CHROME),
        line("/person-sent", "20.42.10.7", CHROME, referrer="https://chatgpt.com/"),
        line("/tagged?utm_source=chatgpt.com", "5.5.5.5", referrer="https://chatgpt.com/"),
    ]
)

TRAINING = ("ai_training", "training", "ChatGPT", "GPTBot", "OpenAI", "high", "user_agent", "bot")
VERIFIED = ("ai_training", "training", "ChatGPT", "GPTBot", "OpenAI", "verified", "ip_range", "bot")
CONTRADICTED = ("other_bot", "other", None, "GPTBot", None, "contradicted", "ip_range", "bot")
FETCHING = (
    "ai_assistant",
    "assistant_fetch",
    "Perplexity",
    "Perplexity-User",
    "Perplexity",
    "high",
    "user_agent",
    "bot",
)
HUMAN_CLASSIFICATION = ("human", None, None, None, None, None, None, "desktop")
UNCHECKED = {
    "/inside": TRAINING,
    "/inside-too": TRAINING,
    "/inside-mapped": TRAINING,
    "/outside": TRAINING,
    "/outside-too": TRAINING,
    "/private": TRAINING,
    "/cloudflare": TRAINING,
    "/own-proxy": TRAINING,
    "/nobody": TRAINING,
    "/named": TRAINING,
    "/thirty-days": TRAINING,
    "/thirty-one-days": TRAINING,
    "/inside-long-ago": TRAINING,
    "/roaming-inside": FETCHING,
    "/roaming": FETCHING,
    "/without-list": ("ai_training", "training", "Claude", "ClaudeBot", "Anthropic", "high", "user_agent", "bot"),
    "/search": ("search_crawler", "search", None, "Googlebot", "Google", "high", "user_agent", "bot"),
    "/person": HUMAN_CLASSIFICATION,
    "/person-inside": HUMAN_CLASSIFICATION,
    "/person-sent": ("ai_referral", "referral", "ChatGPT", None, None, "medium", "referrer", "desktop"),
    "/tagged": TRAINING,
}
CHECKED = UNCHECKED | {
    "/inside": VERIFIED,
    "/inside-too": VERIFIED,
    "/inside-mapped": VERIFIED,
    "/inside-long-ago": VERIFIED,
    "/outside": CONTRADICTED,
    "/outside-too": CONTRADICTED,
    "/thirty-days": CONTRADICTED,
    "/tagged": CONTRADICTED,
    "/roaming-inside": (*FETCHING[:5], "verified", "ip_range", "bot"),
}
PROXIES = [ip_network("5.6.7.0/24")]


def fetch_lists(lake, lists=None, at=FETCHED):
    """Put lists of addresses into a lake, the way that `traffic agents refresh` does."""
    lists = LISTS if lists is None else lists
    rows = [
        IpList(name, "-", "https://list.example/", "json:here", evidence="https://docs.example/", checked=at.date())
        for name in lists
    ]
    outcomes = refresh(lake, rows, lambda row: json.dumps({"here": lists[row.name]}).encode(), at)
    assert [outcome.error for outcome in outcomes] == [""] * len(lists)


@pytest.fixture
def load(lake, tmp_path):
    """Imports a text as a file, with a new importer."""

    def loaded(text, options=ACME, name="access.log", **how):
        (tmp_path / name).write_text(text, "utf-8")
        return Importer(lake, **how).run(tmp_path / name, options)

    return loaded


def landed(lake, *columns):
    """Columns of every live visit by its path, which no two visits of these logs share on one domain."""
    files = lake.visit_files("acme", date.min, date.max)
    visits = [visit for file in files for visit in pq.ParquetFile(file).read().to_pylist()]
    told = {visit["path"]: tuple(visit[name] for name in columns) for visit in visits}
    assert len(told) == len(visits)
    return told


# Agents


def test_without_lists_nobody_is_verified_or_contradicted(lake, load):
    summary = load(LOG, proxies=PROXIES)
    assert landed(lake, *SAID) == UNCHECKED
    assert summary.contradicted == Counter()


def test_with_lists_every_visit_is_verified_contradicted_or_left_as_it_was(lake, load):
    fetch_lists(lake)
    summary = load(LOG, proxies=PROXIES)
    assert landed(lake, *SAID) == CHECKED
    assert summary.contradicted == Counter({"GPTBot": 4})
    assert summary.categories == Counter(says[0] for says in CHECKED.values())
    assert (summary.lines, summary.visits, summary.rejected) == (21, 21, 0)


def test_only_the_proxies_that_are_known_are_passed_over(lake, load):
    fetch_lists(lake)
    assert load(LOG).contradicted == Counter({"GPTBot": 5})
    assert landed(lake, *SAID) == CHECKED | {"/own-proxy": CONTRADICTED}


def test_repeated_requests_are_contradicted_and_counted_each(lake, load):
    fetch_lists(lake)
    text = "".join(line(f"/{number}", "5.5.5.5" if number % 3 else "20.42.10.7") for number in range(300))
    assert load(text).contradicted == Counter({"GPTBot": 200})
    assert Counter(landed(lake, "confidence").values()) == {("contradicted",): 200, ("verified",): 100}


def test_a_dry_run_tells_of_the_contradicted_too(lake, tmp_path):
    fetch_lists(lake)
    (tmp_path / "access.log").write_text(LOG)
    summary = Importer(lake).run(tmp_path / "access.log", ACME, dry_run=True)
    assert summary.contradicted == Counter({"GPTBot": 5})
    assert landed(lake) == {}


def test_lists_count_from_the_next_importer_on(lake, tmp_path):
    early = Importer(lake)
    fetch_lists(lake)
    for number, importer in enumerate((early, Importer(lake))):
        (tmp_path / f"{number}.log").write_text(line(f"/{number}", "20.42.10.7"))
        importer.run(tmp_path / f"{number}.log", ACME)
    assert landed(lake, "confidence") == {"/0": ("high",), "/1": ("verified",)}


def test_an_old_list_verifies_and_contradicts_nobody(lake, load):
    fetch_lists(lake, at=FETCHED - timedelta(31))
    load(line("/inside", "20.42.10.7") + line("/outside", "5.5.5.5"))
    assert landed(lake, *SAID) == {"/inside": VERIFIED, "/outside": TRAINING}


def test_other_formats_are_held_against_the_lists_too(lake, load):
    fetch_lists(lake)
    addressless = ("/nobody", "/named")
    rows = [row for row in LOG.splitlines(keepends=True) if not any(f"GET {path} " in row for path in addressless)]
    assert load("".join("a.example:443 " + row for row in rows), proxies=PROXIES).log_format == "vhost-combined"
    assert landed(lake, *SAID) == {path: says for path, says in CHECKED.items() if path not in addressless}


def test_a_damaged_list_is_named_before_anything_is_imported(lake, load):
    fetch_lists(lake)
    (lake.ip_lists / "openai-gptbot.json").write_text("{")
    with pytest.raises(LakeDamaged, match=r"openai-gptbot\.json"):
        load(LOG)
    assert landed(lake) == {}


def test_a_visitor_is_the_same_whatever_was_checked(lake, load):
    load(LOG, Options("acme", "before.example"))
    before = {visit[:3] for visit in visitors(lake)}
    fetch_lists(lake)
    backwards = "".join(reversed(LOG.splitlines(keepends=True)))  # the same lines; the same log would count once
    load(backwards, Options("acme", "after.example"), proxies=PROXIES)
    after = {visit[:3] for visit in visitors(lake, "after.example")}
    assert len(before) == 21
    assert before == after


def visitors(lake, domain="before.example"):
    files = lake.visit_files("acme", date.min, date.max)
    visits = [visit for file in files for visit in pq.ParquetFile(file).read().to_pylist()]
    return [(v["path"], v["visited_at"], v["visitor"]) for v in visits if v["domain"] == domain]


# No address is kept

CANARIES = [
    "20.42.10.199",
    "5.5.5.199",
    "2603:1030::cafe:199",
    "2a01:4f8::cafe:199",
    "::ffff:20.42.10.198",
    "10.1.2.199",
]
CANARIES += ["104.16.0.199", "5.6.7.199", "81.2.69.199"]
FORWARDED = ["81.2.69.198", "2a01:4f8::cafe:198"]


def test_an_address_that_was_looked_at_is_found_nowhere(lake, load, database):
    fetch_lists(lake)
    after = "".join(f' "{address}"' for address in FORWARDED) + ' "DE"'
    lines = [line("/canary-path", ip, agent, after=after) for ip in CANARIES for agent in (GPTBOT, ROAMING, CHROME)]
    lines += [line("/canary-path", ip, after=f' "{", ".join(FORWARDED)}"') for ip in CANARIES]
    lines += [f"{ip} garbage\n" for ip in CANARIES]
    lines += [line("/canary-path", ip, day=FORWARDED[0]) for ip in CANARIES]
    summary = load("".join(lines), countries=CountryDatabase(database(DE)), proxies=PROXIES)
    kept = everything_in(lake.root)
    assert b"canary-path" in kept
    assert b"contradicted" in kept
    assert b"verified" in kept
    assert [address for address in CANARIES + FORWARDED if address.encode() in kept] == []
    assert [address for address in CANARIES + FORWARDED if address in str(summary).lower()] == []
    with summary.rejects_file.open(newline="", encoding="utf-8") as file:
        assert {reason for _, reason in csv.reader(file)} == {
            "reason",
            "not in the combined format",
            "no valid time",
        }


# Countries

DE = {"81.2.69.0/24 2a01:4f8::/32": {"country": {"iso_code": "DE", "names": {"en": "Germany"}}}}
SHAPES = {
    "MaxMind": {"country": {"iso_code": "{}", "names": {"en": "A"}}, "registered_country": {"iso_code": "US"}},
    "DB-IP": {"continent": {"code": "EU"}, "country": {"iso_code": "{}", "geoname_id": 7}},
    "IPinfo": {"continent": "EU", "country": "{}", "country_name": "A"},
}


@pytest.fixture
def database(tmp_path):
    """Writes a database of networks and their records."""

    def database(records):
        writer = MMDBWriter(6, "Country", ["en"], "CountryDatabase", ipv4_compatible=True)
        for networks, record in records.items():
            writer.insert_network(IPSet(networks.split()), record)
        writer.to_db_file(str(tmp_path / "countries.mmdb"))
        return tmp_path / "countries.mmdb"

    return database


PEOPLE = "".join(
    [
        line("/de", "81.2.69.7", CHROME),
        line("/de-too", "2a01:4f8::7", CHROME),
        line("/gb", "5.5.5.5", CHROME),
        line("/unknown", "5.5.6.5", CHROME),
        line("/unknown-too", "2603:1030::7", CHROME),
        line("/private", "10.0.0.1", CHROME),
        line("/nobody", "-", CHROME),
        line("/named", "client.example", CHROME),
        line("/bot", "81.2.69.8"),
    ]
)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_the_country_of_a_visit_is_that_of_its_address(lake, load, database, shape):
    def record(code):
        return json.loads(json.dumps(shape).replace("{}", code))

    records = {"81.2.69.0/24 2a01:4f8::/32": record("DE"), "5.5.5.0/24": record("GB")}
    load(PEOPLE, countries=CountryDatabase(database(records)))
    assert landed(lake, "country") == {
        "/de": ("DE",),
        "/de-too": ("DE",),
        "/gb": ("GB",),
        "/unknown": (None,),
        "/unknown-too": (None,),
        "/private": (None,),
        "/nobody": (None,),
        "/named": (None,),
        "/bot": ("DE",),
    }


def test_without_a_database_no_country_is_known(lake, load):
    load(PEOPLE)
    assert set(landed(lake, "country").values()) == {(None,)}


def test_a_contradicted_visit_has_a_country_too(lake, load, database):
    fetch_lists(lake)
    load(line("/outside", "81.2.69.7"), countries=CountryDatabase(database(DE)))
    assert landed(lake, "country", "confidence") == {"/outside": ("DE", "contradicted")}


AFTER = {
    ' "FR"': "FR",
    ' "-" "FR"': "FR",
    ' "203.0.113.9" "FR"': "FR",
    ' "203.0.113.9, 70.41.3.18" "FR"': "FR",
    ' "203.0.113.9" "FR" "Paris"': "FR",
    ' "go.example" 0.012 "FR"': "FR",
}
NO_COUNTRY = [
    "",
    ' "XX"',
    ' "T1"',
    ' "-"',
    ' ""',
    ' "fr"',
    ' "FRA"',
    ' "F"',
    ' "203.0.113.9"',
    ' "203.0.113.9" "XX"',
    ' "203.0.113.9, 70.41.3.18" "T1"',
    ' "2a01:4f8::7" "-"',
    " FR",
    ' "Paris, FR"',
]


@pytest.mark.parametrize("head", ["", "a.example:443 "], ids=["combined", "vhost-combined"])
def test_a_country_that_the_log_names_wins_over_the_database(lake, load, database, head):
    paths = {f"/{number}": country for number, country in enumerate(AFTER.values())}
    text = "".join(
        head + line(path, "81.2.69.7", CHROME, after=after) for path, after in zip(paths, AFTER, strict=True)
    )
    load(text, countries=CountryDatabase(database(DE)))
    assert landed(lake, "country") == {path: (country,) for path, country in paths.items()}


@pytest.mark.parametrize("head", ["", "a.example:443 "], ids=["combined", "vhost-combined"])
def test_where_the_log_names_no_country_the_database_is_asked(lake, load, database, head):
    text = "".join(head + line(f"/{n}", "81.2.69.7", CHROME, after=after) for n, after in enumerate(NO_COUNTRY))
    load(text, Options("acme"))
    assert landed(lake, "country") == {f"/{number}": (None,) for number in range(len(NO_COUNTRY))}
    load(text.replace("/1.1", "/2.0"), Options("other"), "other.log", countries=CountryDatabase(database(DE)))
    files = lake.visit_files("other", date.min, date.max)
    told = [visit["country"] for file in files for visit in pq.ParquetFile(file).read().to_pylist()]
    assert told == ["DE"] * len(NO_COUNTRY)


def test_two_letters_of_a_user_agent_or_a_referrer_are_not_a_country(lake, load):
    agents = ["DE", r"a \"DE\" b", r"\"DE\""]
    text = "".join(line(f"/{number}", "81.2.69.7", agent) for number, agent in enumerate(agents))
    load(text + line("/referrer", "81.2.69.7", CHROME, referrer="DE"))
    assert set(landed(lake, "country").values()) == {(None,)}


def test_a_country_from_the_log_needs_no_address(lake, load, database):
    load(line("/a", "-", CHROME, after=' "FR"'), countries=CountryDatabase(database(DE)))
    assert landed(lake, "country", "visitor") == {"/a": ("FR", None)}


def test_a_database_that_is_damaged_in_a_record_stops_no_import(lake, load, database):
    path = database({"81.2.69.0/24": {"country": "DE"}, "5.5.5.0/24": {"country": "GB"}})
    path.write_bytes(path.read_bytes().replace(b"BDE", b"B\xff\xfe"))
    assert load(PEOPLE, countries=CountryDatabase(path)).visits == 9
    told = landed(lake, "country")
    assert (told["/de"], told["/gb"]) == ((None,), ("GB",))
