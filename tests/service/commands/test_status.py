"""`traffic status` tells ages; what else it prints is in transcripts/status.txt."""

from datetime import UTC, datetime, timedelta

from service.commands.status import _age
from tests.support.tables import examples


@examples("seconds", "age")
def test_an_age_is_told_in_a_unit_that_fits(seconds, age):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert _age(now - timedelta(seconds=seconds), now) == age
