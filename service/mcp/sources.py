"""Data sources of the tools: a lake in this process, or a running server's answers and their cache."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cache, partial
from typing import Any

from data import Lake
from data.links.index import LinkIndex
from data.links.links import first_links
from data.rules.lake_tables import LakeTables, rules_version
from data.store.lake_tables import CurrentTables
from queries import Entry, OwnSql, Rows, Scope, Warehouse, empty_scope_hint, load_traffic_values, scope_from
from service.core.clock import Clock, utc_now
from service.core.control_database import ControlDatabase
from service.core.encoding import encode
from service.core.http.caller import Caller
from service.core.http.pools import Workers
from service.jobs.store import Jobs
from service.mcp.tools import MAX_ROWS, Sources
from service.reports.answers import Answers

ScopeOf = Callable[[Mapping[str, str]], Scope]
"""A function that returns the scope that API parameters select."""


def lake_sources(lake: Lake, organization: str, opened: ExitStack) -> Sources:
    """Return sources that read an open lake. Free SQL runs on an engine that opens only this organization's folders.

    Resources that the caller must close are pushed to `opened`.
    """
    warehouse = opened.enter_context(closing(Warehouse(lake, load_traffic_values(None))))
    control = opened.enter_context(closing(ControlDatabase(lake)))
    own_sql = cache(lambda: opened.enter_context(closing(OwnSql(lake, organization))))
    scope_of = _scope_of(lake, organization, LinkIndex(lake), utc_now)

    async def answer(entry: Entry, scope: Scope) -> bytes:
        return encode(await asyncio.to_thread(lambda: warehouse.answer(entry, warehouse.snapshot(scope))))

    def run_sql(sql: str, parameters: Mapping[str, str]) -> Rows:
        return own_sql().sql(sql, scope_of(parameters), MAX_ROWS)

    sources = _sources(lake, organization, Jobs(control), scope_of, answer, tables=CurrentTables(lake))
    return replace(sources, run_sql=run_sql)


def server_sources(
    lake: Lake,
    caller: Caller,
    *,
    answers: Answers,
    workers: Workers,
    links: LinkIndex,
    jobs: Jobs,
    tables: CurrentTables,
    clock: Clock,
) -> Sources:
    """Return sources that query the server in this process, with the same cache as HTTP, but without free SQL."""

    async def answer(entry: Entry, scope: Scope) -> bytes:
        return await answers.body(entry, scope, caller.is_share)

    scope_of = _scope_of(lake, caller.organization, links, clock)
    sources = _sources(lake, caller.organization, jobs, scope_of, answer, tables=tables)
    return replace(sources, in_thread=partial(workers.texts.compute, *caller.turn))


def _scope_of(lake: Lake, organization: str, links: LinkIndex, clock: Clock) -> ScopeOf:
    return lambda parameters: scope_from(
        parameters, organization, lake.manifest.organizations.today(organization, clock()), links
    )


def _sources(
    lake: Lake,
    organization: str,
    jobs: Jobs,
    scope_of: ScopeOf,
    answer: Callable[[Entry, Scope], Awaitable[bytes]],
    *,
    tables: CurrentTables,
) -> Sources:
    async def answer_for(entry: Entry, parameters: Mapping[str, str]) -> bytes:
        return await answer(entry, await asyncio.to_thread(scope_of, parameters))

    return Sources(
        answer=answer_for,
        links=lambda search: first_links(lake, organization, search, MAX_ROWS),
        jobs=partial(jobs.of, organization),
        job=partial(jobs.with_content, organization),
        classify=lambda request: classify(request, tables.current()),
        rules_version=lambda: rules_version(tables.current()),
        hint=lambda parameters: empty_scope_hint(lake, scope_of(parameters)),
    )


def classify(request: Mapping[str, str], tables: LakeTables) -> dict[str, Any]:
    """Return a request's classification by its user_agent, referrer and url, with the deciding rule and evidence."""
    from data.rules.classifier import Request, shared_classifier  # noqa: PLC0415  # slow: loads the rules

    classifier = shared_classifier(tables)
    parsed = Request.from_url(request.get("user_agent", ""), request.get("referrer", ""), request.get("url", ""))
    match = next(classifier.matches(parsed))
    return {**classifier.classify(parsed)._asdict(), "rule": match.rule, "evidence": match.evidence}
