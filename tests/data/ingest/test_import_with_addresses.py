"""How addresses affect an import: they verify or contradict agents and give countries, but are never stored."""

import csv
import json
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from ipaddress import ip_network

import pytest

from data.ingest.importer import Importer, Options
from data.ingest.live import LiveIngest
from data.ingest.visitor_ids import daily_salts, visitor_hash
from data.logs.reported import Submission
from data.rules.geoip import CountryDatabase
from data.store.pending import flush_all
from tests.support.addresses import FETCHED, PROXIES, ROAMING, country_database, fetch_lists
from tests.support.driven import DRIVEN, needs_driven
from tests.support.lakes import everything_in, rows_of
from tests.support.tables import tables
from tests.support.user_agents import CHROME, GPTBOT

ACME = Options("acme")
SAID = ("bot_category", "agent_kind", "ai_source", "agent", "operator", "confidence", "detection_method", "device_type")


def line(path, ip, agent=GPTBOT, day="15/Mar/2026", referrer="-", query="", after=""):
    return f'{ip} - - [{day}:10:05:03 +0000] "GET {path}{query} HTTP/1.1" 200 5316 "{referrer}" "{agent}"{after}\n'


SAYS = tables(__file__)["says"]
TRAINING, VERIFIED, CONTRADICTED = SAYS["training"], SAYS["verified"], SAYS["contradicted"]
REQUESTS = {
    path: (line(path, ip, **how), SAYS[without], SAYS[with_lists])
    for path, (ip, without, with_lists, how) in tables(__file__)["requests"].items()
}
"""Requests by path, and their classifications without and with address lists."""
LOG = "".join(text for text, _, _ in REQUESTS.values())
UNCHECKED = {path: says for path, (_, says, _) in REQUESTS.items()}
CHECKED = {path: says for path, (_, _, says) in REQUESTS.items()}


@pytest.fixture
def load(lake, load):
    """Import a string as a file, with a new importer."""
    return lambda text, options=ACME, name="access.log", **how: load(text, options, name, Importer(lake, **how))


def landed(lake, *columns, organization="acme", domain=None):
    """Return some columns of every landed visit on a domain, by path, which is unique on that domain."""
    visits = [visit for visit in rows_of(lake, organization) if visit["domain"] == domain]
    told = {visit["path"]: tuple(visit[name] for name in columns) for visit in visits}
    assert len(told) == len(visits)
    return told


# Agents


def test_visits_are_verified_only_with_fetched_lists(lake, load):
    summary = load(LOG, proxies=PROXIES)
    assert landed(lake, *SAID) == UNCHECKED
    assert summary.contradicted == Counter()
    before = visitors(lake)
    fetch_lists(lake)
    backwards = "".join(reversed(LOG.splitlines(keepends=True)))  # the same lines; the same log would count once
    summary = load(backwards, Options("acme", "again.example"), proxies=PROXIES)
    assert landed(lake, *SAID, domain="again.example") == CHECKED
    assert summary.contradicted == Counter({"GPTBot": 4})
    assert summary.categories == Counter(says[0] for says in CHECKED.values())
    assert (summary.lines, summary.visits, summary.rejected) == (21, 21, 0)
    assert len(before) == 21
    assert visitors(lake, "again.example") == before


def test_only_known_proxies_are_exempt_from_verification(lake, load, tmp_path):
    fetch_lists(lake)
    (tmp_path / "access.log").write_text(LOG)
    summary = Importer(lake).run(tmp_path / "access.log", ACME, dry_run=True)
    assert summary.contradicted == Counter({"GPTBot": 5})
    assert landed(lake) == {}
    assert load(LOG).contradicted == Counter({"GPTBot": 5})
    assert landed(lake, *SAID) == CHECKED | {"/own-proxy": CONTRADICTED}


def test_every_contradicted_visit_of_an_agent_is_counted(lake, load):
    fetch_lists(lake)
    text = "".join(line(f"/{number}", "5.5.5.5" if number % 3 else "20.42.10.7") for number in range(300))
    assert load(text).contradicted == Counter({"GPTBot": 200})
    assert Counter(landed(lake, "confidence").values()) == {("contradicted",): 200, ("verified",): 100}


def test_new_lists_apply_to_the_next_importer(lake, tmp_path):
    early = Importer(lake)
    fetch_lists(lake)
    for number, importer in enumerate((early, Importer(lake))):
        (tmp_path / f"{number}.log").write_text(line(f"/{number}", "20.42.10.7"))
        importer.run(tmp_path / f"{number}.log", ACME)
    assert landed(lake, "confidence") == {"/0": ("high",), "/1": ("verified",)}


