"""`traffic zone`: set before the first visit, shown, and named by whatever prints days."""

import json

from tests.service.commands.runs import refused

LINE = '1.1.1.1 - - [04/Mar/2026:23:30:00 +0000] "GET /a HTTP/1.1" 302 0 "-" "Mozilla/5.0"\n'


def test_a_zone_is_set_shown_and_kept_by_the_first_import(traffic, tmp_path):
    lake, log = tmp_path / "lake", tmp_path / "access.log"
    log.write_text(LINE)
    org = ("--org", "acme", "--lake", lake)
    assert "Days of acme are those of Asia/Tokyo." in traffic("zone", "set", "Asia/Tokyo", *org).err
    assert traffic("zone", "show", *org).out == "Asia/Tokyo\n"
    assert traffic("zone", "show", "--org", "other", "--lake", lake).out == "UTC\n"
    assert "days 2026-03-05 to 2026-03-05 (Asia/Tokyo)" in traffic("import", log, *org, "--domain", "go.example").err
    assert "so its zone stays; import its logs again under a new organization" in refused(
        traffic("zone", "set", "UTC", *org)
    )
    days = ("--start-date", "2026-03-05", "--end-date", "2026-03-05", "--format", "json")
    hours = json.loads(traffic("query", "hourly-activity", *org, *days).out)
    assert [row["hour"] for row in hours if row["visits"]] == [8]


def test_an_unknown_zone_is_refused_with_the_nearest_names(traffic, tmp_path):
    line = refused(traffic("zone", "set", "europe/berln", "--org", "acme", "--lake", tmp_path / "lake"))
    assert "did you mean Europe/Berlin" in line
