"""`traffic reclassify` while other programs write. Its output is tested by transcripts/reclassify.txt."""

from collections import Counter
from contextlib import closing
from datetime import date, datetime

from data import Lake
from data.ingest.importer import Importer, Options
from data.rules.lake_tables import rules_version
from tests.support.lakes import files_of, read
from tests.support.manifests import database_of
from tests.support.user_agents import CHROME, GPTBOT
from tests.support.visits import land, visit


def visits(lake, organization="acme"):
    """Return every live visit of an organization, with the day."""
    return [(file.day, row) for file in files_of(lake, organization) for row in read(lake, file)]


DAYS = 8


def log_of(name, number_of_lines, day=1):
    return "".join(
        f'203.0.113.7 - - [{day + number % DAYS:02}/Jan/2026:10:05:03 +0000] "GET /{name}/{number} HTTP/1.1" 200 5 '
        f'"-" "{GPTBOT if number % 2 else CHROME}"\n'
        for number in range(number_of_lines)
    )


def test_imports_during_a_reclassification_lose_nothing(lake, forks, tmp_path):
    for part in range(2):  # visits by other rules, each day in two files
        rows = [
            visit(visited_at=datetime(2026, 1, 1 + day, part, 5), user_agent=agent, path=f"/{part}/{number}")
            for day in range(DAYS)
            for number, agent in enumerate((CHROME, "GPTBot/1.2", "curl/8.9.1") * 2)
        ]
        land(lake, "acme", rows)
    grown, other = tmp_path / "grown.log", tmp_path / "other.log"
    grown.write_text(log_of("grown", 60)[: -len('GPTBot/1.2; +https://openai.com/gptbot"\n')])
    Importer(lake).run(grown, Options("acme"))
    before = Counter((day, row["path"]) for day, row in visits(lake))
    with database_of(lake.manifest).transaction() as db:
        assert db.execute("SELECT count(*) FROM files WHERE unfinished_of IS NOT NULL").fetchone() == (1,)
    grown.write_text(log_of("grown", 100))
    other.write_text(log_of("other", 500))
    imports = [
        ["import", log, "--org", "acme", "--domain", "go.example", "--lake", lake.root] for log in (grown, other)
    ]
    running = [forks.start(*words) for words in (["reclassify", "--lake", lake.root], *imports)]
    told = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], told
    new = [("grown", number) for number in range(60, 100)] + [("other", number) for number in range(500)]
    new = Counter((date(2026, 1, 1 + number % DAYS), f"/{name}/{number}") for name, number in new)
    told = visits(lake)
    assert Counter((day, row["path"]) for day, row in told) == before + new
    assert {row["rules_version"] for _, row in told} == {rules_version()}
    assert {row["bot_category"] for _, row in told if row["path"] == "/grown/59"} == {"ai_training"}
    assert list(lake.staging.iterdir()) == []
    with closing(Lake(lake.root).manifest) as manifest:
        assert manifest.organizations.epoch("acme") > DAYS  # and imports judged the days