def test_an_old_list_verifies_agents_but_contradicts_none(lake, load):
    fetch_lists(lake, at=FETCHED - timedelta(31))
    load(line("/inside", "20.42.10.7") + line("/outside", "5.5.5.5"))
    assert landed(lake, *SAID) == {"/inside": VERIFIED, "/outside": TRAINING}


def test_agents_in_vhost_combined_lines_are_also_verified(lake, load):
    fetch_lists(lake)
    rows = {path: text for path, (text, *_) in REQUESTS.items() if path not in ("/nobody", "/named")}
    assert (
        load("".join(f"a.example:443 {row}" for row in rows.values()), proxies=PROXIES).log_format == "vhost-combined"
    )
    assert landed(lake, *SAID, domain="a.example") == {path: CHECKED[path] for path in rows}


def test_a_damaged_list_is_reported_once_and_left_out(lake, load, caplog):
    fetch_lists(lake)
    (lake.ip_lists / "openai-gptbot.json").write_text("{broken")
    load(LOG)
    (told,) = caplog.messages
    assert re.search(r"openai-gptbot\.json cannot be read; .* run `traffic agents refresh`\.", told)
    there = landed(lake, "agent", "confidence")
    assert there.keys() == REQUESTS.keys()
    assert ("GPTBot", "verified") not in there.values()
    assert {confidence for _, confidence in there.values()} >= {"verified", "high"}


def visitors(lake, domain=None):
    return landed(lake, "visited_at", "visitor", domain=domain)


# No address is kept

CANARIES = ["20.42.10.199", "5.5.5.199", "2603:1030::cafe:199", "2a01:4f8::cafe:199", "::ffff:20.42.10.198",
            "10.1.2.199", "104.16.0.199", "5.6.7.199", "81.2.69.199"]  # fmt: skip
FORWARDED = ["81.2.69.198", "2a01:4f8::cafe:198"]


def test_a_checked_address_is_stored_nowhere(lake, load, database):
    fetch_lists(lake)
    after = "".join(f' "{address}"' for address in FORWARDED) + ' "DE"'
    lines = [line("/canary-path", ip, agent, after=after) for ip in CANARIES for agent in (GPTBOT, ROAMING, CHROME)]
    lines += [line("/canary-path", ip, after=f' "{", ".join(FORWARDED)}"') for ip in CANARIES]
    lines += [f"{ip} garbage\n" for ip in CANARIES]
    lines += [line("/canary-path", ip, day=FORWARDED[0]) for ip in CANARIES]
    summary = load("".join(lines), countries=database(DE), proxies=PROXIES)
    kept = everything_in(lake.root)
    assert b"canary-path" in kept
    assert b"contradicted" in kept
    assert b"verified" in kept
    assert [address for address in CANARIES + FORWARDED if address.encode() in kept] == []
    assert [address for address in CANARIES + FORWARDED if address in str(summary).lower()] == []
    with summary.rejects_file.open(newline="", encoding="utf-8") as file:
        assert {reason for _, reason in csv.reader(file)} == {"reason", "not in the combined format", "no valid time"}


# Countries

DE = {"81.2.69.0/24 2a01:4f8::/32": {"country": {"iso_code": "DE", "names": {"en": "Germany"}}}}


@pytest.fixture
def database(tmp_path):
    """A function that writes a country database with the given networks and records."""
    return lambda records: country_database(tmp_path / "countries.mmdb", records)


ADDRESSES = {
    "/de": "81.2.69.7", "/de-too": "2a01:4f8::7", "/gb": "5.5.5.5", "/unknown": "5.5.6.5",
    "/unknown-too": "2603:1030::7", "/private": "10.0.0.1", "/nobody": "-", "/named": "client.example",
}  # fmt: skip
PEOPLE = "".join(line(path, ip, CHROME) for path, ip in ADDRESSES.items()) + line("/bot", "81.2.69.8")


def test_the_country_of_a_visit_comes_from_its_address(lake, load, database):
    load(PEOPLE, countries=database(DE | {"5.5.5.0/24": {"country": {"iso_code": "GB"}}}))
    known = {"/de": ("DE",), "/de-too": ("DE",), "/gb": ("GB",), "/bot": ("DE",)}
    assert landed(lake, "country") == dict.fromkeys(ADDRESSES, (None,)) | known
    fetch_lists(lake)
    load(line("/outside", "81.2.69.7"), Options("other"), countries=database(DE))
    assert landed(lake, "country", "confidence", organization="other") == {"/outside": ("DE", "contradicted")}


AFTER, NO_COUNTRY = tables(__file__)["countries_after"], tables(__file__)["no_countries_after"]


