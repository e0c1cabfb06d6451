"""What an address says of an agent's claim: from its operator's networks, from elsewhere, or nothing at all."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.rules.bots import HUMAN_CLASSIFICATION, bot_classification
from data.rules.ip_lists import Snapshot
from data.rules.ip_verification import IpVerdict, Networks, Verifier, identified_agent
from data.rules.tables import Agent, IpList, Proxy, load
from data.visits import Classification

DAY = date(2026, 3, 15)
FETCHED = datetime(2026, 3, 15, 23, 59, 59, tzinfo=UTC)
HOME = [ip_network("20.42.10.0/24"), ip_network("2603:1030::/48")]
ANNEX = [ip_network("20.42.20.0/24")]
NO_LIST = IpVerdict(None, "its operator does not publish its IP addresses")
NOT_HERE = IpVerdict(None, "its IP lists have not been downloaded; run `traffic agents refresh`")


def row(agent, *ways, server_side=False):
    return Agent(
        agent, agent, "OpenAI", "training", "high", agent, "ChatGPT", verify=ways, server_side=server_side,
        evidence="https://docs.example/", checked=DAY,
    )  # fmt: skip


AGENTS = [
    row("Served", "ip:home", "dns:bot.example", server_side=True),
    row("Spread", "ip:home", "ip:annex", server_side=True),
    row("Roaming", "ip:home", "signature:agent.example"),
    row("Roaming twice", "ip:home", "ip:annex"),
    row("Named", "dns:bot.example", "signature:agent.example", server_side=True),
    row("Unknown"),
]


@pytest.fixture
def verifier(monkeypatch):
    """Makes a verifier of AGENTS and the shipped proxies over the lists that are here."""
    monkeypatch.setattr(
        "data.rules.ip_verification.load", lambda kind, name: AGENTS if kind is Agent else load(kind, name)
    )

    def verifier(proxies=(), fetched=FETCHED, **networks):
        times = fetched if isinstance(fetched, dict) else dict.fromkeys(networks, fetched)
        return Verifier({name: Snapshot(name, times[name], found) for name, found in networks.items()}, proxies)

    return verifier


# Sets of networks


def networks_near(kind, bits):
    """Networks of all sizes, close enough to each other that they touch, nest and repeat."""
    numbers = st.integers(0, 2**bits - 1) | st.integers(0, 63).map(lambda n: (20 << bits - 8) + (n << bits - 30))
    return st.builds(lambda number, length: kind((number, length), strict=False), numbers, st.integers(0, bits))


SETS = st.lists(networks_near(IPv4Network, 32) | networks_near(IPv6Network, 128), max_size=12)


@given(networks=SETS, numbers=st.lists(st.integers(0, 2**128 - 1), max_size=4))
@settings(deadline=None, max_examples=300)
def test_an_address_is_in_a_set_where_it_is_in_any_of_its_networks(networks, numbers):
    asked = {*numbers, 0, 2**32 - 1, 2**128 - 1}
    for network in networks:
        first, last = int(network.network_address), int(network.broadcast_address)
        asked |= {first - 1, first, last, last + 1, (first + last) // 2}
    addresses = [IPv4Address(number) for number in asked if 0 <= number < 2**32]
    addresses += [IPv6Address(number) for number in asked if 0 <= number < 2**128]
    known = Networks(networks)
    assert [address in known for address in addresses] == [
        any(address in network for network in networks) for address in addresses
    ]


def test_nothing_is_in_an_empty_set():
    assert ip_address("20.42.10.1") not in Networks([])


# Verdicts


@pytest.mark.parametrize("agent", ["Served", "Spread", "Roaming", "Roaming twice"])
@pytest.mark.parametrize("address", ["20.42.10.0", "20.42.10.255", "2603:1030::", "2603:1030:0:ffff::1"])
def test_an_address_of_its_list_is_inside(verifier, agent, address):
    told = verifier(home=HOME, annex=ANNEX).verdict(agent, address, DAY)
    assert told == (True, "inside home of 2026-03-15")


def test_an_address_of_any_of_its_lists_is_inside(verifier):
    asked = verifier(home=HOME, annex=ANNEX)
    assert asked.verdict("Spread", "20.42.20.7", DAY) == (True, "inside annex of 2026-03-15")
    assert asked.verdict("Served", "20.42.20.7", DAY) == (False, "outside home, and it comes from no other addresses")


@pytest.mark.parametrize("address", ["20.42.9.255", "20.42.11.0", "5.5.5.5", "2603:1030:1::", "2a01:4f8::1"])
def test_an_address_outside_the_list_of_an_agent_that_comes_from_there_only_is_outside(verifier, address):
    asked = verifier(home=HOME, annex=ANNEX)
    assert asked.verdict("Served", address, DAY) == (False, "outside home, and it comes from no other addresses")
    assert asked.verdict("Spread", address, DAY) == (
        False,
        "outside home and annex, and it comes from no other addresses",
    )


@pytest.mark.parametrize("agent", ["Roaming", "Roaming twice"])
def test_an_agent_that_may_come_from_elsewhere_is_never_outside(verifier, agent):
    told = verifier(home=HOME, annex=ANNEX).verdict(agent, "5.5.5.5", DAY)
    lists = "home" if agent == "Roaming" else "home and annex"
    assert told == (None, f"outside {lists}, but it may also come from other addresses")


@pytest.mark.parametrize("days", [-10_000, -31, 31, 10_000])
def test_a_list_of_other_days_contradicts_nobody(verifier, days):
    asked = verifier(home=HOME)
    told = asked.verdict("Served", "5.5.5.5", DAY + timedelta(days))
    assert told == (None, "outside home, but its IP lists are incomplete or too old to tell")


@pytest.mark.parametrize("days", [-30, -29, -1, 0, 1, 29, 30])
def test_a_list_of_thirty_days_before_or_after_contradicts(verifier, days):
    assert verifier(home=HOME).verdict("Served", "5.5.5.5", DAY + timedelta(days)).inside is False


@pytest.mark.parametrize("hour", [0, 23])
def test_the_hour_at_which_a_list_was_fetched_does_not_count(verifier, hour):
    asked = verifier(home=HOME, fetched=FETCHED.replace(hour=hour))
    told = [asked.verdict("Served", "5.5.5.5", DAY + timedelta(days)).inside for days in (-31, -30, 30, 31)]
    assert told == [None, False, False, None]


@pytest.mark.parametrize("days", [-10_000, -31, 31, 10_000])
def test_a_list_of_other_days_still_verifies(verifier, days):
    told = verifier(home=HOME).verdict("Served", "20.42.10.7", DAY + timedelta(days))
    assert told == (True, "inside home of 2026-03-15")


def test_one_of_several_lists_that_is_of_other_days_contradicts_nobody(verifier):
    asked = verifier(home=HOME, annex=ANNEX, fetched={"home": FETCHED, "annex": FETCHED - timedelta(31)})
    assert asked.verdict("Spread", "5.5.5.5", DAY).inside is None
    assert asked.verdict("Spread", "20.42.20.7", DAY) == (True, "inside annex of 2026-02-12")


def test_without_any_of_its_lists_nothing_can_be_told(verifier):
    for asked in (verifier(), verifier(annex=ANNEX)):
        assert asked.verdict("Served", "20.42.10.7", DAY) == NOT_HERE
        assert asked.verdict("Served", "5.5.5.5", DAY) == NOT_HERE


def test_without_one_of_its_lists_an_agent_may_be_inside_but_not_outside(verifier):
    asked = verifier(home=HOME)
    assert asked.verdict("Spread", "20.42.10.7", DAY) == (True, "inside home of 2026-03-15")
    assert asked.verdict("Spread", "20.42.20.7", DAY) == (
        None,
        "outside home, but its IP lists are incomplete or too old to tell",
    )


@pytest.mark.parametrize("agent", ["Named", "Unknown", "Nobody's", "", None])
def test_of_an_agent_without_lists_nothing_can_be_told(verifier, agent):
    assert verifier(home=HOME, annex=ANNEX).verdict(agent, "20.42.10.7", DAY) == NO_LIST


# Addresses that are no client's

PRIVATE = ["10.0.0.1", "172.16.0.1", "192.168.1.1", "127.0.0.1", "169.254.7.7", "100.64.0.1", "0.0.0.0", "192.0.2.1"]
PRIVATE += ["255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1", "2001:db8::1"]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_of_the_open_internet_tells_nothing(verifier, address):
    asked = verifier(home=[*HOME, ip_network("10.0.0.0/8"), ip_network("fe80::/64")])
    for agent in ("Served", "Spread", "Roaming"):
        assert asked.verdict(agent, address, DAY) == (None, f"{address} is not a public IP address")


@pytest.mark.parametrize("address", ["", "-"])
def test_no_address_tells_nothing(verifier, address):
    assert verifier(home=HOME).verdict("Served", address, DAY) == (None, "no IP address was given")


NO_ADDRESSES = ["crawl.bot.example", "unknown", "20.42.10", "20.42.10.256", "020.042.010.007", "20.42.10.7:443", "::g"]
NO_ADDRESSES += ["[2603:1030::1]", "20.42.10.7, 5.5.5.5", "20.42.10.7/32", " 20.42.10.7", "20.42.10.7\n", "346688007"]
NO_ADDRESSES += ["é", "\ud800", "٣.1.1.1"]


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_what_is_not_an_address_tells_nothing(verifier, address):
    assert verifier(home=HOME).verdict("Served", address, DAY) == (None, f"{address!r} is not a valid IP address")


def test_an_ipv4_address_written_as_ipv6_is_the_ipv4_address(verifier):
    asked = verifier(home=HOME)
    assert asked.verdict("Served", "::ffff:20.42.10.7", DAY).inside is True
    assert asked.verdict("Served", "::FFFF:142A:A07", DAY).inside is True
    assert asked.verdict("Served", "::ffff:5.5.5.5", DAY).inside is False
    assert asked.verdict("Served", "::ffff:10.0.0.1", DAY) == (None, "10.0.0.1 is not a public IP address")
    assert asked.verdict("Served", "::ffff:104.16.0.1", DAY) == (None, "104.16.0.1 belongs to a proxy")


def test_the_first_and_last_address_of_every_known_proxy_tells_nothing(verifier):
    networks = [ip_network(proxy.network) for proxy in load(Proxy, "proxies")]
    asked = verifier(home=networks)
    for address in (address for network in networks for address in (network[0], network[-1])):
        assert asked.verdict("Served", str(address), DAY) == (None, f"{address} belongs to a proxy")


def test_an_address_of_a_proxy_of_the_operators_own_tells_nothing(verifier):
    asked = verifier([ip_network("5.5.5.0/24"), ip_network("20.42.10.128/25"), ip_network("2a01:4f8::/32")], home=HOME)
    for address in ("5.5.5.5", "20.42.10.200", "2a01:4f8::1", "::ffff:5.5.5.5"):
        assert asked.verdict("Served", address, DAY).inside is None
        assert asked.verdict("Served", address, DAY).reason.endswith(" belongs to a proxy")
    assert asked.verdict("Served", "20.42.10.127", DAY).inside is True
    assert asked.verdict("Served", "5.5.6.5", DAY).inside is False
    assert asked.verdict("Served", "104.16.0.1", DAY).reason == "104.16.0.1 belongs to a proxy"


# What follows for a classification

CRAWLER = bot_classification("training", "Served", "high", method="user_agent", operator="OpenAI", ai_source="ChatGPT")


def test_inside_the_classification_is_verified_by_its_address(verifier):
    told = verifier(home=HOME).verify(CRAWLER, "20.42.10.7", DAY)
    assert told == CRAWLER._replace(confidence="verified", detection_method="ip_range")


def test_outside_only_the_claim_is_kept(verifier):
    told = verifier(home=HOME).verify(CRAWLER, "5.5.5.5", DAY)
    assert told._asdict() == {
        "bot_category": "other_bot",
        "agent_kind": "other",
        "ai_source": None,
        "agent": "Served",
        "operator": None,
        "confidence": "contradicted",
        "detection_method": "ip_range",
        "device_type": "bot",
        "operating_system": None,
        "browser": None,
    }


@pytest.mark.parametrize("address", ["-", "10.0.0.1", "104.16.0.1"])
def test_where_nothing_can_be_told_the_classification_stays(verifier, address):
    assert verifier(home=HOME).verify(CRAWLER, address, DAY) == CRAWLER


def test_people_and_agents_without_lists_stay_who_they_are(verifier):
    asked = verifier(home=HOME)
    for says in (
        HUMAN_CLASSIFICATION,
        CRAWLER._replace(agent="Unknown"),
        CRAWLER._replace(agent="Named"),
        bot_classification("library"),
    ):
        for address in ("20.42.10.7", "5.5.5.5"):
            assert asked.verify(says, address, DAY) == says


def test_addresses_matter_exactly_for_agents_of_which_a_list_is_here(verifier):
    def telling(**networks):
        asked = verifier(**networks)
        return [row.agent for row in AGENTS if asked.can_verify(CRAWLER._replace(agent=row.agent))]

    assert telling() == telling(other=HOME) == []
    assert telling(annex=ANNEX) == ["Spread", "Roaming twice"]
    assert telling(home=HOME) == ["Served", "Spread", "Roaming", "Roaming twice"]
    assert not verifier(home=HOME).can_verify(HUMAN_CLASSIFICATION)


def test_every_way_to_verify_an_agent_is_told(verifier):
    asked = verifier()
    assert asked.verification_methods("Served") == ("ip:home", "dns:bot.example")
    assert asked.verification_methods("Named") == ("dns:bot.example", "signature:agent.example")
    assert [asked.verification_methods(agent) for agent in ("Unknown", "Nobody's", None)] == [(), (), ()]


# Agents behind a browser's name


@pytest.fixture
def shipped():
    """A verifier of the shipped tables: ChatGPT-User comes from HOME."""
    return lambda fetched=FETCHED: Verifier({"openai-chatgpt-user": Snapshot("openai-chatgpt-user", fetched, HOME)})


AT_HOME = bot_classification(
    "assistant_fetch", "ChatGPT-User", "medium", method="ip_range", operator="OpenAI", ai_source="ChatGPT"
)
REFERRED = Classification("ai_referral", "referral", "Claude", *[None] * 4, "mobile", "iOS", "Mobile Safari")


@pytest.mark.parametrize("person", [HUMAN_CLASSIFICATION, REFERRED])
@pytest.mark.parametrize("address", ["20.42.10.0", "20.42.10.255", "::ffff:20.42.10.7", "2603:1030::1"])
def test_a_browsers_name_from_the_addresses_of_an_agent_is_that_agent(shipped, person, address):
    assert shipped().can_verify(person)
    assert shipped().verify(person, address, DAY) == AT_HOME


@pytest.mark.parametrize("address", ["20.42.11.0", "5.5.5.5", "10.0.0.1", "-", "", "nonsense"])
def test_a_browsers_name_from_elsewhere_stays_a_persons(shipped, address):
    assert shipped().verify(HUMAN_CLASSIFICATION, address, DAY) == HUMAN_CLASSIFICATION


@pytest.mark.parametrize("days", [-31, 31])
def test_a_list_of_other_days_shows_nobody_behind_a_browsers_name(shipped, days):
    old = shipped(FETCHED + timedelta(days=days))
    assert old.verify(HUMAN_CLASSIFICATION, "20.42.10.7", DAY) == HUMAN_CLASSIFICATION


def test_an_address_of_a_proxy_shows_nobody_behind_a_browsers_name():
    lists = {"openai-chatgpt-user": Snapshot("openai-chatgpt-user", FETCHED, HOME)}
    assert Verifier(lists, HOME).verify(HUMAN_CLASSIFICATION, "20.42.10.7", DAY) == HUMAN_CLASSIFICATION


def test_a_bot_without_a_name_is_not_a_person_in_disguise(shipped):
    assert shipped().verify(bot_classification("library"), "20.42.10.7", DAY) == bot_classification("library")


# The tables that are shipped


def test_every_list_that_identifies_is_documented_for_an_agent_of_an_assistant():
    identified = [
        identified_agent(row.name, load(Agent, "agents")) for row in load(IpList, "ip_lists") if row.identifies
    ]
    assert {agent.agent for agent in identified} == {
        "ChatGPT-User", "Perplexity-User", "Google-Agent", "MistralAI-User", "Kimi-User", "DuckAssistBot",
    }  # fmt: skip
    assert {agent.agent_kind for agent in identified} == {"assistant_fetch", "agentic_browser"}


def test_every_list_that_an_agent_names_is_known_and_every_list_is_named():
    named = {way.removeprefix("ip:") for row in load(Agent, "agents") for way in row.verify if way.startswith("ip:")}
    assert named == {row.name for row in load(IpList, "ip_lists")}


def test_lists_of_addresses_have_names_of_their_own_that_can_name_a_file():
    names = [row.name for row in load(IpList, "ip_lists")]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert [name for name in names if not name.replace("-", "").isalnum() or not name.islower()] == []


def test_every_list_of_addresses_is_in_a_known_form_at_a_safe_address():
    for row in load(IpList, "ip_lists"):
        assert row.format in {"prefixes", "geofeed", "text"} or row.format.startswith("json:"), row
        assert row.url.startswith("https://"), row


def test_an_agent_that_comes_from_its_servers_only_has_a_list_of_them():
    rows = [row for row in load(Agent, "agents") if row.server_side]
    assert len(rows) >= 5
    assert [row.agent for row in rows if not any(way.startswith("ip:") for way in row.verify)] == []


def test_rows_of_one_agent_agree_on_how_it_is_verified():
    told = {}
    for row in load(Agent, "agents"):
        told.setdefault(row.agent, set()).add((row.verify, row.server_side))
    assert {agent: ways for agent, ways in told.items() if len(ways) > 1} == {}


def test_proxies_are_networks_of_the_open_internet_that_do_not_overlap():
    networks = sorted((ip_network(row.network) for row in load(Proxy, "proxies")), key=lambda n: (n.version, n))
    assert [str(network) for network in networks if not network.is_global] == []
    pairs = pairwise(networks)
    assert [(one, two) for one, two in pairs if one.version == two.version and one.overlaps(two)] == []


def test_the_shipped_agents_can_be_verified():
    lists = {row.name: Snapshot(row.name, FETCHED, HOME) for row in load(IpList, "ip_lists")}
    asked = Verifier(lists)
    rows = [row for row in load(Agent, "agents") if any(way.startswith("ip:") for way in row.verify)]
    for row in rows:
        assert asked.verdict(row.agent, "20.42.10.7", DAY).inside is True, row
        assert asked.verdict(row.agent, "5.5.5.5", DAY).inside is (False if row.server_side else None), row
    assert {"GPTBot", "Googlebot", "ClaudeBot"} <= {row.agent for row in rows}
