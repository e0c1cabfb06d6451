"""Every answer from randomly generated visits, compared with a recount by hand.

Six cases are tried; with `TRAFFIC_FAULTS=10`, ten times as many, and with `TRAFFIC_FAULTS=all`, 200.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from functools import cache
from itertools import count, product
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import BOT_CATEGORIES, Lake
from data.links.index import LinkIndex
from data.visits import CONFIDENCE_SCORES, DEVICE_TYPES, REFERRER_TYPES, VISITS
from queries import ENTRIES, RollupBuilder, Scope, TrafficValue, Warehouse
from queries.rollups import Month
from tests.faults.trials import tried
from tests.recount import BITS, GROUPS, WORDS, recount, word
from tests.support.visits import Visit, land, links, visit

VALUES = [TrafficValue(name, number * 12_345, "EUR") for number, name in enumerate(BOT_CATEGORIES)]
COUNTRIES = {"DE": "Germany", "BR": "Brazil", "CI": "Côte d'Ivoire"}
DAYS = [date(2023, 12, 25) + timedelta(number) for number in range(14)]
DAYS += [date(2024, 2, 25) + timedelta(number) for number in range(9)]
MOMENTS = [time(0), time(0, 0, 0, 1), time(9, 59, 59, 999_999), time(10), time(23, 59, 59, 999_999)]
CODES = ["sale", "Sale", "SALE", "größe", "a'b", 'a"b', "", "7"]
DOMAINS = ["go.example", "go.example.org", "bücher.example", "", "'; --"]
PATHS = [
    "",
    "/",
    "/sale",
    "/Sale",
    "/%2e%2e",
    "/größe",
    "/.env",
    "/'\"\\",
    "/a.md",
    "/A.MD",
    "/llms.txt",
    "/en/LLMS-full.txt",
]
OPERATORS = {
    "ChatGPT": "OpenAI",
    "Claude": "Anthropic",
    "Claude Code": "Anthropic",
    "": "",
    "Ünï'x\"": None,
    None: None,
}
TARGETS = ["https://shop.example/", "https://shop.example/a'b", "https://shop.example/ü", "HTTPS://SHOP.EXAMPLE/"]

words = st.one_of(
    st.sampled_from(["", "a", "A", "'", '"', "a'b", "NULL", "Zürich", "zurich", "日本", "\U0001f916", "%", "_", "\\"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3),
)
maybe_words = st.none() | words
any_day = st.sampled_from([*DAYS, date(2024, 1, 20)])  # the last of them between the two periods
operated = st.sampled_from(list(OPERATORS.items()))


def one_of(*values: object) -> st.SearchStrategy:
    return st.sampled_from(values)


def moments() -> st.SearchStrategy[datetime]:
    times = st.times().map(lambda moment: moment.replace(fold=0))
    return st.builds(datetime.combine, st.sampled_from(DAYS), st.sampled_from(MOMENTS) | times)


targets = one_of(None, *TARGETS)
ERRORS = (400, 404, 499, 500, 503, 599, 600, 999)
APPS = ("android-app://com.google.android.gm", "t.co", "not.co", "gemini.google.com")
OPERATED = ("ai_source", "operator")
ASIDE = (BITS["file"], BITS["file"] | 2, BITS["own_address"], BITS["own_rule"] | BITS["file"])
BITS_OF_DAYS = (1 << 30, 1 << 30 | 2, 1 << 33, 1 << 33 | 2)
COLUMNS = {
    **{field.name: maybe_words for field in VISITS if field.type == "string" and field.name not in OPERATED},
    "visited_at": moments(),
    "domain": one_of(None, *DOMAINS),
    "short_code": one_of(None, *CODES),
    "path": one_of(None, *PATHS),
    "method": one_of("GET", "HEAD", None),
    "status": one_of(None, 100, 200, 302, 399, *ERRORS),
    "bot_category": one_of(*BOT_CATEGORIES),
    "agent_kind": one_of(None, "search", "training", "ai_search_index", "other"),
    "agent": one_of(None, "GPTBot", "gptbot", "Gemini", "curl", "", "Ünï'x\""),
    "confidence": one_of(None, *CONFIDENCE_SCORES),
    "detection_method": one_of(None, "ip_range", "user_agent"),
    "device_type": one_of(None, *DEVICE_TYPES),
    "operating_system": maybe_words,
    "browser": one_of(None, "Firefox", "firefox", "Chrome", ""),
    "country": one_of(None, *COUNTRIES, "QQ", ""),
    "referrer": one_of(None, "google.example", "www.google.co.uk", "l.facebook.com", "", "Bücher.example", *APPS),
    "referrer_type": one_of(None, *REFERRER_TYPES),
    "utm_source": one_of(None, None, "mail", "Mail", "", "chatgpt.com"),
    "utm_medium": one_of(None, None, "cpc", ""),
    "utm_campaign": maybe_words,
    "utm_term": one_of(None, None, "t"),
    "utm_content": one_of(None, None, ""),
    "visitor": one_of(None, 0, 1, 2**63 - 1, -(2**63), -1),
    "is_malicious": st.booleans(),
    "bytes_sent": one_of(None, 0, 1, 1 << 40),
    "utc_offset": one_of(None, 0, -720, -210, 345, 840),
    "signals": one_of(None, 0, 1, 2, 4, 8, 16, 17, 32, 63, 256, 1 << 18, 1 << 21, 257 | 1024, *BITS_OF_DAYS, *ASIDE),
}
FILES = ("counted", "aside", "switched")
"""When files are set aside: never, always, or only at the end."""
CREATED = [datetime(2024, 1, 1), datetime(2024, 1, 1, 12, 30, 0, 500_000), datetime(2025, 7, 1)]
LISTINGS = {
    "search": one_of(None, "", "SA", "größe", "go.example", "shop", "a'b", "MAIL", "nowhere"),
    "unvisited": one_of(None, False, True),
    "sorted_by": one_of(
        None, *(field.name for field in ENTRIES["all-links"].fields if field.name not in {"tags", "links_found"})
    ),
    "ascending": one_of(None, False, True),
    "skipped": one_of(None, 0, 1, 100),
    "shown": one_of(None, 1, 1_000),
}
TAGS = ("mail", "Mail", "a, 'b'")
POOLS = {"visited_at": 14, "bot_category": 7}


class Question(NamedTuple):
    """The visits of one organization and of two others, the first organization's links, and the query."""

    tenants: list[list[Visit]]
    links: list[dict]
    days: list[date]
    filters: dict[str, Any]
    """Fields of a Scope."""
    counted_after: int
    """Number of the two imports that have landed when rollups are built; 3: rollups are never built."""
    files: str
    """One of FILES."""
    tag: str | None


