"""The table of signals: their bits and masks, which files keep for ever."""

from data.signals import BITS, CONVICTING, LANDED, REASONS_ASIDE, REQUEST_FACTS, SIGNALS
from tests import recount


def test_each_signal_has_a_bit_of_its_own():
    bits = sorted(signal.bit for signal in (*SIGNALS, *REQUEST_FACTS, *REASONS_ASIDE))
    assert bits == [1 << number for number in range(len(BITS))]
    assert recount.BITS == BITS


def test_all_bits_fit_into_a_column_of_64_bits():
    assert max(BITS.values()) < 1 << 63


def test_masks_have_the_bits_of_their_signals():
    assert sum(BITS[name] for name in recount.CONVICTING) == CONVICTING
    assert sum(BITS[name] for name in recount.LANDED) == LANDED
