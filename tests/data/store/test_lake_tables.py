"""The release of the rules in a lake: when it is stored, when it is used, and which releases are rejected."""

import pytest

from data.errors import BadInput
from data.recovery.backup import back_up
from data.rules.lake_tables import rules_version
from data.rules.released import shipped_release
from data.store.lake_tables import (
    CurrentTables,
    Names,
    lake_tables,
    names_in_use,
    rules_version_of,
    sha256_of_release,
    store_release,
)
from data.tasks.reclassification import CategoryChange, Reclassifier
from tests.support.releases import CHECKED, release_of, sha256_of
from tests.support.visits import land, visit

NEWER = release_of(checked="2099-01-02")


def store(lake, content=NEWER):
    store_release(lake, "https://new.example/rules.toml", content, sha256_of(content))


def agents(tables):
    return [row.agent for row in tables.agents()]


def test_a_lake_without_a_release_uses_the_shipped_tables(lake):
    assert names_in_use(lake) == Names("shipped", CHECKED)


def test_a_stored_release_is_used(lake):
    store(lake)
    assert agents(lake_tables(lake))[0] == "Newcomer"


def test_the_path_and_date_of_the_names_in_use_are_reported(lake):
    store(lake)
    assert names_in_use(lake) == Names(str(lake.released), "2099-01-02")


def test_the_checksum_of_a_release_is_that_of_its_file(lake):
    assert sha256_of_release(lake) == ""
    store(lake)
    assert sha256_of_release(lake) == sha256_of(NEWER)


REFUSED = {
    "another checksum": (NEWER, sha256_of(b""), "has the SHA-256"),
    "a bad row": (b"[[agent]]\n" + NEWER, None, "row 1"),
}


@pytest.mark.parametrize(("content", "sha256", "message"), REFUSED.values(), ids=REFUSED)
def test_the_last_release_stays_when_another_is_rejected(lake, content, sha256, message):
    store(lake)
    with pytest.raises(BadInput, match=message):
        store_release(lake, "https://new.example/rules.toml", content, sha256 or sha256_of(content))
    assert lake.released.read_bytes() == NEWER


def test_a_release_older_than_the_shipped_tables_is_rejected(lake):
    older = shipped_release().replace(f"checked = {CHECKED}".encode(), b"checked = 2026-01-01")
    with pytest.raises(BadInput, match=f"but this version.s tables are from {CHECKED}"):
        store(lake, older)


def test_after_an_upgrade_the_shipped_tables_are_used(lake):
    lake.released.write_bytes(shipped_release().replace(f"checked = {CHECKED}".encode(), b"checked = 2026-01-01"))
    assert lake_tables(lake).released is None
    assert names_in_use(lake).is_outdated


def test_storing_the_shipped_release_changes_nothing(lake):
    store(lake, shipped_release())
    assert rules_version_of(lake) == rules_version()
    assert not names_in_use(lake).is_outdated


@pytest.mark.parametrize("content", [b"[[agent]]\n" + NEWER, b"\0" * 100])
def test_the_error_about_a_damaged_release_names_its_path(lake, content):
    lake.released.write_bytes(content)
    with pytest.raises(BadInput, match=r"rules\.toml"):
        lake_tables(lake)


def test_a_release_stored_after_the_tables_were_read_is_used(lake):
    current = CurrentTables(lake)
    store(lake)
    assert agents(current.current())[0] == "Newcomer"


def test_a_reclassification_shows_what_a_release_changes(lake):
    land(lake, "acme", [visit(user_agent="Newcomer/1.0", bot_category="other_bot", rules_version=rules_version())])
    store(lake)
    changes = Reclassifier(lake).run(["acme"], dry_run=True).changes
    assert changes == {CategoryChange("other_bot", "ai_training"): {"Newcomer/1.0": 1}}


def test_a_backup_contains_the_release(lake, tmp_path):
    store(lake)
    back_up(lake, tmp_path / "copy")
    assert (tmp_path / "copy/rules.toml").read_bytes() == NEWER
