"""`traffic doctor` finds what is wrong with an installation, and says how to mend it."""

import json
import os
import stat
from datetime import UTC, datetime, timedelta

import pytest

from service.api_keys import ApiKeys
from service.control_database import ControlDatabase
from service.doctor import FEW_FREE_BYTES, MIN_FREE_BYTES, check_address, check_space, check_sync, examine
from service.maintenance import TASKS
from service.settings import read_settings
from tests.support.lakes import fail_at, files_of
from tests.support.tables import examples
from tests.support.visits import land, visit

NOW = datetime.now(UTC)
LISTS = "ip-lists/openai-gptbot.json"


@pytest.fixture
def healthy(lake):
    """The root of a lake in which nothing is missing."""
    land(lake, "acme", [visit(visited_at=NOW.replace(tzinfo=None))])
    keys = ApiKeys(ControlDatabase(lake))
    keys.create_key("acme", "test")
    keys.database.close()
    fetched_at(lake, NOW - timedelta(days=1))
    return lake.root


def fetched_at(lake, moment):
    (lake.root / LISTS).write_text(json.dumps({"name": "x", "fetched_at": moment.isoformat(), "networks": []}))


def checks(root, now=NOW, **variables):
    """The level and the text of each check, by its subject."""
    found = examine({"TRAFFIC_LAKE": str(root), **variables}, now)
    return {check.subject: (check.level, check.text) for check in found}


def test_a_whole_installation_has_a_line_of_ok_for_everything_and_below_them_the_tasks_of_a_server(healthy, traffic):
    run = traffic("doctor", "--lake", healthy)
    assert run.code == 0, run.out
    above, _, below = run.out.partition("\n\n")
    lines = above.splitlines()
    assert [line[:7].strip() for line in lines] == ["ok"] * 12
    assert [line[9:21].strip() for line in lines] == [
        "settings", "proxies", "disk space", "disk writes", "files", "permissions", "manifest", "clock", "IP lists",
        "countries", "API keys", "first answer",
    ]  # fmt: skip
    heading, *lines = below.splitlines()
    assert heading == "A running server does by itself:"
    assert lines[1] == "15 s     merge            Merge the files of days that still receive visits."
    assert lines[-1] == "15 min   sweep            Delete replaced files that no query reads any more."
    assert [line[9:24].strip() for line in lines] == [task.name for task in TASKS]


def test_nothing_is_left_behind(healthy):
    assert checks(healthy)  # the first engine of a lake writes an empty rollup
    before = sorted(healthy.rglob("*"))
    assert checks(healthy)
    assert sorted(healthy.rglob("*")) == before


@pytest.mark.parametrize("fault", ["missing", "folder", "mode"])
def test_a_file_that_cannot_be_read_is_broken(healthy, lake, traffic, fault):
    path = lake.root / files_of(lake)[0].path
    if fault == "mode":
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("the superuser may read everything")
    else:
        path.unlink()
    if fault == "folder":
        path.mkdir()
    level, text = checks(healthy)["files"]
    assert level == "broken"
    assert text.startswith(f"{path} cannot be read (")
    assert text.endswith("run `traffic verify` and restore what it names from a backup.")
    run = traffic("doctor", "--lake", healthy)
    assert run.code == 1
    assert "\nbroken   files         " in run.out


def test_an_invalid_setting_a_missing_lake_or_a_damaged_manifest_is_broken_and_named(healthy, lake, tmp_path, traffic):
    run = traffic("doctor", "--lake", tmp_path / "none")
    assert (run.code, "\nbroken   lake          no lake at" in run.out) == (1, True)
    assert not (tmp_path / "none").exists()
    assert list(checks(healthy, TRAFFIC_PORT="high").items()) == [
        ("settings", ("broken", "TRAFFIC_PORT or --port: 'high' must be a whole number, 0 to 65535."))
    ]
    lake.manifest.close()
    (healthy / "manifest.sqlite").write_bytes(b"nothing of SQLite" * 100)
    assert checks(healthy)["lake"][0] == "broken"


