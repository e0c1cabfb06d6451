"""The logs of a site that Chromium and programs visited, with labels: the sender and the kind of each request."""

import csv
import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import pytest

from tests.support.forks import ROOT

DRIVEN: Final = ROOT.parent / "shared/data/driven/nginx"
needs_driven: Final = pytest.mark.skipif(not DRIVEN.exists(), reason="the logs of the driven site are not here")


def readings() -> Mapping[tuple[str, str], list[str]]:
    """Return the kinds of the requests in rich.log, by second and path."""
    lines = map(json.loads, (DRIVEN / "rich.log").read_text("utf-8").splitlines())
    labels = csv.DictReader((DRIVEN / "rich.log.labels.csv").read_text("utf-8").splitlines())
    found = defaultdict(list)
    for line, label in zip(lines, labels, strict=True):
        found[line["time_iso8601"][:19], label["path"].partition("?")[0]].append(label["reading"])
    return found
