"""Jobs from real logs are counted by their readings, and only logs with unchanged bytes are read."""

import gzip
import hashlib
import subprocess

import pytest
import typer

from benchmarks.found import LABELS, UNREAD, FoundJob, LogFile, Reading, content_of, rows_of, table_of
from queries import DETECTORS

FILES = [LogFile(*row) for row in rows_of("found_logs.tsv")]
READINGS = [Reading(*row) for row in rows_of("found_read.tsv")]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder of clones with one repository, which contains a compressed part of a log."""
    folder, packed = tmp_path_factory.mktemp("clones"), gzip.compress(b"a line\n")
    repository = folder / "owner" / "name"
    repository.mkdir(parents=True)
    (repository / "access.log.gz").write_bytes(packed)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for arguments in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "log")):
        subprocess.run(["git", "-C", repository, *arguments], check=True)
    return folder, LogFile("log", "owner/name", "HEAD", "access.log.gz", "", hashlib.sha256(packed).hexdigest())


def test_a_compressed_part_of_a_log_is_read_from_a_clone(clone):
    folder, file = clone
    assert content_of(file, folder) == b"a line\n"


@pytest.mark.parametrize("absent", [{"repository": "owner/other"}, {"commit": "0" * 40}, {"path": "other.log"}])
def test_a_missing_part_is_read_as_none(clone, absent):
    folder, file = clone
    assert content_of(file._replace(**absent), folder) is None


def test_changed_bytes_are_rejected(clone):
    folder, file = clone
    with pytest.raises(typer.BadParameter, match=r"HEAD:access\.log\.gz does not match its recorded SHA-256"):
        content_of(file._replace(sha256="0" * 64), folder)


def test_the_table_counts_jobs_and_causes_by_reading():
    jobs = [
        FoundJob("a", 2, "useful", "down", "server_errors"),
        FoundJob("a", 1, "misleading", "down", "search_errors"),
        FoundJob("b", 1, "useful", "down", "server_errors"),
        FoundJob("b", 3, UNREAD, "flood x", "flood x"),
    ]
    rows = list(zip(*(column.cells for column in table_of(jobs, ["a", "b", "c"]).columns), strict=True))
    assert rows == [
        ("a", "2", "3", "1", "50 %", "0 %", "50 %", "0", "2.00"),
        ("b", "2", "4", "2", "50 %", "0 %", "0 %", "1", "1.00"),
        ("c", "0", "0", "0", "–", "–", "–", "0", "–"),
        ("all", "4", "7", "3", "50 %", "0 %", "25 %", "1", "1.33"),
    ]


def test_readings_have_known_logs_types_and_labels():
    assert {one.log for one in READINGS} <= {file.log for file in FILES}
    assert {one.type for one in READINGS} <= DETECTORS.keys()
    assert {one.label for one in READINGS} == {*LABELS}


def test_at_least_ten_logs_are_searched():
    assert len({file.log for file in FILES}) >= 10
