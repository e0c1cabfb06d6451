"""The commands in service/deploy/README.md, and what tests wait for."""

import re
import time

from tests.support.programs import DEPLOY

WAIT_SECONDS = 120


def commands_under(heading):
    """Return the shell commands in the first block under a heading."""
    text = (DEPLOY / "README.md").read_text()
    return re.search(rf"^## {heading}\n.*?```sh\n(.*?)```", text, re.DOTALL | re.MULTILINE)[1]


def total(output):
    """Return the number of visits in the output of `traffic query traffic-overview --format json`."""
    return int(re.search(r'"total_visits":(\d+)', output)[1])


def becomes(value, expected):
    """Call `value` until it returns what is expected; fail with the last value after two minutes."""
    end = time.monotonic() + WAIT_SECONDS
    while (now := value()) != expected and time.monotonic() < end:
        time.sleep(1)
    assert now == expected
