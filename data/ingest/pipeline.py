"""Builds the visits of a block of requests; every distinct value is processed only once.

For example, here are two columns of three lines. Each column is dictionary-encoded:

    line  user_agent  referrer              user_agent                 referrer
    1     Safari      chatgpt.com           indices   dictionary       indices   dictionary
    2     GPTBot      ''             ──▶    0         0: Safari        0         0: chatgpt.com
    3     Safari      chatgpt.com           1         1: GPTBot        1         1: ''
                                            0                          0

    1. classify each dictionary entry   by_agent      Safari: human, desktop         GPTBot: ai_training, bot
                                        by_referral   chatgpt.com: ai_referral       '': human
    2. composite_key of both indices    0 1 0         0: Safari, chatgpt.com         1: GPTBot, ''
    3. combine each pair                combined      0: ai_referral, desktop        1: ai_training, bot
    4. expand to the rows               bot_category  ai_referral, ai_training, ai_referral

`map_distinct` does steps 2 and 3; it calls the same functions that live.py calls for a live visit.
300,000 lines have only a few thousand distinct user agents and referrers, and not many more combinations.
Client addresses are kept only in memory, here and in block_reader.py.
"""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Final, NamedTuple, Protocol

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from data.hosts import normalized_address, normalized_host
from data.ingest.client_addresses import ClientAddresses
from data.ingest.dictionary import (
    DictionaryColumn,
    DistinctColumn,
    composite_key,
    dictionary_column,
    dictionary_encoded,
    expand,
    map_distinct,
    or_null,
    text_columns,
)
from data.ingest.named_agents import named_agents
from data.ingest.visitor_ids import visitor_hashes
from data.links.index import IndexedLinks
from data.local_time import local_times, utc_offsets
from data.logs.request_facts import RequestRecord, request_facts
from data.rules.bots import readable_user_agent
from data.rules.classifier import Classifier, Request, combine
from data.rules.exclusions import Exclusion, ExclusionKind
from data.rules.files import FILE_PATTERN, UPGRADED
from data.rules.ip_verification import Verifier
from data.rules.networks import NetworkKinds
from data.rules.own_rules import OwnRules
from data.rules.paths import PROBE, path_kind
from data.signals import BITS, OWN
from data.sql import read_sql
from data.visits import VISITS_OF_DAYS, Classification, columns_filled_by

ArrowColumns = dict[str, pa.Array]

_CLASSIFY_LOCK: Final = threading.Lock()
"""A lock held while classifying or hashing. Otherwise, threads would compete for the interpreter lock at every value.
"""

_ENCODED_COLUMNS: Final = ("day", "domain", "ip", "country", "method", "target", "protocol", "referrer", "user_agent")


class Countries(Protocol):
    """Looks up the countries of addresses."""

    def lookup(self, address: str, /) -> str | None:
        """Return the ISO 3166-1 alpha-2 code of an IP address's country; None if it is unknown."""


class Tenant(NamedTuple):
    """The visits' organization, the domain for visits without a host, and the pattern (RE2) for short codes."""

    organization: str
    domain: str
    short_code_pattern: str


@dataclass(frozen=True)
class Rules:
    """The inputs for building visits: rules, salts, proxies, IP lists, countries, links, time zones and exclusions."""

    classifier: Callable[[], Classifier]  # waits until the rules are loaded, and returns them
    salts: Callable[[str, list[date]], dict[date, str]]  # returns the salt of each day in a zone
    clients: ClientAddresses
    verifier: Verifier
    networks: NetworkKinds
    countries: Countries | None
    links: Callable[[str], IndexedLinks]  # returns the links of an organization
    zone: Callable[[str], str]  # returns the time zone that dates the visits of an organization
    own: Callable[[str], OwnRules]  # returns the exclusions of an organization


