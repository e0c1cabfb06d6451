"""`traffic serve`: what it says before it serves."""

import pytest

from service.server import run


@pytest.fixture
def serve(traffic, monkeypatch):
    """Runs `traffic serve` until it would answer requests."""
    monkeypatch.setattr(run, "serve_on", lambda app, listener, *_: listener.close())
    return lambda lake: traffic("serve", "--port", "0", "--lake", lake)


def test_a_lake_that_is_new_is_announced_as_its_path_may_be_mistyped(serve, tmp_path):
    announcement = f"No lake at {tmp_path / 'typo'} yet: a new one is created.\n"
    assert [serve(tmp_path / "typo").err, serve(tmp_path / "typo").err] == [announcement, ""]
