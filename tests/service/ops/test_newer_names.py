"""`traffic agents` and a release of names: writing it, fetching it from its address or a folder, and listing it."""

import re

import pytest

from data.rules.released import shipped_release
from service.core.settings import read_settings
from service.ops.owner_checks import check_names_in_use
from tests.support.receivers import answer
from tests.support.releases import CHECKED, release_of, sha256_of

NEWER = release_of(checked="2099-01-02")
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def refresh(traffic, lake, receiver, monkeypatch):
    """Refresh only the names, from a server that sends these responses; the settings request NEWER."""
    monkeypatch.setattr("data.rules.tables.load", lambda kind, name: [])
    monkeypatch.setenv("no_proxy", "*")

    def refresh(*answers):
        refresh.server = receiver(*([one] for one in answers))
        monkeypatch.setenv("TRAFFIC_RULES", f"{refresh.server.url}rules.toml#sha256={sha256_of(NEWER)}")
        return traffic("agents", "refresh")

    return refresh


def test_a_release_is_fetched_from_its_address(refresh, lake):
    told = refresh(answer(NEWER))
    assert (told.code, told.err) == (0, f"Names of agents and referrers in use: {lake.released}, checked 2099-01-02.\n")
    assert lake.released.read_bytes() == NEWER


def test_a_release_in_the_lake_is_not_fetched_again(refresh):
    refresh(answer(NEWER))
    assert refresh(NOT_FOUND).code == 0
    assert refresh.server.requests == []


PROBLEMS = {
    "another checksum": (answer(NEWER + b"\n"), "has the SHA-256 "),
    "nothing there": (NOT_FOUND, "HTTP status 404"),
    "too much": (answer(b"x" * 5_000_000), "the answer is larger than 4,194,304 bytes"),
    "a redirect to http": (answer("", 302, "Location: http://new.example/rules.toml"), "is not an https address"),
}


@pytest.mark.parametrize(("answered", "problem"), PROBLEMS.values(), ids=PROBLEMS)
def test_an_unusable_release_changes_nothing(refresh, lake, answered, problem):
    told = refresh(answered)
    assert (told.code, lake.released.exists()) == (1, False)
    assert re.match(f"TRAFFIC_RULES: .*{re.escape(problem)}", told.err)


def test_names_that_stay_in_use_are_reported(refresh):
    assert refresh(NOT_FOUND).err.endswith(f"\nNames of agents and referrers in use: shipped, checked {CHECKED}.\n")


def test_an_address_that_cannot_be_reached_is_reported(traffic, lake, monkeypatch):
    monkeypatch.setattr("data.rules.tables.load", lambda kind, name: [])
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("TRAFFIC_RULES", f"https://127.0.0.1:1/rules.toml#sha256={sha256_of(NEWER)}")
    told = traffic("agents", "refresh")
    assert told.code == 1
    assert told.err.startswith("TRAFFIC_RULES: https://127.0.0.1:1/rules.toml cannot be fetched: ")


def test_a_release_is_read_from_a_folder(traffic, lake, tmp_path, monkeypatch):
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/rules.toml").write_bytes(NEWER)
    monkeypatch.setenv("TRAFFIC_RULES", f"https://new.example/rules.toml#sha256={sha256_of(NEWER)}")
    assert traffic("agents", "refresh", "--from", tmp_path / "lists").code == 0
    assert lake.released.read_bytes() == NEWER


def test_a_release_without_a_checksum_is_not_read(traffic, lake, tmp_path):
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/rules.toml").write_bytes(NEWER)
    assert traffic("agents", "refresh", "--from", tmp_path / "lists").code == 2
    assert not lake.released.exists()


def test_agents_of_a_release_are_listed(refresh, traffic):
    refresh(answer(NEWER))
    assert traffic("agents", "list").out.splitlines()[1].split()[:2] == ["release", "Newcomer/"]


def test_a_release_is_written_with_its_checksum(traffic, tmp_path):
    told = traffic("agents", "release", tmp_path / "names.toml")
    sha256 = sha256_of(shipped_release())
    assert (tmp_path / "names.toml").read_bytes() == shipped_release()
    assert told.out == f"TRAFFIC_RULES=https://…/names.toml#sha256={sha256}\n"
    variable, _, value = told.out.strip().replace("…", "new.example").partition("=")
    assert read_settings({variable: value}).rules.sha256 == sha256


def test_a_release_that_cannot_be_written_is_an_error(traffic, tmp_path):
    assert "cannot be written: Is a directory" in traffic("agents", "release", tmp_path).err


def test_the_status_shows_the_names_in_use(refresh, traffic, lake):
    assert f"names  shipped, checked {CHECKED}" in re.sub(" {3,}", "  ", traffic("status").out)
    refresh(answer(NEWER))
    assert f"names  {lake.released}, checked 2099-01-02" in re.sub(" {3,}", "  ", traffic("status").out)


def test_doctor_shows_the_names_in_use(lake):
    lake.released.write_bytes(NEWER)
    assert check_names_in_use(lake) == ("ok", "names", f"{lake.released}, checked 2099-01-02.")


def test_doctor_warns_about_an_outdated_release(lake):
    lake.released.write_bytes(shipped_release().replace(f"checked = {CHECKED}".encode(), b"checked = 2026-01-01"))
    level, _, text = check_names_in_use(lake)
    assert level == "warning"
    assert "newer than" in text


def test_doctor_reports_a_damaged_release(lake):
    lake.released.write_bytes(b"[[agent]]\n" + NEWER)
    assert check_names_in_use(lake).level == "broken"
