"""From the requests of a block to its visits: whatever repeats among them is looked at once.

Client addresses live here and in block_reader.py only, in memory.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from data.ingest.dictionary import Numbers, Words, combined, rows_of, texts_of, words_of
from data.rules.bots import readable_user_agent
from data.rules.classifier import Classifier, Origin, Request, merge
from data.rules.geoip import CountryDatabase
from data.rules.ip_verification import Verifier
from data.sql import read_sql
from data.visits import VISITS_OF_DAYS, Classification, columns_filled_by

Salts = Callable[[list[date]], dict[date, str]]
"""Gives the salt of each day."""

Columns = dict[str, pa.Array]

_CLASSIFYING: Final = threading.Lock()
"""Two threads that classify at once hand the interpreter lock to and fro: every pattern then waits for it."""

_REPEATED: Final = ("day", "domain", "ip", "country", "request", "referrer", "user_agent")
_AIM: Final = ("method", *columns_filled_by("target"))
_ORIGIN: Final = columns_filled_by("referrer", "campaign")


class Owner(NamedTuple):
    """Whose visits they are, the domain of those that name none, and what a short code looks like."""

    organization: str
    domain: str
    short_code_pattern: str


@dataclass(frozen=True)
class Knowledge:
    """What requests are held against."""

    classifier: Classifier
    salts: Salts
    verifier: Verifier
    countries: CountryDatabase | None = None


class Recognizer:
    """Makes visits of requests, with the help of an engine."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, knowledge: Knowledge) -> None:
        self._engine = engine
        self._knows = knowledge

    def visits(self, requests: pa.Table, owner: Owner) -> pa.Table:
        """The visits of readable requests: `day` and the columns of VISITS, sorted by day, short code and time.

        Texts of which few are distinct are dictionaries.
        """
        if not len(requests):
            return VISITS_OF_DAYS.empty_table()
        facts = requests.append_column("day", requests["visited_at"].cast(pa.date32()))
        words = {name: words_of(facts[name]) for name in _REPEATED}
        words["user_agent"] = _readable(words["user_agent"])
        aims = self._aims(words["request"].words, owner)
        order = _order(facts, aims["place"].take(words["request"].numbers))
        columns = {name: facts[name].take(order) for name in ("day", "visited_at", "status")}
        columns["visitor"] = self._visitors(words, owner.organization).take(order)
        columns["country"] = self._countries(words["country"], words["ip"]).take(order)
        for numbers, repeated in [
            (words["domain"].numbers, {"domain": _or_null(words["domain"].words, owner.domain)}),
            (words["user_agent"].numbers, {"user_agent": _or_null(words["user_agent"].words)}),
            (words["request"].numbers, {name: aims[name] for name in _AIM}),
            *self._answers(words, aims),
        ]:
            rows = numbers.take(order)
            columns |= {name: rows_of(values, rows) for name, values in repeated.items()}
        rules = pa.array([self._knows.classifier.rules_version])
        return pa.table({**columns, "rules_version": rows_of(rules, pa.repeat(0, len(order)))})

    def _aims(self, requests: pa.Array, owner: Owner) -> Columns:
        """What each distinct request line asked for."""
        probes = self._knows.classifier.probe_pattern
        patterns = {"short_code_pattern": owner.short_code_pattern, "probe_pattern": probes}
        self._register("request_lines", {"request": requests})
        return _columns(self._engine.sql(read_sql("data.ingest", "sql/aims"), params=patterns))

    def _visitors(self, words: dict[str, Words], organization: str) -> pa.Array:
        """The hashes of the visitors, each computed once for a day."""
        days, ips, agents = (words[name] for name in ("day", "ip", "user_agent"))
        salts = self._knows.salts(days.words.to_pylist())
        visitors = combined(days.numbers, ips.numbers, agents.numbers)
        day, ip, agent = visitors.parts
        salt = pa.array([salts[one] for one in days.words.to_pylist()], pa.string())
        texts = {"salt": salt.take(day), "ip": ips.words.take(ip), "user_agent": agents.words.take(agent)}
        self._register("visitors", texts)
        hashes = _columns(
            self._engine.sql(read_sql("data.ingest", "sql/visitors"), params={"organization": organization})
        )
        return hashes["visitor"].take(visitors.numbers)

    def _register(self, name: str, columns: Columns) -> None:
        """Let the engine see some columns, and the number of each row."""
        numbers = pa.arange(0, len(next(iter(columns.values()))))
        self._engine.register(name, pa.table({"number": numbers, **columns}))

    def _countries(self, logged: Words, ips: Words) -> pa.Array:
        """The countries as they were logged, else those of the addresses."""
        if self._knows.countries is None:
            return rows_of(_or_null(logged.words), logged.numbers)
        countries = _or_null(logged.words).take(logged.numbers)
        is_missing = countries.is_null()
        asked = combined(ips.numbers.filter(is_missing))
        found = [self._knows.countries.lookup(ip) for ip in ips.words.take(asked.parts[0]).to_pylist()]
        return pc.replace_with_mask(countries, is_missing, pa.array(found, pa.string()).take(asked.numbers))

    def _answers(self, words: dict[str, Words], aims: Columns) -> list[tuple[pa.Array, Columns]]:
        """Who made the requests and where they came from: numbers of rows, and the rows."""
        identities, origins = Numbers[Classification](), Numbers[Origin]()
        classifier, agents = self._knows.classifier, words["user_agent"]
        numbers, ways = _ways(words["request"].numbers, aims, words["referrer"])
        with _CLASSIFYING:
            said = identities.of([classifier.classify_user_agent(agent) for agent in agents.words.to_pylist()])
            came = identities.of([classifier.classify_referral(way) for way in ways])
            origin = origins.of([classifier.origin(way) for way in ways])
        said = said.take(agents.numbers)
        told = _met(said, came.take(numbers), identities)
        told = self._confirmed(told, said, words, identities)
        from_where = [(host, kind, *utm) for host, kind, utm in origins.things()]
        return [
            (told, texts_of(Classification._fields, identities.things())),
            (origin.take(numbers), texts_of(_ORIGIN, from_where)),
        ]

    def _confirmed(
        self, told: pa.Array, said: pa.Array, words: dict[str, Words], identities: Numbers[Classification]
    ) -> pa.Array:
        """Identities with what addresses tell of agents' claims."""
        verifier, known = self._knows.verifier, identities.things()
        claims = [number for number, says in enumerate(known) if verifier.can_verify(says)]
        is_claim = pc.is_in(said, pa.array(claims, pa.int32()))
        seen = combined(*(column.filter(is_claim) for column in (said, words["ip"].numbers, words["day"].numbers)))
        claimed, ips, days = seen.parts
        asked = zip(
            claimed.to_pylist(),
            words["ip"].words.take(ips).to_pylist(),
            words["day"].words.take(days).to_pylist(),
            strict=True,
        )
        confirmed = identities.of([verifier.verify(known[number], ip, day) for number, ip, day in asked])
        return pc.replace_with_mask(told, is_claim, confirmed.take(seen.numbers))