def test_what_is_old_or_missing_ahead_or_behind_or_open_to_others_is_a_warning_with_its_remedy(healthy, lake):
    fetched_at(lake, NOW - timedelta(days=15))
    (healthy / "control.sqlite").chmod(0o644)
    found = checks(healthy, NOW + timedelta(days=2))
    day = f"{NOW - timedelta(days=15):%Y-%m-%d}"
    warning = ("warning", f"the newest is of {day}; run `traffic agents refresh`, each week from cron.")
    assert found["IP lists"] == warning
    level, text = found["permissions"]
    assert (level, text.partition("; ")[2]) == ("warning", f"run chmod 600 {healthy / 'control.sqlite'}.")
    (healthy / LISTS).unlink()
    (healthy / "control.sqlite").chmod(stat.S_IRUSR | stat.S_IWUSR)
    later, found = found, checks(healthy, NOW - timedelta(days=2))
    assert found["IP lists"][1].endswith("run `traffic agents refresh`.")
    assert found["permissions"][0] == "ok"
    for level, text in (later["clock"], found["clock"]):
        assert (level, text.endswith("set it by NTP; see timedatectl.")) == ("warning", True)


def test_without_a_key_or_visits_what_to_do_is_named_unless_an_identity_provider_signs_tokens(lake, tmp_path):
    keys = ApiKeys(ControlDatabase(lake))
    keys.create_key("acme", "revoked")
    keys.revoke_key(keys.all_keys()[0].id)
    keys.database.close()
    assert checks(lake.root)["first answer"] == ("warning", "no visits to count; run `traffic import`.")
    assert checks(lake.root)["API keys"][1].endswith("run `traffic keys create --org NAME --name dashboard`.")
    (tmp_path / "jwks.json").write_text("{}")
    provider = {"TRAFFIC_JWKS": str(tmp_path / "jwks.json"), "TRAFFIC_JWT_ISSUER": "https://id.example",
                "TRAFFIC_JWT_AUDIENCE": "traffic"}  # fmt: skip
    assert checks(lake.root, **provider)["API keys"][0] == "ok"


def test_a_disk_that_fails_is_broken_and_one_that_is_slow_or_nearly_full_a_warning(healthy, lake, monkeypatch):
    seconds = iter(range(100))
    check = check_sync(lake, lambda: next(seconds))
    assert (check.level, "1,000.0 ms" in check.text) == ("warning", True)
    for free, level in ((FEW_FREE_BYTES, "ok"), (FEW_FREE_BYTES - 1, "warning"), (MIN_FREE_BYTES, "warning"),
                        (MIN_FREE_BYTES - 1, "broken")):  # fmt: skip
        assert check_space(lake.root, free).level == level
    fail_at(monkeypatch, "service.doctor", "sync")
    level, text = checks(healthy)["disk writes"]
    assert (level, text) == ("broken", f"{healthy} cannot be written: No space left on device; check its disk.")
    assert list(healthy.rglob("doctor-*")) == []


@examples("variables", "level", "words")
def test_the_address_and_the_proxies_fit_together(variables, level, words):
    check = check_address(read_settings({f"TRAFFIC_{name}": value for name, value in variables.items()}))
    assert check.level == level
    assert words in check.text


def test_a_misspelt_setting_is_named_with_the_one_that_is_meant(healthy):
    for variable, meant in (("TRAFFIC_LAEK", "TRAFFIC_LAKE"), ("TRAFFIC_HOOKS_NETWORK", "TRAFFIC_HOOK_NETWORKS")):
        told = f"{variable} is not a setting and has no effect; set {meant} instead."
        assert checks(healthy, **{variable: "x"})["settings"] == ("warning", told)
    others = dict.fromkeys(("TRAFFIC_TESTS", "TRAFFIC", "OTHER_LAEK"), "x")  # which resemble none
    assert checks(healthy, **others)["settings"] == ("ok", "they are valid.")