class VisitBuilder:
    """Builds visits from requests, partly by SQL in `engine`."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, rules: Rules) -> None:
        self._engine = engine
        self._rules = rules

    def visits(self, requests: pa.Table, tenant: Tenant) -> tuple[pa.Table, Counter[Exclusion]]:
        """Return the visits of `requests`, which must all have a null `reason`, and the number of visits that each of
        the owner's rules sets aside.

        The visits are a table with the columns of VISITS_OF_DAYS, except those that the log's format lacks, sorted by
        day, short code and time. Columns with few distinct strings are dictionary-encoded.
        """
        if not len(requests):
            return VISITS_OF_DAYS.empty_table(), Counter()
        zone = self._rules.zone(tenant.organization)
        visited_at, number = (requests[name].combine_chunks() for name in ("visited_at", "number"))
        offsets = utc_offsets(visited_at, zone)
        day = local_times(visited_at, offsets).cast(pa.date32())
        requests = requests.append_column("day", day)
        encoded = {name: dictionary_encoded(requests[name]) for name in _ENCODED_COLUMNS}
        encoded["user_agent"] = encoded["user_agent"].map_texts(readable_user_agent)
        if pc.any(pc.match_substring(encoded["ip"].dictionary, ":")).as_py():  # other spellings of one address
            encoded["ip"] = encoded["ip"].map_texts(normalized_address)
        encoded["domain"] = encoded["domain"].map_texts(lambda host: normalized_host(host or tenant.domain))
        own = self._rules.own(tenant.organization)
        targets = self._targets(encoded["target"].dictionary, tenant, own)
        short_code_rank = targets["short_code_rank"].take(encoded["target"].indices)
        order = _sort_order(day, short_code_rank, visited_at, number)
        plain = ["day", *(name for name in columns_filled_by("request") if name not in encoded)]
        columns = {name: requests[name].take(order) for name in plain if name in requests.column_names}
        columns["utc_offset"] = offsets.take(order)
        columns["visitor"] = self._visitors(encoded, tenant.organization, zone).take(order)
        columns["country"] = self._countries(encoded["country"], encoded["ip"]).take(order)
        signals = _signals(encoded, targets, requests, own, self._rules)
        excluded = _excluded(signals, encoded, targets, own)
        columns["signals"] = signals.take(order)
        for indices, distinct in [
            (encoded["domain"].indices, {"domain": encoded["domain"].dictionary}),
            (encoded["user_agent"].indices, {"user_agent": or_null(encoded["user_agent"].dictionary)}),
            (encoded["method"].indices, {"method": encoded["method"].dictionary}),
            (encoded["protocol"].indices, {"protocol": or_null(encoded["protocol"].dictionary)}),
            (encoded["target"].indices, {name: targets[name] for name in columns_filled_by("target")}),
            *self._classify(encoded, requests, targets, tenant.organization),
        ]:
            rows = indices.take(order)
            columns |= {name: expand(values, rows) for name, values in distinct.items()}
        rules_version = pa.array([own.version(self._rules.classifier().rules_version)])
        columns["rules_version"] = expand(rules_version, pa.repeat(0, len(order)))
        return pa.table(columns), excluded

    def _targets(self, targets: pa.Array, tenant: Tenant, own: OwnRules) -> ArrowColumns:
        """Return path, query, short code, its rank, path_kind, is_malicious and signals for each distinct target."""
        paths = self._rules.classifier().paths
        patterns = {
            "short_code_pattern": tenant.short_code_pattern,
            "probe_pattern": paths.probe_pattern,
            "program_pattern": paths.program_pattern,
            "attack_pattern": paths.attack_pattern,
            "file_pattern": FILE_PATTERN,
            "own_path_pattern": own.path_pattern,
            "bits": BITS,
        }
        self._engine.register("targets", pa.table({"number": pa.arange(0, len(targets)), "target": targets}))
        try:
            table = self._engine.sql(read_sql("data.ingest", "sql/request_targets"), params=patterns).to_arrow_table()
        finally:
            self._engine.unregister("targets")  # paths must not be kept after their block
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        links = pc.unique(columns["short_code"].filter(columns["is_probe"])).drop_null()
        if len(links):  # otherwise do not read the links: there may be hundreds of thousands
            links = links.filter(pc.is_in(links, self._rules.links(tenant.organization).short_codes))
        columns["is_link"] = pc.is_in(columns["short_code"], links)
        flags = (columns[name].dictionary_encode() for name in ("is_probe", "is_program", "is_link"))
        kinds = map_distinct(path_kind, *(DictionaryColumn(flag.indices, flag.dictionary) for flag in flags))
        columns["path_kind"] = pa.array(kinds.values, pa.string()).take(kinds.indices)
        columns["is_malicious"] = pc.equal(columns["path_kind"], PROBE)
        return columns

    def _visitors(self, encoded: dict[str, DictionaryColumn], organization: str, zone: str) -> pa.Array:
        """Return each row's visitor hash (null: no address), computed once for each day, address and user agent."""
        days, ips, agents = (encoded[name] for name in ("day", "ip", "user_agent"))
        salts = self._rules.salts(zone, days.dictionary.to_pylist())
        visitors = composite_key(days.indices, ips.indices, agents.indices)
        day, ip, agent = visitors.parts
        ordered = [salts[value] for value in days.dictionary.to_pylist()]
        clients = pc.binary_join_element_wise(ips.dictionary.take(ip), agents.dictionary.take(agent), "\0")
        with _CLASSIFY_LOCK:
            hashes = visitor_hashes(ordered, organization, day, clients.cast(pa.binary()))
        is_known = pc.invert(pc.is_in(ips.dictionary, pa.array(["", "-"]))).take(ip)
        return pc.if_else(is_known, hashes, None).take(visitors.indices)

    def _countries(self, logged: DictionaryColumn, ips: DictionaryColumn) -> pa.Array:
        """Return the country of each row: as logged, otherwise looked up by the client's address."""
        if self._rules.countries is None:
            return expand(or_null(logged.dictionary), logged.indices)
        countries = or_null(logged.dictionary).take(logged.indices)
        is_missing = countries.is_null()
        lookups = composite_key(ips.indices.filter(is_missing))
        found = [self._rules.countries.lookup(ip) for ip in ips.dictionary.take(lookups.parts[0]).to_pylist()]
        return pc.replace_with_mask(countries, is_missing, pa.array(found, pa.string()).take(lookups.indices))

    def _classify(
        self, encoded: dict[str, DictionaryColumn], requests: pa.Table, targets: ArrowColumns, organization: str
    ) -> list[tuple[pa.Array, ArrowColumns]]:
        """Return the classification and the origin of each row, both as indices and the columns of distinct values that
        they refer to.
        """
        classifier = self._rules.classifier()
        referrals = _referrals(encoded, targets["query"])
        with _CLASSIFY_LOCK:
            by_agent = map_distinct(classifier.classify_user_agent, encoded["user_agent"])
            by_referral = map_distinct(classifier.classify_referral, referrals)
            origin = map_distinct(classifier.origin, referrals)
        by_agent = named_agents(by_agent, encoded, requests, classifier.signers, self._rules.verifier)
        path_kinds = dictionary_column(targets["path_kind"], encoded["target"].indices)
        classification = map_distinct(combine, by_agent, by_referral, path_kinds)
        link_domains = self._rules.links(organization).domains
        origin = map_distinct(lambda value, domain: value.for_domain(domain, link_domains), origin, encoded["domain"])
        origins = [(referrer, referrer_type, *utm) for referrer, referrer_type, utm in origin.values]
        return [
            (classification.indices, text_columns(Classification._fields, classification.values)),
            (origin.indices, text_columns(columns_filled_by("referrer", "campaign"), origins)),
        ]


