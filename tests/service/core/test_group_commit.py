"""Changes committed together: groups take turns, and a group rests while others are served."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.core.http.group_commit import GroupCommit


@pytest.fixture
def made():
    """The groups in the order of their commits, each with its number of changes."""
    return []


def commits(made, needs_rest=lambda _: False):
    """Return a group commit that records its commits in `made`."""

    def make(group, changes):
        made.append((group, len(changes)))
        return changes

    return GroupCommit(make, ThreadPoolExecutor(1), needs_rest)


async def add_all(commit, groups):
    await asyncio.gather(*(commit.add(group, group) for group in groups))


async def test_groups_take_turns_and_each_commits_all_its_changes(made):
    commit = commits(made)
    await add_all(commit, "abac")
    await commit.close()
    assert made == [("a", 2), ("b", 1), ("c", 1)]


async def test_a_resting_group_lets_others_go_first_until_closing(made, monkeypatch):
    times = iter([0.0, 3_600.0, *[3_600.0] * 20])
    monkeypatch.setattr("service.core.http.group_commit.monotonic", lambda: next(times))
    commit = commits(made, lambda group: group == "a")
    await commit.add("a", 1)
    resting = asyncio.create_task(commit.add("a", 2))
    await add_all(commit, "bc")
    assert not resting.done()
    await commit.close()
    assert await resting == 2
    assert made == [("a", 1), ("b", 1), ("c", 1), ("a", 1)]
