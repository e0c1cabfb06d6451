"""The table of signals: permanent bits, masks, and the version of their meaning."""

import hashlib
import re
from importlib import resources

from data.rules.files import FILE_PATTERN
from data.signals import BEHAVIOUR_VERSION, BITS, CONVICTING, LANDED, REASONS_ASIDE, REQUEST_FACTS, SIGNALS
from tests import recount


def test_each_signal_has_its_own_bit():
    bits = sorted(signal.bit for signal in (*SIGNALS, *REQUEST_FACTS, *REASONS_ASIDE))
    assert bits == [1 << number for number in range(len(BITS))]
    assert recount.BITS == BITS


def test_all_bits_fit_into_a_column_of_64_bits():
    assert max(BITS.values()) < 1 << 63


def test_masks_have_the_bits_of_their_signals():
    assert sum(BITS[name] for name in recount.CONVICTING) == CONVICTING
    assert sum(BITS[name] for name in recount.LANDED) == LANDED


JUDGING = (
    "suspects", "judged_visitors", "judged_agents", "people_agents", "old_visitors", "headerless_visitors",
    "judged_visits", "unfollowed_pages", "loading_agents", "hosting_visitors", "site_visitors", "request_macros",
    "old_protocol_visitors",
)  # fmt: skip
JUDGED = (17, "b1293ca89cfd")
"""The version of the signals, and the digest of their definition. If the version rises, past days are judged again."""


def test_the_version_changes_with_the_meaning_of_signals():
    folder = resources.files("data")
    texts = [folder.joinpath(f"tasks/sql/{name}.sql").read_text() for name in JUDGING]
    rules = [folder.joinpath(f"rules/{name}.toml").read_text() for name in ("lifetimes", "engines")]
    meaning = [*(re.sub("--.*", "", text) for text in texts), *rules, FILE_PATTERN, str([one[:4] for one in SIGNALS])]
    digest = hashlib.sha256(" ".join(" ".join(meaning).split()).encode()).hexdigest()[:12]
    assert (BEHAVIOUR_VERSION, digest) == JUDGED, "raise BEHAVIOUR_VERSION, and write both here"