def _sort_order(*keys: pa.Array) -> pa.Array:
    """Return the indices that sort rows by several columns.

    Sorting is stable, so the columns are sorted one after another, the last column first. This takes a quarter of the
    time of a combined sort: times and numbers are mostly sorted already, and the few days and ranks use a counting
    sort.
    """
    order = pc.sort_indices(keys[-1])
    for key in reversed(keys[:-1]):
        order = order.take(pc.sort_indices(key.take(order)))
    return order


def _signals(
    encoded: dict[str, DictionaryColumn], targets: ArrowColumns, requests: pa.Table, own: OwnRules, rules: Rules
) -> pa.Array:
    """Return the initial signals of each row (null: none), from its target, address, user agent, status and headers."""

    def bits(column: DictionaryColumn, bits_of: Callable[[str], int]) -> pa.Array:
        return pa.array((int(bits_of(text)) for text in column.dictionary.to_pylist()), pa.int64()).take(column.indices)

    all_bits = targets["signals"].take(encoded["target"].indices)
    all_bits = pc.bit_wise_or(all_bits, bits(encoded["ip"], lambda ip: rules.networks.fact(ip) | own.of_address(ip)))
    if own.agent_pattern:
        all_bits = pc.bit_wise_or(all_bits, bits(encoded["user_agent"], own.of_agent))
    names = [name for name in RequestRecord._fields if name in requests.schema.names]
    names = [name for name in names if requests[name].null_count < len(requests)]
    if names:

        def facts_of(*texts: str | None) -> int:
            return request_facts(RequestRecord(**dict(zip(names, texts, strict=True)))) or 0

        facts = map_distinct(
            facts_of, *(dictionary_encoded(requests[name]) for name in names)
        )  # most rows share the same signals
        all_bits = pc.bit_wise_or(all_bits, pa.array(facts.values, pa.int64()).take(facts.indices))
    is_part = pc.not_equal(pc.bit_wise_and(all_bits, BITS["page_part"]), 0)
    is_part = pc.or_(is_part, pc.fill_null(pc.equal(requests["status"].combine_chunks(), UPGRADED), False))
    is_data = pc.not_equal(pc.bit_wise_and(all_bits, BITS["accepts_no_page"]), 0)
    if pc.any(is_data).as_py():  # only for people: bots may request pages without naming them in `Accept`
        classify = rules.classifier().classify_user_agent
        people = bits(encoded["user_agent"], lambda agent: classify(agent).bot_category == "human")
        is_part = pc.or_(is_part, pc.and_(is_data, pc.not_equal(people, 0)))
    if pc.any(is_part).as_py():
        is_file = pc.and_not(is_part, targets["is_malicious"].take(encoded["target"].indices))
        all_bits = pc.bit_wise_or(all_bits, pc.if_else(is_file, BITS["file"], 0))
    return pc.if_else(pc.equal(all_bits, 0), None, all_bits)


