"""A follower of a place in a bucket, with its messages."""

from data.ingest.drop_follower import DropFollower
from data.ingest.dropped import open_drop
from data.ingest.importer import Importer, Options


class Following:
    """Follows a place in a bucket for acme, and keeps the messages, except the one about visits that are too old."""

    def __init__(self, lake, place):
        self.told, self.lake = [], lake
        options = Options("acme", "go.example")
        self.follower = DropFollower(lake, Importer(lake), open_drop(place), options, notify=self._tell)

    def _tell(self, text):
        if "more than 48 hours ago" not in text:
            self.told.append(text)

    def tick(self):
        """Check the bucket once; return the totals since the start."""
        self.follower.tick()
        return self.follower.totals