def _columns(answer: duckdb.DuckDBPyRelation) -> Columns:
    table = answer.to_arrow_table()
    return {name: table[name].combine_chunks() for name in table.column_names}


def _readable(logged: Words) -> Words:
    """User agents as they were sent; some may now stand more than once."""
    return Words(logged.numbers, pa.array(map(readable_user_agent, logged.words.to_pylist()), pa.string()))


def _or_null(words: pa.Array, instead: str = "") -> pa.Array:
    """Words with another one, or null, instead of those that are empty."""
    return pc.if_else(pc.equal(words, ""), pa.scalar(instead or None, pa.string()), words)


def _order(facts: pa.Table, place: pa.Array) -> pa.Array:
    """Where the rows are that come first by day, short code and time; of equals the earlier line."""
    keys = facts.select(["day", "visited_at", "number"]).add_column(1, "place", place)
    return pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])


def _ways(requests: pa.Array, aims: Columns, referrers: Words) -> tuple[pa.Array, list[Request]]:
    """The ways by which requests came, whoever made them: the number of each, and the ways."""
    methods, queries = (words_of(pa.chunked_array([aims[name]])) for name in ("method", "query"))
    cut = [referrer.partition("#")[0].partition("?")[0] for referrer in referrers.words.to_pylist()]
    places = words_of(pa.chunked_array([pa.array(cut, pa.string())]))
    ways = combined(
        methods.numbers.take(requests), places.numbers.take(referrers.numbers), queries.numbers.take(requests)
    )
    texts = [
        column.words.take(part).to_pylist() for column, part in zip((methods, places, queries), ways.parts, strict=True)
    ]
    return ways.numbers, [Request("", *way) for way in zip(*texts, strict=True)]


def _met(said: pa.Array, came: pa.Array, identities: Numbers[Classification]) -> pa.Array:
    """What two answers come to, that about the agent and that about the way, where they meet in a request."""
    known, meetings = identities.things(), combined(said, came)
    pairs = zip(*(part.to_pylist() for part in meetings.parts), strict=True)
    return identities.of([merge(known[one], known[other]) for one, other in pairs]).take(meetings.numbers)
