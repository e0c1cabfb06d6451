"""What a program took that the benchmarks ran."""

import subprocess
import sys

import pytest

from benchmarks.importing import run


def test_the_memory_of_who_measures_a_program_is_not_counted_as_its_own() -> None:
    large = bytearray(b"1" * 150_000_000)
    taken = run([sys.executable, "-c", "sum(range(1_000_000))"])
    assert taken.megabytes < 100
    del large
    assert taken.processor_seconds > 0
    assert taken.seconds > 0


def test_a_program_that_fails_is_not_measured() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run([sys.executable, "-c", "raise SystemExit(3)"])
