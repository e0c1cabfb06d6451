"""`traffic reclassify`: what it prints where, and what is left when it is killed or others write meanwhile.

It is killed 3 times; with `TRAFFIC_FAULTS=3` three times as often, with `TRAFFIC_FAULTS=all` 20 times.
"""

import random
import re
import signal
import time
from collections import Counter
from contextlib import closing
from datetime import date, datetime, timedelta

from data import Lake
from data.ingest.importer import Importer, Options
from data.rules.bots import readable_user_agent
from data.rules.tables import rules_version
from tests.faults.trials import scaled
from tests.support.lakes import files_of, flipped, read
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


def test_a_damaged_file_ends_with_1_names_the_file_and_keeps_what_was_done(lake, traffic):
    for day in (3, 4, 5):
        land(lake, "acme", [visit(visited_at=datetime(2026, 3, day), user_agent=GPTBOT)])
    damaged = lake.root / lake.manifest.live_files("acme", date(2026, 3, 4), date(2026, 3, 4))[0].path
    with flipped(damaged):
        run = traffic("reclassify")
    assert (run.code, run.out) == (1, "")
    assert re.fullmatch(rf"traffic: [^\n]*{damaged.name}[^\n]*\n", run.err)
    assert categories(lake) == {"ai_training": 1, "human": 2}


# Killed, and beside others

KILLS = scaled(3, 20)
DAYS = 8


def fill(lake, *organizations):
    """Land visits of other rules, the visits of every day in two files."""
    agents = (CHROME, "GPTBot/1.2", "curl/8.9.1") * 2
    for name in organizations:
        for part in range(2):
            moments = [datetime(2026, 1, 1, part, 5) + timedelta(days) for days in range(DAYS)]
            land(
                lake,
                name,
                [
                    visit(visited_at=moment, user_agent=agent, path=f"/{part}/{number}")
                    for moment in moments
                    for number, agent in enumerate(agents)
                ],
            )


def partitions(lake):
    """The visits of every organization and day as they count now."""
    told = {}
    for name in lake.manifest.organizations():
        for day, row in visits(lake, name):
            told.setdefault((name, day), []).append(row)
    return {place: sorted(rows, key=lambda row: (row["path"], row["visited_at"])) for place, rows in told.items()}


def test_a_killed_run_leaves_whole_partitions_and_the_next_ones_do_the_rest(lake, traffic, forks):
    fill(lake, "acme", "other")
    before, choice, done, ends = partitions(lake), random.Random(11), 0, []
    facts = ("visited_at", "path", "user_agent", "visitor", "short_code")
    for _ in range(KILLS):
        process = forks.start("reclassify", "--lake", lake.root)
        while process.poll() is None and epochs(lake) == done:
            time.sleep(0.002)
        time.sleep(choice.uniform(0, 0.12))
        process.kill()
        process.communicate()
        ends.append(process.returncode)
        left, done = partitions(lake), epochs(lake)
        assert sum(rows != before[place] for place, rows in left.items()) == done
        for place, rows in left.items():
            assert len({row["rules_version"] for row in rows}) == 1, place
            assert [[row[name] for name in facts] for row in rows] == [
                [row[name] for name in facts] for row in before[place]
            ]
    assert -signal.SIGKILL in ends
    run = traffic("reclassify")
    assert run.code == 0
    todo = len(before) - done
    assert run.err.startswith(f"{12 * todo} of {12 * len(before)} visits in {todo} days")
    after = partitions(lake)
    assert after.keys() == before.keys()
    assert {row["rules_version"] for rows in after.values() for row in rows} == {rules_version()}
    for name in ("acme", "other"):
        assert categories(lake, name) == dict.fromkeys(("human", "ai_training", "other_bot"), 4 * DAYS)


def epochs(lake):
    return sum(lake.manifest.epoch(name) for name in ("acme", "other"))


def log_of(name, number_of_lines, day=1):
    return "".join(
        f'203.0.113.7 - - [{day + number % DAYS:02}/Jan/2026:10:05:03 +0000] "GET /{name}/{number} HTTP/1.1" 200 5 '
        f'"-" "{GPTBOT if number % 2 else CHROME}"\n'
        for number in range(number_of_lines)
    )


def test_imports_beside_a_reclassification_lose_and_double_nothing(lake, forks, tmp_path):
    fill(lake, "acme")
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