def _excluded(
    signals: pa.Array, encoded: dict[str, DictionaryColumn], targets: ArrowColumns, own: OwnRules
) -> Counter[Exclusion]:
    """Return the number of rows that each of the owner's rules sets aside."""
    is_own = pc.not_equal(pc.bit_wise_and(pc.fill_null(signals, 0), OWN), 0)
    excluded = Counter[Exclusion]()
    if pc.any(is_own).as_py():
        columns: dict[ExclusionKind, DictionaryColumn] = {
            "address": encoded["ip"], "agent": encoded["user_agent"],
            "path": DictionaryColumn(encoded["target"].indices, targets["path"]),
        }  # fmt: skip
        for kind, column in columns.items():
            counted = column.dictionary.take(column.indices.filter(is_own)).value_counts()
            excluded += own.count(kind, zip(*(part.to_pylist() for part in counted.flatten()), strict=True))
    return excluded


def _referrals(encoded: dict[str, DictionaryColumn], queries: pa.Array) -> DistinctColumn[Request]:
    """Return the method, referrer and query of each row as a request without a user agent."""
    methods, targets, referrers = (encoded[name] for name in ("method", "target", "referrer"))
    pages = referrers.map_texts(lambda referrer: referrer.partition("#")[0].partition("?")[0])
    return map_distinct(partial(Request, ""), methods, pages, dictionary_column(queries, targets.indices))