def tenants(draw: st.DrawFn) -> list[list[Visit]]:
    """Generate the visits of three tenants. Each column has few values, so that visits coincide; the dice choose the
    values.

    Some short codes are never answered on some domains.
    """
    pools = {name: draw(st.lists(values, min_size=1, max_size=POOLS.get(name, 3))) for name, values in COLUMNS.items()}
    operators = draw(st.lists(operated, min_size=1, max_size=3))
    places = list(product(pools["short_code"], pools["domain"]))
    missing = draw(st.sets(st.sampled_from(places)))
    dice = Random(draw(st.integers(0, 2**32)))

    def one() -> Visit:
        source, operator = dice.choice(operators)
        columns = {name: dice.choice(pool) for name, pool in pools.items()}
        if (columns["short_code"], columns["domain"]) in missing:
            columns["status"] = dice.choice(ERRORS)
        return visit(**columns, ai_source=source, operator=operator)

    return [[one() for _ in range(size)] for size in (draw(st.integers(0, 60)), 2, 1)]


@st.composite
def questions(draw: st.DrawFn, counted_after: tuple[int, ...] = (3,)) -> Question:
    owned = tenants(draw)
    codes = sorted({row["short_code"] for row in owned[0]} - {None}) or CODES
    domains = sorted({row["domain"] for row in owned[0]} - {None}) or DOMAINS
    filters = {
        "short_code": draw(st.none() | st.none() | st.sampled_from(codes)),
        "domain": draw(st.none() | st.none() | st.sampled_from(domains)),
        "traffic_type": draw(st.none() | one_of("ai", "other", *BOT_CATEGORIES)),
        "traffic_group": draw(st.none() | one_of(*GROUPS)),
    }
    if filters["domain"] is None:
        filters["no_domain"] = draw(st.sampled_from((None, None, None, True)))
    for column in draw(st.just([]) | st.lists(st.sampled_from(WORDS), max_size=2)):
        filters[column] = draw(st.sampled_from([*(word(row, column) for row in owned[0]), "nowhere"]))
    if draw(st.booleans()):
        filters |= {name: draw(values) for name, values in LISTINGS.items()}
    links = []
    for code, domain in product(codes[:3], dict.fromkeys(["", *domains[:2], DOMAINS[0]])):
        leads = {
            "target_url": draw(targets),
            "created_at": draw(st.sampled_from(CREATED)),
            "tags": draw(st.none() | st.lists(st.sampled_from(TAGS), min_size=1, unique=True)),
        }
        links.append({"short_code": code, "domain": domain} | leads)
    return Question(
        owned,
        [link for link in links if link["target_url"]],
        draw(st.just([DAYS[0], DAYS[-1]]) | st.tuples(any_day, any_day).map(sorted)),
        filters,
        draw(st.sampled_from(counted_after)),
        draw(st.sampled_from(FILES)),
        draw(st.none() | st.sampled_from((*TAGS, "nowhere"))),
    )


