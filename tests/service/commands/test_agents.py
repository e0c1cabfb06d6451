"""`traffic agents refresh` from addresses; what it says of lists in a folder is in transcripts/agents.txt."""

import json
import re

from data.store.ip_list_files import snapshots


def test_lists_are_fetched_from_their_addresses(traffic, lake, receiver, monkeypatch):
    def answer(body):
        return [f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}"]

    one, page = json.dumps({"prefixes": [{"ipv4Prefix": "20.42.10.0/24"}]}), "<p>20.42.20.0/24, 20.42.21.7</p>"
    missing = ["HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"]
    url = receiver(*map(answer, (one,)), missing, *map(answer, (page, one, one, page))).url
    usual = {"url": url, "evidence": "https://docs.example/", "checked": "2026-03-01"}
    lists = [
        usual | {"name": "one", "operator": "First Inc.", "format": "prefixes"},
        usual | {"name": "two", "operator": "Second", "format": "prefixes"},
        usual | {"name": "three", "operator": "Third", "format": "text"},
    ]
    monkeypatch.setattr("data.rules.tables.load", lambda kind, name: [kind(**row) for row in lists])
    monkeypatch.setenv("no_proxy", "*")
    run = traffic("agents", "refresh")
    assert (run.code, run.err) == (1, "1 of 3 lists could not be refreshed; their last versions are kept.\n")
    _, *rows = [re.split(r"\s{2,}", row.strip()) for row in run.out.splitlines()]
    assert [row[:3] for row in rows] == [
        ["one", "First Inc.", "1"],
        ["two", "Second", "never"],
        ["three", "Third", "2"],
    ]
    assert rows[1][3] == f"{url} cannot be fetched: HTTP status 404"
    assert [str(network) for network in snapshots(lake)["three"].networks] == ["20.42.20.0/24", "20.42.21.7/32"]
    again = traffic("agents", "refresh")
    assert (again.code, again.err) == (0, "")
    assert sorted(snapshots(lake)) == ["one", "three", "two"]
