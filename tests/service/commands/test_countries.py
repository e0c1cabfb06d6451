"""`traffic countries` names free databases, and sets one up where import, follow and serve find it."""

import gzip
import tarfile

import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from data import Lake
from data.store.pending import flush_all
from service.commands.countries import FREE_DATABASES
from tests.service.commands.runs import refused
from tests.support.lakes import rows_of

pytestmark = pytest.mark.usefixtures("one_reader")
PERSON = '5.5.5.5 - - [04/Mar/2026:12:00:00 +0000] "GET /a HTTP/1.1" 302 0 "-" "Mozilla/5.0 (X11) Firefox/140.0"\n'


@pytest.fixture
def download(tmp_path):
    """Makes a database in which 5.5.5.0/24 has a record, packed as its name says."""

    def download(name="countries.mmdb", record=None):
        writer = MMDBWriter(4, "DBIP-Country-Lite", ["en"], "", ipv4_compatible=False)
        writer.insert_network(IPSet(["5.5.5.0/24"]), record or {"country": {"iso_code": "DE"}})
        database, packed = tmp_path / "database.mmdb", tmp_path / name
        writer.to_db_file(str(database))
        if name.endswith(".tar.gz"):
            with tarfile.open(packed, "w:gz") as archive:
                archive.add(__file__, "GeoLite2-Country_20261124/COPYRIGHT.txt")
                archive.add(database, "GeoLite2-Country_20261124/GeoLite2-Country.mmdb")
        else:
            packed.write_bytes(gzip.compress(database.read_bytes()) if name.endswith(".gz") else database.read_bytes())
        return packed

    return download


@pytest.fixture
def import_one(traffic, tmp_path, lake):
    """Imports one more request of 5.5.5.5, or others; the countries of all visits, and what was told."""

    def import_one(*flags, lines=PERSON):
        with (tmp_path / "access.log").open("a") as log:
            log.write(lines)
        run = traffic("import", tmp_path / "access.log", "--org", "acme", "--domain", "a.example", *flags)
        assert (run.code, run.out) == (0, ""), run
        return sorted(row["country"] or "" for row in rows_of(lake)), run.err

    return import_one


def test_without_a_file_it_names_free_databases_their_licences_and_where_they_are(traffic, tmp_path):
    run = traffic("countries", "--lake", tmp_path / "new")
    assert (run.code, run.err) == (0, "Download one in the format MMDB, then run: traffic countries FILE\n")
    for name, licence, asks, url in FREE_DATABASES:
        assert f"{name} ({licence}; {asks})\n  {url}\n" in run.out
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["a.mmdb", "dbip-country-lite-2026-11.mmdb.gz", "GeoLite2-Country.tar.gz"])
def test_new_visits_have_countries_once_a_download_is_set_up_and_past_ones_have_none(
    traffic, lake, download, import_one, name
):
    assert import_one()[0] == [""]
    file = download(name)
    run = traffic("countries", file)
    assert (run.code, run.out) == (0, "")
    checked, changed, then = run.err.splitlines()
    assert checked.startswith(f"{file}: DBIP-Country-Lite of 20")
    assert checked.endswith("; 5.5.5.0 is in DE.")
    assert changed == f"It is copied to {lake.country_database}."
    assert "restart `traffic serve`" in then
    assert "Past visits get none" in then
    assert import_one()[0] == ["", "DE"]


def test_a_newer_file_replaces_the_database_and_one_that_is_named_is_used_instead(
    traffic, lake, download, import_one, monkeypatch
):
    traffic("countries", download())
    run = traffic("countries", download(record={"country": "FR"}))
    assert f"It replaces {lake.country_database}." in run.err
    assert import_one()[0] == ["FR"]
    other = download("other.mmdb", {"country": "IT"})
    assert import_one("--geoip", other)[0] == ["FR", "IT"]
    monkeypatch.setenv("TRAFFIC_GEOIP", str(other))
    run = traffic("countries", download())
    assert run.err.endswith(f"TRAFFIC_GEOIP names {other}, which is used instead: unset it.\n")


def test_a_log_may_name_countries_itself_and_import_says_which_database_cannot_be_used(
    import_one, download, monkeypatch, tmp_path
):
    named, database = PERSON.replace("\n", ' "FR"\n'), download()
    found, told = import_one("--geoip", database, lines=PERSON + PERSON.replace("5.5.5.5", "5.5.6.5") + named)
    assert (found, "countries are unknown" in told) == (["", "DE", "FR"], False)
    (tmp_path / "cut.mmdb").write_bytes(database.read_bytes()[:-50])
    for number, name in enumerate(("nowhere.mmdb", "cut.mmdb"), 1):
        monkeypatch.setenv("TRAFFIC_GEOIP", str(tmp_path / name))
        found, told = import_one(lines=PERSON + named)
        (line,) = (row for row in told.splitlines() if row.startswith("traffic: "))
        assert line.startswith(f"traffic: {tmp_path / name} is not a valid country database in MaxMind's format: ")
        assert line.endswith("unless the log contains them; `traffic countries` sets up a database.")
        assert found == sorted(["", "DE", "FR"] + ["", "FR"] * number)


def test_a_server_looks_reported_visits_up_in_it_and_a_backup_contains_it(traffic, lake, download, opened, tmp_path):
    traffic("countries", download())
    with opened(lake) as client:
        assert client.post("/visits", content='{"path": "/a", "ip": "5.5.5.5"}').status_code == 202
    flush_all(lake)
    assert [row["country"] for row in rows_of(lake)] == ["DE"]
    assert traffic("backup", tmp_path / "copy").code == 0
    assert Lake(tmp_path / "copy").country_database.read_bytes() == lake.country_database.read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [("nowhere.mmdb", None, "cannot be read: No such file or directory."),
     ("a.csv", b"1.0.0.0,1.0.0.255,AU\n", "is not a country database in MaxMind's format"),
     ("a.csv.gz", gzip.compress(b"1.0.0.0,AU\n", mtime=0), "is not a country database in MaxMind's format"),
     ("cut.mmdb.gz", gzip.compress(b"x" * 1_000, mtime=0)[:20], "cannot be read: "),
     ("a.tar.gz", b"no archive", "is not a tar archive")],
)  # fmt: skip
def test_what_is_not_a_country_database_is_refused_and_no_lake_is_made(traffic, tmp_path, name, content, reason):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    line = refused(traffic("countries", tmp_path / name, "--lake", tmp_path / "new"))
    assert line.startswith(f"traffic: {tmp_path / name} {reason}")
    assert not (tmp_path / "new").exists()


def test_what_has_no_countries_is_refused_and_doctor_says_how_to_replace_a_broken_database(traffic, lake, download):
    assert "only those in logs are known; `traffic countries` sets up a database." in traffic("doctor").out
    traffic("countries", download())
    assert "they are looked up in DBIP-Country-Lite of 20" in traffic("doctor").out
    before = lake.country_database.read_bytes()
    operators = download("operators.mmdb", {"autonomous_system_number": 64496})
    assert "has no countries; `traffic countries` names" in refused(traffic("countries", operators))
    assert lake.country_database.read_bytes() == before
    assert list(lake.staging.iterdir()) == []
    lake.country_database.write_bytes(b"")
    run = traffic("doctor")
    assert run.code == 1
    assert "run `traffic countries`, or set another in TRAFFIC_GEOIP." in run.out
