"""`traffic doctor` reports on rules that set the owner's visits aside."""

from datetime import UTC, datetime, timedelta

from data.ingest.live import LiveIngest
from data.logs.reported import Submission
from data.rules.own_rules import checked_exclusion
from service.ops.owner_checks import check_exclusions
from tests.support.visits import land, visit

NOW = datetime.now(UTC)


def rule_of(lake):
    land(lake, "acme", [visit()])
    lake.manifest.exclusions.add("acme", checked_exclusion("path", "/admin"))


def test_a_lake_without_rules_is_ok(lake):
    assert check_exclusions(lake, NOW) == ("ok", "own visits", "no rule sets visits aside.")


def test_a_rule_with_matches_is_ok(lake):
    rule_of(lake)
    line = f'{{"domain": "go.example", "path": "/admin/x", "user_agent": "a", "time": "{NOW.isoformat()}"}}'
    LiveIngest(lake).land([Submission("acme", [line.encode()] * 2)])
    found = check_exclusions(lake, NOW + timedelta(days=30))
    assert found == ("ok", "own visits", "1 rule set aside 2 visits.")


def test_a_new_unused_rule_is_not_reported_yet(lake):
    rule_of(lake)
    assert check_exclusions(lake, NOW + timedelta(days=6)).text == "1 rule set aside 0 visits."


def test_a_rule_without_matches_is_a_warning(lake):
    rule_of(lake)
    found = check_exclusions(lake, NOW + timedelta(days=8))
    told = f"no visit since {NOW:%Y-%m-%d} matches the rule path /admin; see `traffic exclude list --org acme`."
    assert found == ("warning", "own visits", told)
