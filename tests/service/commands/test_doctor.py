"""`traffic doctor` on disks, clocks and addresses that no test has; what it prints is in transcripts/doctor.txt."""

from datetime import UTC, datetime, timedelta

from service.doctor import FEW_FREE_BYTES, MIN_FREE_BYTES, check_address, check_space, check_sync, examine
from service.settings import read_settings
from tests.support.lakes import fail_at
from tests.support.tables import examples


def test_a_disk_that_fails_is_broken_and_one_that_is_slow_or_nearly_full_a_warning(lake, monkeypatch):
    seconds = iter(range(100))
    check = check_sync(lake, lambda: next(seconds))
    assert (check.level, "1,000.0 ms" in check.text) == ("warning", True)
    for free, level in ((FEW_FREE_BYTES, "ok"), (FEW_FREE_BYTES - 1, "warning"), (MIN_FREE_BYTES, "warning"),
                        (MIN_FREE_BYTES - 1, "broken")):  # fmt: skip
        assert check_space(lake.root, free).level == level
    fail_at(monkeypatch, "service.doctor", "sync")
    told = f"{lake.root} cannot be written: No space left on device; check its disk."
    assert check_sync(lake) == ("broken", "disk writes", told)
    assert list(lake.root.rglob("doctor-*")) == []


def test_a_clock_that_is_ahead_of_the_disk_is_a_warning(lake):
    (check,) = [
        check
        for check in examine({"TRAFFIC_LAKE": str(lake.root)}, datetime.now(UTC) + timedelta(days=2))
        if check.subject == "clock"
    ]
    assert (check.level, check.text.endswith("set it by NTP; see timedatectl.")) == ("warning", True)
    assert check.text.startswith("it differs from the times of the disk by 172,")


@examples("variables", "level", "words")
def test_the_address_and_the_proxies_fit_together(variables, level, words):
    check = check_address(read_settings({f"TRAFFIC_{name}": value for name, value in variables.items()}))
    assert check.level == level
    assert words in check.text
