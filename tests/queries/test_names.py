"""Names that templates look up, such as the services of referring hosts."""

import re

import duckdb
import pytest

from data.rules.referrers import ReferrerTable
from data.rules.tables import Referrer, load
from queries.prelude import prelude, rollup_version, sql_text
from tests.support.docs import OPERATORS, operators_sql
from tests.support.tables import examples_at_once

ROWS = re.findall(r"\('(\w+)', '([^']+)', '([^']+)'\)", sql_text("names/referrer_sources"))


@pytest.fixture(scope="module")
def source_of():
    """A function that calls the macro source_of, as templates do."""
    with duckdb.connect() as engine:
        engine.execute(sql_text("names/referrer_sources"))
        yield lambda *words: engine.execute("SELECT source_of($1, $2)", list(words)).fetchall()[0][0]


@examples_at_once("referrer", "referrer_type", "source")
def test_the_hosts_of_one_service_share_a_name(source_of, referrer, referrer_type, source):
    assert source_of(referrer, referrer_type) == source


def test_every_named_host_is_a_known_referrer_of_its_type():
    table = ReferrerTable(load(Referrer, "referrers"))
    for referrer_type, host, _ in ROWS:
        found = table.find(host.replace(".*", ".de"), table.path_of(host, referrer_type))
        assert found or host == "yahoo.*", host
        assert not found or found.referrer_type == referrer_type, host


def test_referrers_of_ai_products_are_named_like_ai_sources():
    table = ReferrerTable(load(Referrer, "referrers"))
    for _, host, source in (row for row in ROWS if row[0] == "ai"):
        assert table.find(host, table.path_of(host, "ai")).ai_source == source


def test_the_operator_table_matches_the_rules():
    assert OPERATORS.read_text("utf-8") == operators_sql(), "run: uv run python -m tests.support.docs"


def test_each_name_has_one_operator():
    names = re.findall(r"\('([^']+)', '[^']+'\)", operators_sql())
    assert len(set(names)) == len(names) > 200


def test_no_host_has_two_names():
    assert len({row[:2] for row in ROWS}) == len(ROWS) > 50


def test_changed_names_keep_the_rollup_version(monkeypatch):
    assert sql_text("names/referrer_sources") in prelude()
    before = rollup_version(behaviour=True, aside=0)
    rollup_version.cache_clear()
    monkeypatch.setattr("queries.prelude.sql_text", lambda name: sql_text(name) + "X" * name.startswith("names/"))
    try:
        assert rollup_version(behaviour=True, aside=0) == before
    finally:
        rollup_version.cache_clear()
