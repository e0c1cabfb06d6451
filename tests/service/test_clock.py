from datetime import UTC, datetime, timedelta, timezone

import pytest

from service.clock import from_text, hour_text, to_text, utc_now

EAST = timezone(timedelta(hours=5, minutes=30))


@pytest.mark.parametrize(
    ("moment", "text"),
    [(datetime(2026, 11, 20, 10, 0, 59, 999_999, UTC), "2026-11-20T10:00:59Z"),
     (datetime(2026, 11, 20, 3, 15, tzinfo=EAST), "2026-11-19T21:45:00Z"),
     (datetime(2026, 11, 20, 10), "2026-11-20T10:00:00Z"), (datetime(987, 1, 2, tzinfo=UTC), "0987-01-02T00:00:00Z")],
)  # fmt: skip
def test_a_time_is_written_in_utc_to_the_second(moment, text):
    assert to_text(moment) == text


def test_a_time_can_be_written_more_precisely_and_an_hour_as_its_beginning():
    assert hour_text(datetime(2026, 11, 20, 10, 59, 59, 999_999, UTC)) == "2026-11-20T10:00:00Z"
    moment = datetime(2026, 11, 20, 10, 0, 0, 123_456, UTC)
    assert to_text(moment, "milliseconds") == "2026-11-20T10:00:00.123Z"
    assert to_text(moment, "auto") == "2026-11-20T10:00:00.123456Z"


def test_a_written_time_is_read_as_it_was():
    moment = utc_now().replace(microsecond=0)
    assert from_text(to_text(moment)) == moment
    assert from_text(None) is None
