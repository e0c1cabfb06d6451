"""Visits of one past day, and the signals that judging gives them."""

from datetime import UTC, date, datetime

from data.rules.engines import BrowserEngines
from data.rules.releases import BrowserReleases
from data.signals import SIGNALS
from data.tasks.compaction import Compactor
from tests import recount
from tests.support.lakes import rows_of
from tests.support.visits import land, visit

TODAY = datetime(2026, 3, 5, 8, tzinfo=UTC)
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36".format
FILES = ("/", "/a.css", "/b.js")


def asked(path, visitor=1, version=144, signals=None, **columns):
    """Return a visitor's request, by default for a page that was served."""
    values = {"domain": "go.example", "status": 200, "short_code": None, "user_agent": CHROME(version)} | columns
    return visit(visited_at=datetime(2026, 3, 4, 12), path=path, visitor=visitor, signals=signals, **values)


def readers(agents, paths=FILES, **columns):
    """Return visits by this many people with different browser versions, who load pages with their files."""
    return [asked(path, 100 + number, 130 + number, **columns) for number in range(agents) for path in paths]


def judged(lake, visits):
    """Return the names of each visitor's signals, after checking that the product and a recount agree on them."""
    land(lake, "acme", visits)
    Compactor(lake, lambda: TODAY).run()
    day = [row | {"day": date(2026, 3, 4)} for row in visits]
    counted = recount.judged(day, BrowserReleases(), (), BrowserEngines())
    told, recounted = {}, {}
    for rows, names in ((rows_of(lake), told), (counted, recounted)):
        for row in rows:
            signals = {one.name for one in SIGNALS if row["signals"] & one.bit}
            names[row["visitor"]] = names.get(row["visitor"], set()) | signals
    assert told == recounted
    return told
