"""The sample of `traffic demo` contains a problem for every job detector to find."""

import io
import re
import subprocess
from contextlib import closing
from datetime import date, timedelta

import pytest
from rich.console import Console

from data import Lake
from queries import DETECTORS, ENTRIES, Scope, Warehouse, detect, measure_all
from service.core.control_database import ControlDatabase
from service.demo.command import _fill
from service.demo.problems import REQUESTS, write_log
from service.jobs.store import Jobs
from tests.support.forks import PROGRAM, ROOT
from tests.support.tables import tables

PLANTED = tables(__file__)["planted"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory, today):
    folder = tmp_path_factory.mktemp("demo")
    lake = Lake(folder / "lake", create=True)
    _fill(lake, folder, 1_500, Console(file=(told := io.StringIO()), width=200))
    visits = sum(file.visits for file in lake.manifest.files.live("demo"))
    assert f"{visits:,} generated visits imported" in told.getvalue()
    warehouse = Warehouse(lake)
    yield warehouse
    warehouse.close()
    lake.manifest.close()


@pytest.mark.parametrize("job_type", DETECTORS)
def test_a_detector_finds_its_planted_problem_in_the_demo(demo, today, job_type):
    subject = PLANTED.get(job_type)
    assert subject, (
        f"plant requests for {job_type} in service/demo/problems.py, and name their subject in test_demo.json"
    )
    found = [finding.subject for finding in detect(demo, DETECTORS[job_type], "demo", today)]
    assert subject in found, f"{job_type} does not find what service/demo/problems.py has for it"
    days = measure_all(demo, DETECTORS[job_type], "demo", [subject], today - timedelta(28), today)[0]
    assert sum(visits for _, _, visits in days) >= 4


def test_the_demo_shows_two_effective_repairs_and_a_useless_one(demo):
    with closing(ControlDatabase(demo._lake)) as control:
        jobs = Jobs(control)
        shipped = {job.path: job for job in jobs.of("demo") if job.implementation_status == "shipped"}
        outcomes = {path: jobs.record("demo", job.id).outcome for path, job in shipped.items()}
    told = {path: (job.status, job.outcome_status, outcomes[path].judged_by) for path, job in shipped.items()}
    assert told == {
        "/team-page": ("resolved", "improved", "answer"),
        "/press-kit": ("reviewed", "unchanged", "answer"),
        "/signup": ("resolved", "improved", "rate"),
    }
    for path in ("/team-page", "/press-kit"):
        assert "requests failed in the 28 days before" in outcomes[path].verdict
    early, late = outcomes["/signup"].control_before, outcomes["/signup"].control_after
    assert (outcomes["/signup"].others, early.events > 50, late.events > 10) == (1, True, True)


def planted_by(log):
    write_log(log, REQUESTS, date(2026, 3, 1))
    return log.read_text().splitlines()


def test_planted_problems_are_the_same_every_time(tmp_path):
    assert planted_by(tmp_path / "one") == planted_by(tmp_path / "two")


def test_planted_problems_end_on_the_previous_day(tmp_path):
    lines = planted_by(tmp_path / "log")
    assert "01/Feb/2026" in lines[0]
    assert "28/Feb/2026" in lines[-1]


def test_planted_problems_take_hundreds_of_lines(tmp_path):
    assert 500 < len(planted_by(tmp_path / "log")) < 2_500


def test_detected_invented_links_match_the_list_in_the_demo(demo, today):
    scope = Scope("demo", today - timedelta(28), today - timedelta(1))
    rows = demo.answer(ENTRIES["invented-links"], demo.snapshot(scope))
    listed = {row["path"]: (row["domain"], row["agent_fetches"], row["ai_referrals"]) for row in rows}
    found = [one.row for one in detect(demo, DETECTORS["invented_link"], "demo", today)]
    assert found
    for row in found:
        assert listed[row["path"]] == (row["domain"], row["agent_fetches"], row["ai_referrals"])


def test_the_readme_shows_what_the_demo_prints():
    def without_values(text):
        return re.sub(r"tak_\w+|code=\S+|--lake \S+|\d+(?:[,:-]\d+)*", "_", text)

    readme = (ROOT / "README.md").read_text()
    shown = re.search(r"^\S+ generated visits.*?^curl [^\n]*\n", readme, re.DOTALL | re.MULTILINE)
    command = [PROGRAM, "demo", "--port", "0", "--visits", "1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            printed = []
            for line in process.stdout:
                printed.append(line)
                if line.startswith("curl "):
                    break
        finally:
            process.terminate()
    assert without_values("".join(printed)) == without_values(shown[0])
