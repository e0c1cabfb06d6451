"""The Prometheus and Grafana configuration: alerts fire when they should, and the names in it exist.

Grafana itself is not started.
"""

import json
import re
import shutil
from pathlib import Path

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from tests.support.programs import DEPLOY, checked
from tests.support.visits import land, visit
from tests.support.web_servers import installed

DASHBOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
METRIC = re.compile(r"\b(?:traffic|process)_\w+")


def targets_of(path):
    return [target for panel in json.loads(path.read_text())["panels"] for target in panel["targets"]]


def test_prometheus_accepts_its_configuration_and_the_alerts():
    assert "14 rules found" in checked(installed("promtool"), "check", "config", DEPLOY / "prometheus.yml")


def test_each_alert_fires_only_for_an_unhealthy_server(tmp_path):
    shutil.copy(DEPLOY / "alerts.yml", tmp_path / "rules.yml")
    shutil.copy(Path(__file__).with_name("alerts.yml"), tmp_path / "tests.yml")
    checked(installed("promtool"), "test", "rules", tmp_path / "tests.yml")
    tested = set(re.findall(r'alertname="(\w+)"', (tmp_path / "tests.yml").read_text()))
    assert tested == set(re.findall(r"alert: (\w+)", (tmp_path / "rules.yml").read_text()))


def test_alerts_and_panels_name_existing_metrics(lake, serving, key_of):
    with serving(lake, monitor_port=0) as server, httpx2.Client(trust_env=False, verify=False, timeout=60) as client:
        client.get(f"{server.address}/analytics/devices", headers={"Authorization": f"Bearer {key_of(lake)}"})
        families = [*text_string_to_metric_families(client.get(f"{server.monitor}/metrics").text)]
    measured = {sample.name for family in families for sample in family.samples}
    expressions = [target["expr"] for path in DASHBOARDS for target in targets_of(path) if "expr" in target]
    named = {name for text in (*expressions, (DEPLOY / "alerts.yml").read_text()) for name in METRIC.findall(text)}
    assert len(named) > 10
    assert named - measured == set()
    for path in DASHBOARDS:
        panels = json.loads(path.read_text())["panels"]
        assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels) > 3


def test_the_grafana_dashboard_names_existing_fields(lake, opened):
    bot = {"bot_category": "ai_assistant", "agent_kind": "assistant", "ai_source": "ChatGPT", "agent": "ChatGPT-User"}
    land(lake, "acme", [visit(short_code="launch", referrer="www.example.org"), visit(operator="OpenAI", **bot)])
    targets = targets_of(DEPLOY / "grafana/analytics.json")
    assert {target["url"].partition("?")[0] for target in targets} == {"/analytics/dashboard"}
    with opened(lake) as client:
        for target in targets:
            answer = client.get(target["url"])
            assert answer.status_code == 200
            found = answer.json()[target["root_selector"]]
            assert found, target["root_selector"]
            row = found if isinstance(found, dict) else found[0]
            named = {column["selector"] for column in target["columns"]}
            assert named - set(row) == set(), target["root_selector"]
