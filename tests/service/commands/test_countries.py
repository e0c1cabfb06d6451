"""A server looks countries up in what `traffic countries` has set up, of which transcripts/countries.txt tells."""

from data.store.pending import flush_all
from tests.support.addresses import country_database
from tests.support.lakes import rows_of


def test_a_server_looks_reported_visits_up_in_it_and_a_backup_contains_it(traffic, lake, opened, tmp_path):
    country_database(tmp_path / "a.mmdb", {"5.5.5.0/24": {"country": {"iso_code": "DE"}}})
    traffic("countries", tmp_path / "a.mmdb")
    with opened(lake) as client:
        assert client.post("/visits", content='{"path": "/a", "ip": "5.5.5.5"}').status_code == 202
    flush_all(lake)
    assert [row["country"] for row in rows_of(lake)] == ["DE"]
    assert traffic("backup", tmp_path / "copy").code == 0
    copied = tmp_path / "copy" / lake.country_database.relative_to(lake.root)
    assert copied.read_bytes() == lake.country_database.read_bytes()
