"""Lines of access logs, in the combined format."""

from tests.support.user_agents import CHROME


def line(
    path: str = "/abc",
    ip: str = "203.0.113.7",
    at: str = "17/May/2015:10:05:03 +0000",
    agent: str = CHROME,
    status: int = 200,
    referrer: str = "-",
) -> str:
    """Return a log line for a GET request with these values."""
    return f'{ip} - - [{at}] "GET {path} HTTP/1.1" {status} 5316 "{referrer}" "{agent}"\n'


def lines(*paths: str) -> str:
    """Return a log with requests for these paths."""
    return "".join(map(line, paths))
