"""Tables that turn a roll of the dice into a visit: the visitor, the origin, the time and the target.

Each table has one row for each key and each face of its die, so that DuckDB can draw a row with a join. The values come
from the project's own sample, and are classified by the project's own classifier.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from data.rules.classifier import Classifier, Request
from data.rules.paths import classify_path
from data.visits import Classification, columns_filled_by
from service.demo import sample as words
from service.demo.sample import Sample

PAGES: Final = 500
"""Number of pages other than links, requested by automated visitors."""

_AUTOMATA: Final = {
    "assistants": words.ASSISTANTS,
    "trainers": words.TRAINERS,
    "coders": words.CODERS,
    "others": words.OTHERS,
}
_PEOPLE: Final = ("people", "referred")
_STEADY: Final = ("trainers", "others")  # equally active at all hours
_COUNTRIES: Final = (
    "US", "DE", "GB", "FR", "IN", "CA", "BR", "NL", "ES", "IT", "AU", "PL", "JP", "SE", "MX", "CH", "BE", "AT",
    "ID", "TR", "PT", "NO", "DK", "FI", "IE", "CZ", "AR", "ZA", "KR", "SG", "RO", "HU", "GR", "UA", "IL", "PH",
    "VN", "TH", "MY", "NZ", "CL", "CO", "PE", "EG", "NG", "KE", "PK", "BD", "MA", "SA", "AE", "HK", "TW", "SK",
    "BG", "HR", "LT", "LV", "EE", "SI", "RS", "LU", "IS",
)  # fmt: skip
_CLOUDS: Final = (("US", 72), ("IE", 8), ("DE", 7), ("SG", 5), ("NL", 4), ("FR", 2), ("CN", 2))
_GEOMETRY: Final = 0.93  # ratio of each country's people to the previous country's
_BLOGS: Final = tuple((f"https://blog-{n}.example.org/", 6 / 200) for n in range(200))

Weighted = Sequence[tuple[Any, float]]


class Draws:
    """The tables that `drawn.sql` and `visits.sql` join, for one sample."""

    def __init__(self, sample: Sample, browsers: int) -> None:
        self._sample = sample
        self._browsers = browsers
        self._classifier = _classifier()
        self.rules = {
            "probe_pattern": self._classifier.paths.probe_pattern,
            "rules_version": self._classifier.rules_version,
        }
        self._agents: list[tuple[Any, ...]] = []
        self._origins: dict[tuple[str, str], int] = {}

    def tables(self) -> dict[str, pa.Table]:
        """Return every table by its name."""
        random = Random(f"browsers {self._sample.seed}")
        for _ in range(self._browsers):
            self._agent(
                words.browser_of(
                    random.choices(words.PLATFORMS, words.PLATFORM_WEIGHTS)[0], random, self._sample.last_day
                )
            )
        people, automata = dict.fromkeys(_PEOPLE, _countries()), dict.fromkeys(_AUTOMATA, _CLOUDS)
        domains = list(zip(words.DOMAINS, words.DOMAIN_WEIGHTS, strict=True))
        return {
            "kinds": self._kinds(),
            "callers": _drawn(256, {kind: self._callers(agents) for kind, agents in _AUTOMATA.items()}, "agent"),
            "arrivals": _drawn(65_536, {**self._arrivals(), **dict.fromkeys(_AUTOMATA, self._unreferred())}, "origin"),
            "hours": _drawn(1_024, {kind: _hours(kind) for kind in (*_PEOPLE, *_AUTOMATA)}, "hour"),
            "countries": _drawn(4_096, {**people, **automata}, "country"),
            "links": self._links(),
            "domains": _drawn(256, {"": domains}, "domain"),
            "strays": _drawn(16, {"": words.STRAYS}, "path"),
            "agents": _table(("number", *Classification._fields, "user_agent"), self._agents),
            "origins": self._told_origins(),
        }

    def days(self) -> list[dict[str, Any]]:
        """Return every day with its number of visits, and the link that goes viral that day, if any."""
        codes = self._sample.codes()
        days: list[dict[str, Any]] = []
        for n, (day, visits) in enumerate(self._sample.daily()):
            shared = Random(f"burst {self._sample.seed} {n}").choice(codes) if words.bursts(n) else None
            days.append({"number": n, "day": day, "visits": visits, "burst": shared})
        return days

    def with_paths_classified(self, visits: pa.Table) -> pa.Table:
        """Return the visits, after reclassifying each visit to a path that people do not open."""
        kinds = {path: self._classifier.paths.kind(path) for path in pc.unique(visits["path"]).to_pylist()}
        special = pa.array([path for path, kind in kinds.items() if kind], pa.string())
        places = pc.indices_nonzero(pc.is_in(visits["path"], special))
        chosen = visits.select([*Classification._fields, "path"]).take(places).to_pylist()
        rows = [classify_path(Classification(*(row[name] for name in Classification._fields)), kinds[row["path"]])
                for row in chosen]  # fmt: skip
        is_special = pc.is_in(visits["path"], special)
        for name, values in zip(Classification._fields, zip(*rows, strict=True), strict=True) if rows else ():
            place, column = visits.schema.get_field_index(name), visits[name]
            new = pa.array(values, pa.string()).cast(column.type)
            visits = visits.set_column(
                place, name, pc.replace_with_mask(column.combine_chunks(), is_special.combine_chunks(), new)
            )
        return visits

    def _kinds(self) -> pa.Table:
        last = max(1, self._sample.days - 1)
        by_day = {
            n: [(kind, weight * (1 + (words.GROWTH.get(kind, 1) - 1) * n / last)) for kind, weight in words.MIX]
            for n in range(self._sample.days)
        }
        return _drawn(1024, by_day, "kind", "number")

    def _links(self) -> pa.Table:
        codes = self._sample.codes()
        return _drawn(65_536, {"": list(zip(codes, words.link_weights(len(codes)), strict=True))}, "short_code")

    def _agent(self, user_agent: str) -> int:
        says = self._classifier.classify_user_agent(Request.from_log(user_agent).user_agent)
        self._agents.append((len(self._agents), *says, user_agent))
        return len(self._agents) - 1

    def _callers(self, agents: tuple[tuple[str, int], ...]) -> Weighted:
        return [(self._agent(user_agent), weight) for user_agent, weight in agents]

    def _arrivals(self) -> dict[str, Weighted]:
        people = [
            (self._origin(referrer, query), weight * share)
            for referrer, weight in (*words.REFERRERS, *_BLOGS)
            for query, share in words.CAMPAIGNS
        ]
        return {
            "people": people,
            "referred": [(self._origin(referrer, query), weight) for referrer, query, weight in words.AI_REFERRERS],
        }

    def _unreferred(self) -> Weighted:
        return [(self._origin("-", ""), 1)]

    def _origin(self, referrer: str, query: str) -> int:
        return self._origins.setdefault((referrer, query), len(self._origins))

    def _told_origins(self) -> pa.Table:
        rows = []
        for (referrer, query), number in self._origins.items():
            request = Request.from_log("", referrer=referrer, query=query)
            origin = self._classifier.origin(request)
            says = self._classifier.classify_referral(request)
            rows.append((number, referrer, query, *says[:7], origin.referrer, origin.referrer_type, *origin.utm))
        told = (*Classification._fields[:7], *columns_filled_by("referrer", "campaign"))
        return _table(("number", "referer", "query", *told), rows)


@lru_cache(1)
def tables_of(sample: Sample, browsers: int) -> Mapping[str, pa.Table]:
    """Return the tables of a sample. They do not depend on its number of visits, so all organizations of a lake share
    them.
    """
    return Draws(sample, browsers).tables()


@cache
def _classifier() -> Classifier:
    """Return the classifier, loaded once for all organizations."""
    return Classifier()


def _hours(kind: str) -> Weighted:
    return list(enumerate(words.FLAT_HOURS if kind in _STEADY else words.HUMAN_HOURS))


def _countries() -> Weighted:
    return [(None, 0.3), *((country, _GEOMETRY**n) for n, country in enumerate(_COUNTRIES))]


def _drawn(faces: int, choices: Mapping[Any, Weighted], value: str, key: str = "kind") -> pa.Table:
    """Return a table with the value drawn for each key and face of the dice, by weight."""
    rows = [
        (name, face, drawn)
        for name, weighted in choices.items()
        for (drawn, _), (start, end) in zip(weighted, pairwise(_bounds(faces, weighted)), strict=True)
        for face in range(start, end)
    ]
    return _table((key, "face", value), rows)


def _bounds(faces: int, weighted: Weighted) -> list[int]:
    total = sum(weight for _, weight in weighted)
    return [round(faces * so_far / total) for so_far in accumulate((weight for _, weight in weighted), initial=0)]


def _table(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], list(names))
