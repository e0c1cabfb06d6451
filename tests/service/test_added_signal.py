"""A row that is added to the table of signals shows up wherever signals are listed, without any other change."""

import json
import subprocess
import sys

import pytest

from tests.support.forks import ROOT, without_settings

ADD = """
from data import signals

signals.SIGNALS += (signals.Signal("odd_hours", 1 << 45, "judging", convicts=True, meaning="it came at odd hours"),)
signals.BITS["odd_hours"], signals.CONVICTING = 1 << 45, signals.CONVICTING | 1 << 45
"""
"""Code that adds a row in every process that finds the code as sitecustomize.py."""
ASK = """
import json, sys
from pathlib import Path

from starlette.testclient import TestClient
from data import Lake
from queries.fields import SIGNAL
from service.app.application import create_app
from service.commands import app
from service.core.settings import read_settings
from tests.conftest import NOW
from tests.support.page_reading import Browser, link_of
from tests.support.docs import expression_table, signal_table
from tests.support.visits import land, visit

lake = Lake(Path(sys.argv[1]), create=True)
land(lake, "acme", [visit(signals=1 << 45), visit(signals=0)])
days = "2026-03-01", "2026-03-31"
span = "start_date={}&end_date={}".format(*days)
with TestClient(create_app(read_settings({}, lake=str(lake.root)), lambda: NOW, None), base_url="https://t") as client:
    browser = Browser(client)
    browser.enter(link_of(lake))
    shown = {
        "table": browser.get(f"export/disguised.csv?{span}").text,
        "page": browser.get(f"?{span}").text,
        "field": SIGNAL.meaning,
        "documents": signal_table(),
        "expressions": expression_table(),
    }
print(json.dumps(shown), flush=True)
dates = "--start-date", days[0], "--end-date", days[1]
app(["behaviour", "explain", "--org", "acme", *dates, "--format", "csv", "--lake", sys.argv[1]], standalone_mode=False)
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The text that each place shows about a signal that only its row declares."""
    folder = tmp_path_factory.mktemp("added")
    (folder / "sitecustomize.py").write_text(ADD)
    environment = {**without_settings(), "PYTHONPATH": f"{folder}:{ROOT}"}
    command = [sys.executable, "-c", ASK, folder / "lake"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    texts, _, printed = done.stdout.partition("\n")
    return {**json.loads(texts), "command": printed}


@pytest.mark.parametrize(("place", "words"), [
    ("table", "odd_hours,1,1"),
    ("page", "odd hours (1)"),
    ("field", "old_protocol_bare, odd_hours"),
    ("documents", "| `odd_hours` | 35184372088832 | judging | yes | it came at odd hours |"),
    ("expressions", "(signals & 70315057086702)"),
    ("command", "odd_hours,1,1,1,it came at odd hours"),
])  # fmt: skip
def test_an_added_signal_appears_wherever_signals_are_shown(shown, place, words):
    assert words in shown[place], shown[place]