@pytest.mark.parametrize("head", ["", "a.example:443 "], ids=["combined", "vhost-combined"])
def test_a_country_in_the_log_overrides_the_database(lake, load, database, head):
    rows = {f"/{number}": (after, "FR" if after in AFTER else None) for number, after in enumerate(AFTER + NO_COUNTRY)}
    text = "".join(
        head + line(path, "81.2.69.7", CHROME, after=f" {after}" if after else "") for path, (after, _) in rows.items()
    )
    domain = "a.example" if head else None
    load(text, Options("acme"))
    assert landed(lake, "country", domain=domain) == {path: (country,) for path, (_, country) in rows.items()}
    load(text.replace("/1.1", "/2.0"), Options("other"), "other.log", countries=database(DE))
    told = landed(lake, "country", organization="other", domain=domain)
    assert told == {path: (country or "DE",) for path, (_, country) in rows.items()}


def test_two_letters_in_an_agent_or_referrer_are_not_a_country(lake, load):
    agents = ["DE", r"a \"DE\" b", r"\"DE\""]
    text = "".join(line(f"/{number}", "81.2.69.7", agent) for number, agent in enumerate(agents))
    load(text + line("/referrer", "81.2.69.7", CHROME, referrer="DE"))
    assert set(landed(lake, "country").values()) == {(None,)}


def test_a_country_in_the_log_needs_no_address(lake, load, database):
    load(line("/a", "-", CHROME, after=' "FR"'), countries=database(DE))
    assert landed(lake, "country", "visitor") == {"/a": ("FR", None)}


def test_a_damaged_database_record_does_not_stop_an_import(lake, load, database, tmp_path):
    database({"81.2.69.0/24": {"country": "DE"}, "5.5.5.0/24": {"country": "GB"}})
    path = tmp_path / "countries.mmdb"
    path.write_bytes(path.read_bytes().replace(b"BDE", b"B\xff\xfe"))
    assert load(PEOPLE, countries=CountryDatabase(path)).visits == 9
    told = landed(lake, "country")
    assert (told["/de"], told["/gb"]) == ((None,), ("GB",))


DAY = date(2026, 3, 15)


@pytest.mark.parametrize(
    ("address", "spellings"),
    [
        ("203.0.113.7", ["203.0.113.7", "::ffff:203.0.113.7", "::FFFF:CB00:7107"]),
        ("2001:db8::1", ["2001:db8::1", "2001:DB8::1", "2001:0db8:0:0::0001"]),
    ],
)
def test_all_spellings_of_an_address_give_the_same_visitor(lake, tmp_path, address, spellings):
    log = tmp_path / "access.log"
    log.write_text("".join(line(f"/{number}", one) for number, one in enumerate(spellings)))
    Importer(lake).run(log, Options("acme"))
    reported = [
        json.dumps({"time": f"{DAY}T10:05:03Z", "path": "/", "ip": one, "user_agent": GPTBOT}) for one in spellings
    ]
    LiveIngest(lake).land([Submission("acme", [row.encode() for row in reported])])
    flush_all(lake)
    (salt,) = daily_salts(lake.salts, [DAY], datetime.now(UTC)).values()
    visitors = [visit["visitor"] for visit in rows_of(lake)]
    assert visitors == [visitor_hash(salt, "acme", address, GPTBOT)] * 2 * len(spellings)


# Behind a proxy


def test_the_nginx_main_format_behind_a_proxy_names_the_clients(lake, load):
    fetch_lists(lake)
    addresses = ["5.5.5.5", "20.42.10.7", "198.51.100.7, 20.42.10.8"]
    load("".join(line(f"/{number}", "10.0.0.1", after=f' "{chain}"') for number, chain in enumerate(addresses)))
    assert landed(lake, "confidence") == {"/0": ("contradicted",), "/1": ("verified",), "/2": ("verified",)}
    assert len(set(visitors(lake).values())) == 3


@needs_driven
@pytest.mark.parametrize("name", ["norealip_rich.log", "edge_rich.log", "edge_combined.log"])
def test_a_driven_log_behind_a_proxy_has_six_clients(lake, name):
    importer = Importer(lake, proxies=[ip_network("127.10.4.8/32")])  # its proxy's network; its clients are local, too
    importer.run(DRIVEN / name, Options("acme", "edge.acme.example"))
    assert len({visit["visitor"] for visit in rows_of(lake, "acme")}) == 6


def test_visits_mostly_from_one_private_address_count_as_proxied(lake, load):
    text = "".join(line(f"/{number}", "10.0.0.1" if number else "5.5.5.5") for number in range(20))
    assert load(text).behind_proxy == 19


@pytest.mark.parametrize("address", ["5.5.5.5", "10.0.0.{number}"])
def test_client_addresses_are_not_mistaken_for_a_proxy(lake, load, address):
    text = "".join(line(f"/{number}", address.format(number=number)) for number in range(20))
    assert load(text).behind_proxy == 0
