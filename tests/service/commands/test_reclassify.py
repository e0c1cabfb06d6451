"""`traffic reclassify`: what it prints where, and that others may write meanwhile."""

import re
from collections import Counter
from contextlib import closing
from datetime import date, datetime

from data import Lake
from data.ingest.importer import Importer, Options
from data.rules.bots import readable_user_agent
from data.rules.tables import rules_version
from tests.support.lakes import files_of, read
from tests.support.user_agents import CHROME, GPTBOT
from tests.support.visits import land, visit


def visits(lake, organization="acme"):
    """Every live visit of an organization, the day of each beside it."""
    return [(file.day, row) for file in files_of(lake, organization) for row in read(lake, file)]


def categories(lake, organization="acme"):
    return Counter(row["bot_category"] for _, row in visits(lake, organization))


# What is printed

MOVED = [
    *[visit(user_agent="GPTBot/1.2")] * 3,
    visit(user_agent="GPTBot/1.1"),
    *[visit(user_agent=CHROME)] * 2,
    visit(user_agent=None),
    visit(user_agent=CHROME, operating_system="Linux", browser="Chrome"),
]
TABLE = [
    ["from", "to", "visits", "most frequent user agent"],
    ["human", "ai_training", "4", "GPTBot/1.2"],
    ["human", "(other details)", "2", CHROME],
    ["human", "other_bot", "1", "(none)"],
]


def table(out):
    return [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]


def test_the_table_of_moves_goes_to_stdout_and_the_summary_to_stderr(lake, traffic):
    nothing = "0 of 0 visits in 0 days reclassified; 0 of them with a different result.\n"
    assert traffic("reclassify") == (0, "", nothing)
    land(lake, "acme", MOVED)
    land(lake, "other", [visit(visited_at=datetime(2026, 3, 5), user_agent=CHROME)] * 1200)
    land(lake, "other", [visit(rules_version=rules_version())])
    dry = traffic("reclassify", "--dry-run", "--org", "acme")
    assert (dry.code, table(dry.out)) == (0, TABLE)
    assert dry.err == "8 of 8 visits in 1 day would be reclassified; 7 of them with a different result.\n"
    assert categories(lake) == {"human": 8}
    run = traffic("reclassify")
    assert (run.code, table(run.out)[1:3]) == (
        0,
        [["human", "(other details)", "1,202", CHROME], ["human", "ai_training", "4", "GPTBot/1.2"]],
    )
    assert run.err == "1,208 of 1,209 visits in 2 days reclassified; 1,207 of them with a different result.\n"
    again = traffic("reclassify")
    assert again == (0, "", "0 of 1,209 visits in 0 days reclassified; 0 of them with a different result.\n")


def test_a_user_agent_is_shown_whole_as_it_is_and_cannot_steer_the_terminal(lake, traffic):
    agents = ["GPTBot/" + "9" * 1000, "GPTBot/1.2 [en] (X11)", "GPTBot/1.2 [link=x] [/red] \\[b]"]
    agents.append(readable_user_agent(r"GPTBot/1.2 \x1b]0;owned\x07"))
    for number, agent in enumerate(agents):
        for name in (f"acme{number}", "other"):
            land(lake, name, [visit(user_agent=agent)])
        run = traffic("reclassify", "--org", f"acme{number}")
        shown = agent.replace("\x1b", "\ufffd").replace("\x07", "\ufffd")
        assert (run.code, table(run.out)[-1]) == (0, ["human", "ai_training", "1", shown])
        assert categories(lake, f"acme{number}") == {"ai_training": 1}
    assert categories(lake, "other") == {"human": len(agents)}


# Beside others

DAYS = 8


def log_of(name, number_of_lines, day=1):
    return "".join(
        f'203.0.113.7 - - [{day + number % DAYS:02}/Jan/2026:10:05:03 +0000] "GET /{name}/{number} HTTP/1.1" 200 5 '
        f'"-" "{GPTBOT if number % 2 else CHROME}"\n'
        for number in range(number_of_lines)
    )


def test_imports_beside_a_reclassification_lose_and_double_nothing(lake, forks, tmp_path):
    for part in range(2):  # visits of other rules, those of every day in two files
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
    with lake.manifest.transaction() as db:
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
        assert manifest.epoch("acme") > DAYS  # and imports judged the days
