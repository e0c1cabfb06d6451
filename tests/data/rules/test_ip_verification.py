"""Verdicts on an agent by its address: inside the operator's networks, outside, or inconclusive."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.rules.bots import HUMAN_CLASSIFICATION, bot_classification
from data.rules.ip_lists import FetchedList, Networks
from data.rules.ip_verification import IpVerdict, Verifier, identified_agent
from data.rules.lake_tables import LakeTables
from data.rules.tables import Agent, IpList, OwnAgent, Proxy, load
from data.visits import Classification
from tests.support.tables import examples_at_once, tables

DAY = date(2026, 3, 15)
FETCHED = datetime(2026, 3, 15, 23, 59, 59, tzinfo=UTC)
HOME = [ip_network("20.42.10.0/24"), ip_network("2603:1030::/48")]
ANNEX = [ip_network("20.42.20.0/24")]


def row(agent, *ways, server_side=False):
    return OwnAgent(
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
def verifier():
    """Make a verifier with these lists and AGENTS."""

    def verifier(proxies=(), fetched=FETCHED, **networks):
        times = fetched if isinstance(fetched, dict) else dict.fromkeys(networks, fetched)
        lists = {name: FetchedList(name, times[name], found) for name, found in networks.items()}
        return Verifier(lists, proxies, LakeTables(tuple(AGENTS)))

    return verifier


def networks_near(kind, bits):
    """Return networks of all sizes, close enough to touch, nest and repeat."""
    numbers = st.integers(0, 2**bits - 1) | st.integers(0, 63).map(lambda n: (20 << bits - 8) + (n << bits - 30))
    return st.builds(lambda number, length: kind((number, length), strict=False), numbers, st.integers(0, bits))


SETS = st.lists(networks_near(IPv4Network, 32) | networks_near(IPv6Network, 128), max_size=12)


@given(networks=SETS, numbers=st.lists(st.integers(0, 2**128 - 1), max_size=4))
@settings(max_examples=100)
def test_an_address_is_in_a_set_if_any_network_contains_it(networks, numbers):
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


# Verdicts

OLD = "outside {}, but its IP lists are incomplete or too old to tell"
ONLY = "outside {}, and the agent uses no other addresses"
INSIDE = IpVerdict(True, "inside home of 2026-03-15")


@examples_at_once("lists", "agents", "addresses", "inside", "reason")
def test_an_address_is_inside_outside_or_inconclusive(verifier, lists, agents, addresses, inside, reason):
    """An IPv4 address may be written as IPv6."""
    asked = verifier(**{name: {"home": HOME, "annex": ANNEX}[name] for name in lists.split()})
    for agent in agents:
        for address in addresses:
            assert asked.verdict(agent, address, DAY) == (inside, reason), (agent, address)


@pytest.mark.parametrize("hour", [0, 23])
def test_a_list_contradicts_an_agent_only_within_thirty_days(verifier, hour):
    """The hour of the download is ignored."""
    asked = verifier(home=HOME, fetched=FETCHED.replace(hour=hour))
    for days in (-10_000, -31, -30, -29, -1, 0, 1, 29, 30, 31, 10_000):
        day = DAY + timedelta(days)
        assert asked.verdict("Served", "20.42.10.7", day) == INSIDE
        expected = (False, ONLY.format("home")) if -30 <= days <= 30 else (None, OLD.format("home"))
        assert asked.verdict("Served", "5.5.5.5", day) == expected, days
    both = verifier(home=HOME, annex=ANNEX, fetched={"home": FETCHED, "annex": FETCHED - timedelta(31)})
    assert both.verdict("Spread", "5.5.5.5", DAY).inside is None
    assert both.verdict("Spread", "20.42.20.7", DAY) == (True, "inside annex of 2026-02-12")


# Addresses that are not a client's

PRIVATE, NO_ADDRESSES = tables(__file__)["private"], tables(__file__)["no_addresses"]


def test_private_and_invalid_addresses_prove_nothing(verifier):
    asked = verifier(home=[*HOME, ip_network("10.0.0.0/8"), ip_network("fe80::/64")])
    reasons = {address: f"{address} is not a public IP address" for address in PRIVATE}
    reasons |= {address: f"{address!r} is not a valid IP address" for address in NO_ADDRESSES}
    for agent in ("Served", "Spread", "Roaming"):
        told = {address: asked.verdict(agent, address, DAY) for address in reasons}
        assert told == {address: (None, reason) for address, reason in reasons.items()}


def test_addresses_of_proxies_prove_nothing(verifier):
    known = [ip_network(proxy.network) for proxy in load(Proxy, "proxies")]
    own = [ip_network(network) for network in ("5.5.5.0/24", "20.42.10.128/25", "2a01:4f8::/32")]
    addresses = [str(address) for network in known for address in (network[0], network[-1])]
    asked = verifier(own, home=[*known, *HOME])
    for address in (*addresses, "5.5.5.5", "20.42.10.200", "2a01:4f8::1"):
        assert asked.verdict("Served", address, DAY) == (None, f"{address} belongs to a proxy")
    for spelling in ("::ffff:5.5.5.5", "5.5.5.5:443", "[::ffff:5.5.5.5]:443"):
        assert asked.verdict("Served", spelling, DAY) == (None, "5.5.5.5 belongs to a proxy")
    assert asked.verdict("Served", "20.42.10.127", DAY).inside is True
    assert asked.verdict("Served", "5.5.6.5", DAY).inside is False


# Effect on a classification

CRAWLER = bot_classification("training", "Served", "high", method="user_agent", operator="OpenAI", ai_source="ChatGPT")
CONTRADICTED = bot_classification("other", "Served", "contradicted", method="ip_range")
LIBRARY = bot_classification("library")


def test_an_agent_within_its_networks_is_verified(verifier):
    told = verifier(home=HOME).verify(CRAWLER, "20.42.10.7", DAY)
    assert told == CRAWLER._replace(confidence="verified", detection_method="ip_range")


def test_an_agent_outside_its_networks_is_contradicted(verifier):
    assert verifier(home=HOME).verify(CRAWLER, "5.5.5.5", DAY) == CONTRADICTED
    assert CONTRADICTED == ("other_bot", "other", None, "Served", None, "contradicted", "ip_range", "bot", None, None)


@pytest.mark.parametrize("address", ["-", "10.0.0.1", "104.16.0.1"])
def test_an_inconclusive_address_leaves_an_agent_unchanged(verifier, address):
    assert verifier(home=HOME).verify(CRAWLER, address, DAY) == CRAWLER


@pytest.mark.parametrize(
    "says", [HUMAN_CLASSIFICATION, CRAWLER._replace(agent="Unknown"), CRAWLER._replace(agent="Named"), LIBRARY]
)
def test_people_and_agents_without_lists_are_unchanged(verifier, says):
    asked = verifier(home=HOME)
    for address in ("20.42.10.7", "5.5.5.5"):
        assert asked.verify(says, address, DAY) == says


@pytest.mark.parametrize(("lists", "agents"), [
    ({}, []),
    ({"other": HOME}, []),
    ({"annex": ANNEX}, ["Spread", "Roaming twice"]),
    ({"home": HOME}, ["Served", "Spread", "Roaming", "Roaming twice"]),
], ids=["none", "another", "annex", "home"])  # fmt: skip
def test_only_agents_with_a_fetched_list_can_be_verified(verifier, lists, agents):
    asked = verifier(**lists)
    assert [row.agent for row in AGENTS if asked.can_verify(CRAWLER._replace(agent=row.agent))] == agents


def test_people_cannot_be_verified_by_crawlers_lists(verifier):
    assert not verifier(home=HOME).can_verify(HUMAN_CLASSIFICATION)


@pytest.mark.parametrize(("agent", "methods"), [
    ("Served", ("ip:home", "dns:bot.example")),
    ("Named", ("dns:bot.example", "signature:agent.example")),
    ("Unknown", ()),
    ("Nobody's", ()),
    (None, ()),
])  # fmt: skip
def test_an_agent_can_be_verified_as_its_row_declares(verifier, agent, methods):
    assert verifier(home=HOME).verification_methods(agent) == methods


# Agents with a browser's user agent

AT_HOME = bot_classification(
    "assistant_fetch", "ChatGPT-User", "medium", method="ip_range", operator="OpenAI", ai_source="ChatGPT"
)
REFERRED = Classification("ai_referral", "referral", "Claude", *[None] * 4, "mobile", "iOS", "Mobile Safari")


def test_a_browser_at_an_agents_addresses_is_that_agent():
    def shipped(fetched=FETCHED, proxies=()):
        """Return a verifier with the shipped tables: ChatGPT-User comes from HOME."""
        return Verifier({"openai-chatgpt-user": FetchedList("openai-chatgpt-user", fetched, HOME)}, proxies)

    for person in (HUMAN_CLASSIFICATION, REFERRED):
        assert shipped().can_verify(person)
        for address in ("20.42.10.0", "20.42.10.255", "::ffff:20.42.10.7", "2603:1030::1"):
            assert shipped().verify(person, address, DAY) == AT_HOME
        for address in ("20.42.11.0", "5.5.5.5", "10.0.0.1", "-", "", "nonsense"):
            assert shipped().verify(person, address, DAY) == person
        of_other_days = [shipped(FETCHED + timedelta(days)) for days in (-31, 31)]
        for asked in (*of_other_days, shipped(proxies=HOME)):
            assert asked.verify(person, "20.42.10.7", DAY) == person
    assert shipped().verify(LIBRARY, "20.42.10.7", DAY) == LIBRARY


# The shipped tables


def test_only_agents_for_assistants_have_identifying_lists():
    agents = load(Agent, "agents")
    identified = [identified_agent(row.name, agents) for row in load(IpList, "ip_lists") if row.identifies]
    assert {agent.agent for agent in identified} == {
        "ChatGPT-User", "Perplexity-User", "Google-Agent", "MistralAI-User", "Kimi-User", "DuckAssistBot",
    }  # fmt: skip
    assert {agent.agent_kind for agent in identified} == {"assistant_fetch", "agentic_browser"}


IP_LISTS = load(IpList, "ip_lists")


def test_list_names_are_unique():
    assert [name for name, count in Counter(row.name for row in IP_LISTS).items() if count > 1] == []


def test_list_names_are_valid_file_names():
    names = [row.name for row in IP_LISTS]
    assert [name for name in names if not name.replace("-", "").isalnum() or not name.islower()] == []


def test_every_list_is_fetched_over_https():
    assert [row.url for row in IP_LISTS if not row.url.startswith("https://")] == []


def test_every_list_except_hosting_belongs_to_an_agent():
    named = {way.removeprefix("ip:") for row in load(Agent, "agents") for way in row.verify if way.startswith("ip:")}
    assert named == {row.name for row in IP_LISTS if not row.hosting}


def test_rows_of_one_agent_agree_on_its_verification():
    told = {}
    for row in load(Agent, "agents"):
        told.setdefault(row.agent, set()).add((row.verify, row.server_side))
    assert {agent: ways for agent, ways in told.items() if len(ways) > 1} == {}
    from_servers = {agent: verify for agent, ways in told.items() for verify, server_side in ways if server_side}
    assert len(from_servers) >= 5
    assert [agent for agent, ways in from_servers.items() if not any(way.startswith("ip:") for way in ways)] == []


def test_proxies_are_public_networks_that_do_not_overlap():
    networks = sorted((ip_network(row.network) for row in load(Proxy, "proxies")), key=lambda n: (n.version, n))
    assert [str(network) for network in networks if not network.is_global] == []
    pairs = pairwise(networks)
    assert [(one, two) for one, two in pairs if one.version == two.version and one.overlaps(two)] == []


def test_the_shipped_agents_with_ip_lists_can_be_verified():
    lists = {row.name: FetchedList(row.name, FETCHED, HOME) for row in load(IpList, "ip_lists")}
    asked = Verifier(lists)
    rows = [row for row in load(Agent, "agents") if any(way.startswith("ip:") for way in row.verify)]
    for row in rows:
        assert asked.verdict(row.agent, "20.42.10.7", DAY).inside is True, row
        assert asked.verdict(row.agent, "5.5.5.5", DAY).inside is (False if row.server_side else None), row
    assert {"GPTBot", "Googlebot", "ClaudeBot"} <= {row.agent for row in rows}
