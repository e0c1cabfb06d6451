"""Where the tools read: a lake in this process, or a running server's answers and their cache."""

import asyncio
from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from data import Lake
from data.store.link_index import LinkIndex
from data.store.links import Link, first_links
from queries import Entry, OwnSql, Rows, Scope, Warehouse, load_traffic_values, no_visits, scope_from
from service.clock import Clock, utc_now
from service.control_database import ControlDatabase
from service.encoding import encode
from service.http.answers import Answers
from service.http.authentication import Caller
from service.http.lanes import Workers
from service.jobs.store import Jobs
from service.mcp.tools import MAX_ROWS, Sources

if TYPE_CHECKING:
    from data.rules.classifier import Classifier


def lake_sources(lake: Lake, organization: str) -> Sources:
    """Read an open lake. Free SQL runs on an engine that opens the folders of this organization only."""
    warehouse, links = Warehouse(lake, load_traffic_values(None)), LinkIndex(lake)

    def scope_of(parameters: Mapping[str, str]) -> Scope:
        return scope_from(parameters, organization, lake.manifest.today(organization, utc_now()), links)

    async def answer(entry: Entry, parameters: Mapping[str, str]) -> bytes:
        scope = scope_of(parameters)
        return encode(await asyncio.to_thread(lambda: warehouse.answer(entry, warehouse.variables(scope))))

    def run_sql(sql: str, parameters: Mapping[str, str]) -> Rows:
        return own_sql().sql(sql, scope_of(parameters), MAX_ROWS)

    def hint(parameters: Mapping[str, str]) -> str:
        return no_visits(lake, scope_of(parameters))

    own_sql = cache(lambda: OwnSql(lake, organization))
    jobs = Jobs(ControlDatabase(lake))
    return Sources(
        answer,
        partial(_links, lake, organization),
        partial(jobs.of, organization),
        partial(jobs.with_content, organization),
        classify,
        hint,
        run_sql,
    )


def server_sources(
    lake: Lake, caller: Caller, *, answers: Answers, workers: Workers, links: LinkIndex, jobs: Jobs, clock: Clock
) -> Sources:
    """Ask the server in whose process this runs: the same answers and the same cache as over HTTP, and no free SQL."""
    organization = caller.organization

    def scope_of(parameters: Mapping[str, str]) -> Scope:
        return scope_from(parameters, organization, lake.manifest.today(organization, clock()), links)

    async def answer(entry: Entry, parameters: Mapping[str, str]) -> bytes:
        return await answers.body(entry, await asyncio.to_thread(scope_of, parameters), caller.asker)

    def hint(parameters: Mapping[str, str]) -> str:
        return no_visits(lake, scope_of(parameters))

    return Sources(
        answer,
        partial(_links, lake, organization),
        partial(jobs.of, organization),
        partial(jobs.with_content, organization),
        classify,
        hint,
        in_thread=partial(workers.texts.compute, *caller.turn),
    )


def _links(lake: Lake, organization: str, search: str) -> tuple[list[Link], bool]:
    return first_links(lake, organization, search, MAX_ROWS)


def classify(request: Mapping[str, str]) -> dict[str, Any]:
    """The classification of a request by user_agent, referrer and url, and the rule that decided."""
    from data.rules.classifier import Request  # noqa: PLC0415  # slow: loads the rules

    classifier = _classifier()
    parsed = Request.from_url(request.get("user_agent", ""), request.get("referrer", ""), request.get("url", ""))
    match = next(classifier.matches(parsed))
    return {**classifier.classify(parsed)._asdict(), "rule": match.rule, "evidence": match.evidence}


@cache
def _classifier() -> "Classifier":
    from data.rules.classifier import Classifier  # noqa: PLC0415

    return Classifier()
