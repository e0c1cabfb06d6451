"""Fixtures for tests on published copies: a folder for the copy, and a publisher."""

import pytest

from data.publish.publisher import LakePublisher


@pytest.fixture
def there(tmp_path):
    """The folder to which the lake is published."""
    return tmp_path / "copy"


@pytest.fixture
def publish(lake, there):
    """Publish the lake to the folder `there`; each call uses the same publisher."""
    publisher = LakePublisher(lake, str(there))
    return lambda organization="acme": publisher.publish(organization)
