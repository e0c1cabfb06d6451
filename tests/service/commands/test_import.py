"""`traffic import` of what was imported before, and its help; what it prints otherwise is in transcripts/import.txt."""

import re
from datetime import timedelta

import pytest

from data.ingest.importer import Importer, Options
from data.logs.formats import FORMATS
from data.maintenance import erasure
from queries import DEFAULT_RANGE, RANGES
from service.commands.importing import OLD
from tests.support.lakes import rows_of
from tests.support.log_lines import line

pytestmark = pytest.mark.usefixtures("one_reader")


def test_a_log_is_old_if_the_default_range_of_queries_does_not_include_it():
    assert timedelta(days=RANGES[DEFAULT_RANGE]) == OLD


def test_a_log_that_landed_without_a_domain_is_erased_and_lands_again_with_one(lake, traffic, tmp_path, monkeypatch):
    monkeypatch.setattr(erasure, "GRACE", timedelta(0))
    log = tmp_path / "access.log"
    log.write_text(line("/a", at="04/Mar/2026:10:05:03 +0000"))
    Importer(lake).run(log, Options("acme"))  # where none was asked for
    command = ("import", log, "--org", "acme", "--domain", "go.example")
    assert "already imported, without a domain, nothing changed" in traffic(*command).err
    run = traffic(*command, "--again")
    (erase,) = re.findall("`traffic (erase --org acme .*?)`", run.err)
    assert (run.code, erase) == (2, "erase --org acme --no-domain --since 2026-03-04 --before 2026-03-05")
    assert traffic(*erase.split(), "--yes").code == 0
    run = traffic(*command, "--again")
    assert (run.code, "1 visit imported from 1 line" in run.err) == (0, True)
    assert [(row["domain"], row["path"]) for row in rows_of(lake)] == [("go.example", "/a")]


def test_the_help_names_every_format_and_shows_how_logs_are_described(traffic):
    told = " ".join(traffic("import", "--help").out.split())
    assert [name for name in (*FORMATS, "$remote_addr [$time_local]", "time=ts,ip=") if name not in told] == []
