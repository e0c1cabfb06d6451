from datetime import UTC, datetime, timedelta, timezone

import pytest

from service.core.clock import from_text, hour_text, to_text, utc_now

EAST = timezone(timedelta(hours=5, minutes=30))
EARLY = datetime(2026, 11, 20, 10, 59, 59, 123_456, UTC)


@pytest.mark.parametrize(
    ("written", "text"),
    [(to_text(EARLY.replace(microsecond=999_999)), "2026-11-20T10:59:59Z"),
     (to_text(datetime(2026, 11, 20, 3, 15, tzinfo=EAST)), "2026-11-19T21:45:00Z"),
     (to_text(datetime(2026, 11, 20, 10)), "2026-11-20T10:00:00Z"),
     (to_text(datetime(987, 1, 2, tzinfo=UTC)), "0987-01-02T00:00:00Z"), (hour_text(EARLY), "2026-11-20T10:00:00Z"),
     (to_text(EARLY, "milliseconds"), "2026-11-20T10:59:59.123Z"),
     (to_text(EARLY, "auto"), "2026-11-20T10:59:59.123456Z")],
)  # fmt: skip
def test_a_time_is_written_in_utc_at_the_given_precision(written, text):
    assert written == text


def test_a_written_time_is_read_back_unchanged():
    moment = utc_now().replace(microsecond=0)
    assert from_text(to_text(moment)) == moment
    assert from_text(None) is None
