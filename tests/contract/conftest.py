"""Fixtures for the contract tests: the application, called by users of an identity provider."""

import pytest

from tests.support import identity


@pytest.fixture(scope="module")
def with_provider(shared_lake, opened, tmp_path_factory):
    """The application over `shared_lake`, which trusts tests.support.identity; its client sends no token."""
    with opened(shared_lake, "", **identity.settings_of(tmp_path_factory.mktemp("identity"))) as client:
        yield client