class Case(NamedTuple):
    """The visits and links of one organization and of others, and the scope of a query about that organization."""

    visits: list[dict]
    links: list[dict]
    scope: Scope


class OwnRollups(RollupBuilder):
    """Builds rollups for only one organization of a lake: there are too many others."""

    organization = ""

    def _months_to_build(self) -> list[Month]:
        return [month for month in super()._months_to_build() if month.organization == self.organization]


class World:
    """One lake and its warehouse; every case gets its own organizations, so that all other organizations are
    strangers.
    """

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.warehouse = Warehouse(lake, VALUES)
        self.rollups = OwnRollups(lake)
        self._numbers = count()

    def case(self, question: Question) -> Case:
        number = next(self._numbers)
        names = [str(number), f"{number}x", f"{number}X"]
        self.rollups.organization = names[0]
        owned = [row | {"organization": names[0]} for row in question.links]
        strangers = [row | {"organization": names[1], "target_url": "https://stranger.example"} for row in owned]
        self.lake.manifest.exclusions.switch_files(names[0], aside=question.files == "aside")
        for turn in (1, 2):  # two imports
            for name, visits in zip(names, question.tenants, strict=True):
                land(self.lake, name, visits[turn - 1 :: 2])
            if turn == question.counted_after:
                self.rollups.run()
        if question.files == "switched":
            self.lake.manifest.exclusions.switch_files(names[0], aside=True)
        links(self.lake, names[0], owned)
        links(self.lake, names[1], strangers)
        all_visits = [
            row | {"organization": name} for name, visits in zip(names, question.tenants, strict=True) for row in visits
        ]
        scope = Scope(names[0], *question.days, **question.filters)
        if question.tag:
            scope = replace(scope, tag=LinkIndex(self.lake).links(names[0]).with_tag(question.tag).words)
        return Case(all_visits, owned + strangers, scope)


@pytest.fixture(scope="module")
def world(shared_lake: Lake) -> Iterator[World]:
    world = World(shared_lake)
    yield world
    world.warehouse.close()


@tried(6)
@given(questions(counted_after=(1, 2, 3, 3, 3, 3)))
def test_every_answer_equals_a_recount_by_hand(world, question):
    visits, known, scope = world.case(question)
    snapshot = cache(world.warehouse.snapshot)  # setting variables takes as long as some answers
    for name, entry in ENTRIES.items():
        asked = scope if entry.takes_traffic_type else replace(scope, traffic_type=None)
        answer = world.warehouse.answer(entry, snapshot(asked))
        is_aside = question.files != "counted"
        expected = recount(name, visits, asked, known, VALUES, COUNTRIES, files_aside=is_aside, tag=question.tag)
        assert answer == expected, name
        assert repr(answer) == repr(expected), name  # compares the order of fields, too, and 0 is not 0.0
