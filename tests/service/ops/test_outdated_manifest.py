"""An older manifest was restored: a server answers but stores nothing, and commands name `traffic rebuild` (P1)."""

import json
import shutil
from datetime import timedelta

import httpx2
import pytest

from data import Lake
from data.ingest.importer import Importer, Options
from data.recovery.rebuild import Rebuild
from tests.faults.lakes import log
from tests.service.ops.every_command import GOES_ON, REFUSED, TRIED, places, words
from tests.service.outgoing.mail_servers import Mailbox, smtp_server
from tests.support.lakes import kept_manifest, put_back
from tests.support.visits import land, visit

MARCH = "start_date=2026-03-01&end_date=2026-03-31"
NOTHING_KEPT = {
    "error": "Nothing was stored: the lake's manifest is older than its files.",
    "message": "Retry later, when the operator has stopped the service and run `traffic rebuild`.",
}


@pytest.fixture
def at(lake, tmp_path):
    """The values of the names in braces in commands, with the files that commands use in the lake and next to it."""
    return places(lake, tmp_path)


@pytest.fixture
def outdated(lake, at):
    """A closed lake with an older manifest, which does not list one of the visits."""
    land(lake, "acme", [visit(path="/known", domain="go.example", short_code="sale")])
    older = kept_manifest(lake.root)
    land(lake, "acme", [visit(path="/unknown", domain="go.example")])
    lake.manifest.close()
    put_back(older, lake.root)
    return lake


def test_a_server_answers_reads_and_rejects_writes_with_503(outdated, opened):
    with opened(outdated) as client:
        overview = client.get(f"/analytics/traffic-overview?{MARCH}")
        assert (overview.status_code, overview.json()["total_visits"]) == (200, 1)
        for answer in (
            client.post("/visits", json=[{"url": "https://go.example/a"}]),
            client.put("/links/go.example/sale", json={"target_url": "https://shop.example"}),
        ):
            assert (answer.status_code, answer.json()) == (503, NOTHING_KEPT)
            assert answer.headers["Retry-After"] == "5"


def test_a_server_answers_503_if_its_lake_was_replaced(lake, opened):
    land(lake, "acme", [visit(path="/known", domain="go.example")])
    overview = f"/analytics/traffic-overview?{MARCH}"
    with opened(lake) as client:
        assert client.get(overview).json()["total_visits"] == 1
        shutil.copytree(lake.root, lake.root.with_name("restored"))
        lake.root.rename(lake.root.with_name("old"))
        lake.root.with_name("restored").rename(lake.root)
        answer = client.get(overview)
        assert (answer.status_code, answer.json()) == (503, {
            "error": "The lake was moved or replaced.",
            "message": "Retry when the operator has restarted the service.",
        })  # fmt: skip
        kept = client.post("/visits", json=[{"url": "https://go.example/a"}])
        assert (kept.status_code, kept.json()["error"]) == (503, "Nothing was stored: the lake was moved or replaced.")


def test_the_metrics_and_the_log_report_an_outdated_manifest(outdated, serving, capfd):
    with serving(outdated, monitor_port=0) as server, httpx2.Client(trust_env=False, verify=False) as client:
        assert "\ntraffic_manifest_outdated 1.0\n" in client.get(f"{server.monitor}/metrics").text
        assert client.get(f"{server.monitor}/healthz").status_code == 200
        while not (told := [line for line in capfd.readouterr().out.splitlines() if "traffic rebuild" in line]):
            pass
    assert "is older than the files in the lake (change 3 of 4)" in json.loads(told[0])["message"]


REFUSAL = "until all programs are stopped and `uv run traffic rebuild "


@pytest.mark.parametrize("command", [name for name, row in TRIED.items() if row.outdated == REFUSED])
def test_writing_commands_fail_until_the_manifest_is_rebuilt(outdated, at, traffic, monkeypatch, command):
    for module in ("erasure", "retention"):
        monkeypatch.setattr(f"data.tasks.{module}.GRACE", timedelta(0))
    run = traffic(*words(command, at))
    assert run.code == 1, run
    assert REFUSAL in run.err.splitlines()[-1]
    assert Rebuild(outdated.root).run().visits == 2
    if command != "follow":  # which continues
        assert traffic(*words(command, at)).code == 0


@pytest.mark.filterwarnings("ignore:acme has no visits from")
@pytest.mark.parametrize("command", [name for name, row in TRIED.items() if row.outdated not in (REFUSED, GOES_ON)])
def test_other_commands_work_and_leave_visit_files_unchanged(outdated, at, traffic, monkeypatch, command):
    before = {path: path.read_bytes() for path in outdated.root.glob("visits/*/*/*.parquet")}
    with smtp_server(Mailbox()) as port:
        monkeypatch.setenv("TRAFFIC_SMTP", f"smtp://127.0.0.1:{port}")
        monkeypatch.setenv("TRAFFIC_MAIL_FROM", "traffic@acme.example")
        run = traffic(*words(command, at))
    assert run.code == TRIED[command].outdated, run
    assert "nothing is written" not in run.err
    assert {path: path.read_bytes() for path in outdated.root.glob("visits/*/*/*.parquet")} == before


def test_a_grown_log_counts_once_after_a_rebuild(lake, traffic, tmp_path):
    """The file `generation`, which would prevent the second import, is missing."""
    path = tmp_path / "access.log"
    lake.manifest.close()
    older = kept_manifest(lake.root)
    for visits in (10, 35):
        put_back(older, lake.root)
        (lake.root / "generation").unlink(missing_ok=True)
        path.write_text(log("a", visits))
        again = Lake(lake.root)
        Importer(again).run(path, Options("acme"))
        again.manifest.close()
    run = traffic("rebuild")
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("10 visits of acme in 2 files of the manifest are also in 2 older files that ")
    assert traffic("rebuild", "--yes").err.splitlines()[1] == "The manifest now counts 35 visits in 4 files."
    assert "counts 35 visits in 4 files" in traffic("rebuild").err
